/* SPDX-License-Identifier: MIT */
/* The topology for programs: one JSON object. */
#include "json.h"
#include "topo.h"

#include <string.h>

static void put_string(FILE *out, const char *name, const char *text)
{
    fprintf(out, "\"%s\": ", name);
    if (text && *text)
        json_put_string(out, text, strlen(text));
    else
        fputs("null", out);
}

/* null for what is negative: not known. */
static void put_number(FILE *out, const char *name, long long number)
{
    if (number < 0)
        fprintf(out, "\"%s\": null", name);
    else
        fprintf(out, "\"%s\": %lld", name, number);
}

static void put_bool(FILE *out, const char *name, int value)
{
    fprintf(out, "\"%s\": %s", name, value < 0 ? "null" : value ? "true" : "false");
}

static void put_link(FILE *out, const char *name, struct pci_link link)
{
    fprintf(out, "\"%s\": {", name);
    put_number(out, "gen", link.gen ? (int)link.gen : -1);
    fputs(", ", out);
    put_number(out, "width", link.width ? (int)link.width : -1);
    fputc('}', out);
}

static void next(FILE *out)
{
    fputs(",\n     ", out);
}

static void put_users(FILE *out, const struct nvml_gpu *gpu)
{
    if (!gpu) {
        fputs("\"users\": null", out);
        return;
    }
    fputs("\"users\": [", out);
    for (unsigned i = 0; i < gpu->users_n && i < NVML_USERS_MAX; i++) {
        fprintf(out, "%s{\"pid\": %d, ", i ? ", " : "", (int)gpu->user[i].pid);
        put_string(out, "name", gpu->user[i].name);
        fputs(", ", out);
        put_number(out, "bytes", (long long)gpu->user[i].bytes);
        fputc('}', out);
    }
    fputc(']', out);
}

/* What only NVML knows. */
static void put_told(FILE *out, const struct nvml_gpu *gpu)
{
    static const struct nvml_gpu unknown = {.numa_id = -1,
                                            .mig = -1,
                                            .ecc = -1,
                                            .persistence = -1,
                                            .cc_major = -1,
                                            .links = -1,
                                            .link_version = -1,
                                            .link_mbps = -1};
    const struct nvml_gpu *told = gpu ? gpu : &unknown;
    put_number(out, "gpu_numa_id", told->numa_id);
    next(out);
    put_number(out, "memory_bytes", told->memory_bytes ? (long long)told->memory_bytes : -1);
    fputs(", ", out);
    if (told->cc_major >= 0)
        fprintf(out, "\"compute_capability\": \"%d.%d\"", told->cc_major, told->cc_minor);
    else
        fputs("\"compute_capability\": null", out);
    next(out);
    put_bool(out, "mig", told->mig);
    fputs(", ", out);
    put_bool(out, "ecc", told->ecc);
    fputs(", ", out);
    put_bool(out, "persistence", told->persistence);
    fputs(", ", out);
    put_string(out, "compute_mode", gpu ? topo_compute_mode(told->compute_mode) : NULL);
    fputs(", ", out);
    put_string(out, "fabric", gpu ? topo_fabric(told) : NULL);
    next(out);
    fputs("\"nvlink\": {", out);
    put_number(out, "up", told->links);
    fputs(", ", out);
    put_number(out, "version", told->links > 0 ? told->link_version : -1);
    fputs(", ", out);
    put_number(out, "mbytes_per_s", told->links > 0 ? told->link_mbps : -1);
    fputs(", ", out);
    put_bool(out, "switched", told->links > 0 ? told->switched : -1);
    fputc('}', out);
}

static void put_gpu(FILE *out, const struct topology *t, unsigned i)
{
    const struct topology_gpu *gpu = &t->gpu[i];
    int nic = topology_nearest_nic(t, i);
    fprintf(out, "    {\"index\": %u, ", i);
    put_string(out, "pci", t->list.gpu[i].pci);
    fputs(", ", out);
    put_string(out, "uuid", t->list.gpu[i].uuid);
    fputs(", ", out);
    put_number(out, "minor", t->list.gpu[i].minor);
    next(out);
    put_string(out, "name", gpu->name);
    next(out);
    put_string(out, "path", gpu->pci.path);
    next(out);
    put_link(out, "pcie", gpu->now);
    fputs(", ", out);
    put_link(out, "pcie_max", gpu->most);
    next(out);
    put_string(out, "cpu_affinity", gpu->cpus);
    fputs(", ", out);
    put_string(out, "numa_affinity", gpu->nodes);
    fputs(", ", out);
    put_told(out, topology_nvml(t, i));
    next(out);
    put_string(out, "nearest_nic", nic < 0 ? NULL : t->nic[nic].name);
    fputs(", ", out);
    put_users(out, topology_nvml(t, i));
    fputc('}', out);
}

static void put_nic(FILE *out, const struct topology_nic *nic)
{
    fputs("    {", out);
    put_string(out, "name", nic->name);
    fputs(", ", out);
    put_string(out, "netdev", nic->netdev);
    fputs(", ", out);
    put_string(out, "pci", nic->pci.address);
    fputs(", ", out);
    put_bool(out, "rdma", nic->rdma);
    fputs(", ", out);
    put_bool(out, "up", !nic->down);
    fputs(", ", out);
    put_number(out, "mbits_per_s", nic->mbits ? (long long)nic->mbits : -1);
    fputs(", ", out);
    put_number(out, "numa_node", nic->pci.numa_node);
    next(out);
    put_string(out, "path", nic->pci.path);
    fputc('}', out);
}

static void put_node(FILE *out, const struct topology_node *node)
{
    fputs("    {", out);
    put_number(out, "id", node->id);
    fputs(", ", out);
    put_number(out, "package", node->package);
    fputs(", ", out);
    put_string(out, "cpus", node->cpus);
    fputs(", ", out);
    put_number(out, "memory_bytes", node->memory_bytes ? (long long)node->memory_bytes : -1);
    fputc('}', out);
}

static void put_matrix(FILE *out, const struct topology *t)
{
    unsigned n = t->list.n + t->rdma_n;
    char cell[8];
    fputs(",\n  \"matrix\": [", out);
    for (unsigned a = 0; a < n; a++) {
        fprintf(out, "%s\n    [", a ? "," : "");
        for (unsigned b = 0; b < n; b++) {
            topology_cell(t, a, b, cell);
            fprintf(out, "%s\"%s\"", b ? ", " : "", cell);
        }
        fputc(']', out);
    }
    fputs(n ? "\n  ]" : "]", out);
}

static void put_p2p(FILE *out, const struct topology *t)
{
    static const char *const names[P2P_KINDS_N] = {"read", "write", "nvlink", "atomics", "pci"};
    fputs(",\n  \"p2p\": ", out);
    if (!t->nvml || !t->nvml->usable) {
        fputs("null", out);
        return;
    }
    for (int kind = 0; kind < P2P_KINDS_N; kind++) {
        fprintf(out, "%s\n    \"%s\": [", kind ? "," : "{", names[kind]);
        for (unsigned i = 0; i < t->list.n; i++) {
            fputs(i ? ", [" : "[", out);
            for (unsigned j = 0; j < t->list.n; j++)
                fprintf(out, "%s\"%s\"", j ? ", " : "",
                        topo_p2p_cell(t, (enum nvml_p2p)kind, i, j));
            fputc(']', out);
        }
        fputc(']', out);
    }
    fputs("\n  }", out);
}

/* Takes the text over. */
static void put_lines(FILE *out, const char *name, char *text)
{
    fprintf(out, ",\n  \"%s\": [", name);
    for (const char *line = text ? text : ""; *line;) {
        size_t n = strcspn(line, "\n");
        fputs(line == text ? "\n    " : ",\n    ", out);
        json_put_string(out, line, n);
        line += n + (line[n] == '\n');
    }
    fputs(text && *text ? "\n  ]" : "]", out);
    free(text);
}

void topo_json(FILE *out, const struct topology *t)
{
    static const char *const vendors[] = {NULL, "nvidia", "amd"};
    fputs("{\n  \"version\": 1,\n  \"cpu\": {", out);
    put_string(out, "name", t->cpu_name);
    fputs(", ", out);
    put_number(out, "cpus", t->cpus_n);
    fputs(", ", out);
    put_number(out, "packages", t->packages_n);
    fputs("},\n  ", out);
    put_string(out, "gpu_vendor", vendors[t->list.vendor]);
    fputs(",\n  ", out);
    put_string(out, "driver", t->driver);
    fputs(",\n  ", out);
    put_bool(out, "nvml", t->nvml && t->nvml->usable);
    fputs(",\n  \"nodes\": [\n", out);
    for (unsigned i = 0; i < t->nodes_n; i++) {
        fputs(i ? ",\n" : "", out);
        put_node(out, &t->node[i]);
    }
    fputs("\n  ],\n  \"gpus\": [\n", out);
    for (unsigned i = 0; i < t->list.n; i++) {
        fputs(i ? ",\n" : "", out);
        put_gpu(out, t, i);
    }
    fputs("\n  ],\n  \"nics\": [\n", out);
    for (unsigned i = 0; i < t->nics_n; i++) {
        fputs(i ? ",\n" : "", out);
        put_nic(out, &t->nic[i]);
    }
    fputs("\n  ]", out);
    put_matrix(out, t);
    put_p2p(out, t);
    put_lines(out, "reading", topo_reading(t));
    put_lines(out, "wrong", topo_wrong(t));
    fputs("\n}\n", out);
}
