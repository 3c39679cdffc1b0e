/* SPDX-License-Identifier: MIT */
/* The topology for programs: one JSON object. */
#include "json.h"
#include "topo.h"

#include <string.h>

#define NEXT_LINE ",\n     "

/* null for what is negative: not known. */
static void put_number(struct json_members *m, const char *name, long long number)
{
    json_number(m, name, number >= 0, number);
}

/* What is 0 when it is not known. */
static void put_size(struct json_members *m, const char *name, uint64_t size)
{
    json_number(m, name, size != 0, (long long)size);
}

/* The members of an object that is a member itself. */
static struct json_members open_object(struct json_members *m, const char *name)
{
    json_name(m, name);
    return (struct json_members){.out = m->out, .before = "{", .between = ", "};
}

/* Of an object in a list, at the start of a line. */
static struct json_members item(FILE *out, unsigned i)
{
    return (struct json_members){.out = out, .before = i ? ",\n    {" : "    {", .between = ", "};
}

static void put_link(struct json_members *m, const char *name, struct pci_link link)
{
    struct json_members inner = open_object(m, name);
    put_size(&inner, "gen", link.gen);
    put_size(&inner, "width", link.width);
    fputc('}', m->out);
}

static void put_users(struct json_members *m, const struct nvml_gpu *gpu)
{
    json_name(m, "users");
    if (!gpu) {
        fputs("null", m->out);
        return;
    }
    fputc('[', m->out);
    for (unsigned i = 0; i < gpu->users_n && i < NVML_USERS_MAX; i++) {
        struct json_members user = {.out = m->out, .before = i ? ", {" : "{", .between = ", "};
        json_number(&user, "pid", true, gpu->user[i].pid);
        json_text(&user, "name", gpu->user[i].name);
        put_number(&user, "bytes", (long long)gpu->user[i].bytes);
        fputc('}', m->out);
    }
    fputc(']', m->out);
}

/* What only NVML knows. */
static void put_told(struct json_members *m, const struct nvml_gpu *gpu)
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
    char capability[32] = "";
    if (told->cc_major >= 0)
        snprintf(capability, sizeof capability, "%d.%d", told->cc_major, told->cc_minor);
    put_number(m, "gpu_numa_id", told->numa_id);
    m->before = NEXT_LINE;
    put_size(m, "memory_bytes", told->memory_bytes);
    json_text(m, "compute_capability", capability);
    m->before = NEXT_LINE;
    json_bool(m, "mig", told->mig);
    json_bool(m, "ecc", told->ecc);
    json_bool(m, "persistence", told->persistence);
    json_text(m, "compute_mode", gpu ? topo_compute_mode(told->compute_mode) : NULL);
    json_text(m, "fabric", gpu ? topo_fabric(told) : NULL);
    m->before = NEXT_LINE;
    struct json_members links = open_object(m, "nvlink");
    put_number(&links, "up", told->links);
    put_number(&links, "version", told->links > 0 ? told->link_version : -1);
    put_number(&links, "mbytes_per_s", told->links > 0 ? told->link_mbps : -1);
    json_bool(&links, "switched", told->links > 0 ? told->switched : -1);
    fputc('}', m->out);
}

static void put_gpu(FILE *out, const struct topology *t, unsigned i)
{
    const struct topology_gpu *gpu = &t->gpu[i];
    int nic = topology_nearest_nic(t, i);
    struct json_members m = item(out, i);
    json_number(&m, "index", true, i);
    json_text(&m, "pci", t->list.gpu[i].pci);
    json_text(&m, "uuid", t->list.gpu[i].uuid);
    put_number(&m, "minor", t->list.gpu[i].minor);
    m.before = NEXT_LINE;
    json_text(&m, "name", gpu->name);
    m.before = NEXT_LINE;
    json_text(&m, "path", gpu->pci.path);
    m.before = NEXT_LINE;
    put_link(&m, "pcie", gpu->now);
    put_link(&m, "pcie_max", gpu->most);
    m.before = NEXT_LINE;
    json_text(&m, "cpu_affinity", gpu->cpus);
    json_text(&m, "numa_affinity", gpu->nodes);
    put_told(&m, topology_nvml(t, i));
    m.before = NEXT_LINE;
    json_text(&m, "nearest_nic", nic < 0 ? NULL : t->nic[nic].name);
    put_users(&m, topology_nvml(t, i));
    fputc('}', out);
}

static void put_nic(FILE *out, const struct topology *t, unsigned i)
{
    const struct topology_nic *nic = &t->nic[i];
    struct json_members m = item(out, i);
    json_text(&m, "name", nic->name);
    json_text(&m, "netdev", nic->netdev);
    json_text(&m, "pci", nic->pci.address);
    json_bool(&m, "rdma", nic->rdma);
    json_bool(&m, "up", !nic->down);
    put_size(&m, "mbits_per_s", nic->mbits);
    put_number(&m, "numa_node", nic->pci.numa_node);
    m.before = NEXT_LINE;
    json_text(&m, "path", nic->pci.path);
    fputc('}', out);
}

static void put_node(FILE *out, const struct topology *t, unsigned i)
{
    const struct topology_node *node = &t->node[i];
    struct json_members m = item(out, i);
    put_number(&m, "id", node->id);
    put_number(&m, "package", node->package);
    json_text(&m, "cpus", node->cpus);
    put_size(&m, "memory_bytes", node->memory_bytes);
    fputc('}', out);
}

static void put_list(struct json_members *m, const char *name, const struct topology *t, unsigned n,
                     void (*put)(FILE *out, const struct topology *t, unsigned i))
{
    json_name(m, name);
    fputs("[\n", m->out);
    for (unsigned i = 0; i < n; i++)
        put(m->out, t, i);
    fputs("\n  ]", m->out);
}

static void put_matrix(struct json_members *m, const struct topology *t)
{
    FILE *out = m->out;
    unsigned n = t->list.n + t->rdma_n;
    char cell[8];
    json_name(m, "matrix");
    fputc('[', out);
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

static void put_p2p(struct json_members *m, const struct topology *t)
{
    FILE *out = m->out;
    static const char *const names[P2P_KINDS_N] = {"read", "write", "nvlink", "atomics", "pci"};
    json_name(m, "p2p");
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
static void put_lines(struct json_members *m, const char *name, char *text)
{
    FILE *out = m->out;
    json_name(m, name);
    fputc('[', out);
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
    struct json_members m = {.out = out, .before = "{\n  ", .between = ",\n  "};
    json_number(&m, "version", true, 1);
    struct json_members cpu = open_object(&m, "cpu");
    json_text(&cpu, "name", t->cpu_name);
    put_number(&cpu, "cpus", t->cpus_n);
    put_number(&cpu, "packages", t->packages_n);
    fputc('}', out);
    json_text(&m, "gpu_vendor", vendors[t->list.vendor]);
    json_text(&m, "driver", t->driver);
    json_bool(&m, "nvml", t->nvml && t->nvml->usable);
    put_list(&m, "nodes", t, t->nodes_n, put_node);
    put_list(&m, "gpus", t, t->list.n, put_gpu);
    put_list(&m, "nics", t, t->nics_n, put_nic);
    put_matrix(&m, t);
    put_p2p(&m, t);
    put_lines(&m, "reading", topo_reading(t));
    put_lines(&m, "wrong", topo_wrong(t));
    fputs("\n}\n", out);
}
