/* SPDX-License-Identifier: MIT */
/* See topology.h: puts the sources together. Must never print. */
#include "topology.h"

#include "bitset.h"
#include "clean.h"
#include "kfd.h"
#include "nic.h"
#include "numa.h"
#include "sysfile.h"

#include <stdio.h>
#include <string.h>

/* Names come from drivers and programs, and go to terminals. */
#define CLEAN(array) clean(array, sizeof(array), array)

/* ---- the CPUs ---- */

static void read_cpu(struct topology *t, const char *sysroot)
{
    char text[4096],
        value[96]; /* the first CPU's lines will do: all of them take long on a big server */
    if (sysfile_read(text, sizeof text, sysroot, "/proc/cpuinfo") < 0)
        return;
    static const struct {
        const char *key;
        size_t at, bytes;
    } texts[] = {
        {"vendor_id", offsetof(struct topology, cpu_vendor), sizeof t->cpu_vendor},
        {"model name", offsetof(struct topology, cpu_name), sizeof t->cpu_name},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (sysfile_field(text, texts[i].key, value, sizeof value))
            snprintf((char *)t + texts[i].at, texts[i].bytes, "%s", value + strspn(value, ": \t"));
    CLEAN(t->cpu_vendor);
    CLEAN(t->cpu_name);
    if (sysfile_field(text, "cpu family", value, sizeof value))
        t->cpu_family = (unsigned)strtoul(value + strspn(value, ": \t"), NULL, 10);
    if (sysfile_field(text, "model", value, sizeof value))
        t->cpu_model = (unsigned)strtoul(value + strspn(value, ": \t"), NULL, 10);
}

/* A node that there is not is none; on a server with one node, all is there, whatever the firmware forgot to tell. */
static void settle_node(const struct topology *t, struct pci_device *device)
{
    unsigned with_cpus = 0;
    int only = -1, told = -1;
    for (unsigned i = 0; i < t->nodes_n; i++) {
        if (t->node[i].id == device->numa_node)
            told = device->numa_node;
        if (t->node[i].cpus_n && with_cpus++ == 0)
            only = t->node[i].id;
    }
    device->numa_node = told < 0 && with_cpus == 1 ? only : told;
}

/* ---- GPUs ---- */

static void read_driver(struct topology *t, const char *sysroot)
{
    char text[512];
    if (sysfile_read(text, sizeof text, sysroot, "/proc/driver/nvidia/version") < 0)
        return;
    /* "... Kernel Module  580.159.04  Release Build ...": the first word that is all digits and dots */
    char *rest;
    for (char *word = strtok_r(text, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest))
        if (strchr(word, '.') && !word[strspn(word, "0123456789.")]) {
            snprintf(t->driver, sizeof t->driver, "%s", word);
            return;
        }
}

static void read_gpu(struct topology *t, unsigned i, const char *sysroot)
{
    struct topology_gpu *gpu = &t->gpu[i];
    const char *address = t->list.gpu[i].pci;
    char text[4096];
    pci_read(&gpu->pci, sysroot, address);
    settle_node(t, &gpu->pci);
    gpu->now = gpu->pci.now;
    gpu->most = gpu->pci.most;
    memcpy(gpu->cpus, gpu->pci.cpus, sizeof gpu->cpus);
    if (gpu->pci.numa_node >= 0)
        snprintf(gpu->nodes, sizeof gpu->nodes, "%d", gpu->pci.numa_node);
    if (t->list.vendor == GPU_AMD)
        kfd_name(gpu->name, sizeof gpu->name, sysroot, address);
    else if (sysfile_read(text, sizeof text, sysroot, "/proc/driver/nvidia/gpus/%s/information",
                          address) >= 0)
        sysfile_field(text, "Model:", gpu->name, sizeof gpu->name);
    CLEAN(gpu->name);
}

/* What is not told leaves the text alone. */
static void take_mask(char *text, size_t size, const unsigned long *mask, size_t mask_bytes)
{
    struct bitset set = {0};
    memcpy(set.word, mask, mask_bytes);
    if (!bitset_empty(&set))
        bitset_text(&set, text, size);
}

static void take_nvml_gpu(struct topology_gpu *gpu, const struct nvml_gpu *told)
{
    if (told->name[0])
        snprintf(gpu->name, sizeof gpu->name, "%s", told->name);
    CLEAN(gpu->name);
    if (told->most_gen > 0 && told->most_width > 0)
        gpu->most = (struct pci_link){(unsigned)told->most_gen, (unsigned)told->most_width};
    take_mask(gpu->nodes, sizeof gpu->nodes, told->nodes, sizeof told->nodes);
}

static void take_nvml_links(struct topology *t)
{
    for (unsigned i = 0; i < t->list.n; i++) {
        const struct nvml_gpu *a = topology_nvml(t, i);
        for (unsigned j = 0; a && j < t->list.n; j++) {
            const struct nvml_gpu *b = topology_nvml(t, j);
            if (!b || i == j)
                continue;
            int both = a->links < b->links ? a->links : b->links;
            t->links[i][j] = a->switched && b->switched ? (uint8_t)both : a->links_to[j];
            if (t->links[i][j] && a->link_mbps > 0)
                t->link_mbps[i][j] = (unsigned)a->link_mbps;
        }
    }
}

static void name_users(struct nvml_gpu *gpu, const char *sysroot)
{
    for (unsigned i = 0; i < gpu->users_n && i < NVML_USERS_MAX; i++) {
        struct nvml_user *user = &gpu->user[i];
        if (sysfile_read(user->name, sizeof user->name, sysroot, "/proc/%d/comm", (int)user->pid) <
            0)
            user->name[0] = '\0';
        user->name[strcspn(user->name, "\n")] = '\0';
        CLEAN(user->name);
    }
}

static void take_nvml(struct topology *t, const char *sysroot, struct nvml_ask *ask,
                      unsigned limit_ms)
{
    t->nvml = ask ? nvml_ask_finish(ask, limit_ms) : NULL;
    for (unsigned i = 0; i < t->list.n; i++) {
        if (!topology_nvml(t, i))
            continue;
        take_nvml_gpu(&t->gpu[i], &t->nvml->gpu[i]);
        name_users(&t->nvml->gpu[i], sysroot);
    }
    take_nvml_links(t);
}

/* ---- all ---- */

/* The matrix of one GPU is all in /sys; but its memory may be a NUMA node of its own, and then NVML knows which. */
static bool needs_nvml(const struct topology *t, unsigned want)
{
    bool only_memory = false;
    for (unsigned i = 0; i < t->nodes_n; i++)
        only_memory |= t->node[i].cpus_n == 0;
    return t->list.vendor == GPU_NVIDIA && (want != NVML_MATRIX || t->list.n > 1 || only_memory);
}

int topology_read(struct topology **ret, const char *sysroot, unsigned want, unsigned nvml_limit_ms,
                  struct err *err)
{
    struct topology *t = calloc(1, sizeof *t);
    if (!t)
        return err_set_errno(err, -ENOMEM, "topology");
    t->sysroot = sysroot;
    int rc = gpu_list_read(&t->list, sysroot, err);
    if (rc < 0) {
        topology_free(t);
        return rc;
    }
    numa_read(t, sysroot);
    /* NVML is asked by another process while this one reads files. */
    struct nvml_ask *ask = needs_nvml(t, want) ? nvml_ask_start(&t->list, sysroot, want) : NULL;
    read_cpu(t, sysroot);
    read_driver(t, sysroot);
    for (unsigned i = 0; i < t->list.n; i++)
        read_gpu(t, i, sysroot);
    nic_read_all(t, sysroot);
    for (unsigned i = 0; i < t->nics_n; i++)
        settle_node(t, &t->nic[i].pci);
    if (t->list.vendor == GPU_AMD)
        kfd_links(&t->list, sysroot, t->links, t->link_mbps);
    take_nvml(t, sysroot, ask, nvml_limit_ms);
    *ret = t;
    return 0;
}

void topology_free(struct topology *t)
{
    if (t)
        free(t->nvml);
    free(t);
}

const struct nvml_gpu *topology_nvml(const struct topology *t, unsigned i)
{
    if (!t->nvml || !t->nvml->usable || t->nvml->gpu[i].error[0])
        return NULL;
    return &t->nvml->gpu[i];
}

bool topology_is_model(const char *name, const char *parts)
{
    for (const char *part = parts; part; part = strchr(part, '|')) {
        part += *part == '|';
        size_t n = strcspn(part, "|");
        for (const char *at = name; (at = memmem(at, strlen(at), part, n)); at++) {
            char before = at == name ? ' ' : at[-1], after = at[n];
            bool digit = after >= '0' && after <= '9';
            bool letter = (before >= 'A' && before <= 'Z') || (before >= '0' && before <= '9');
            if (!letter && !digit)
                return true;
        }
    }
    return false;
}

void topology_bridge(const struct topology *t, struct pci_device *bridge, const char *address)
{
    pci_read(bridge, t->sysroot, address);
}

enum pci_near topology_near(const struct topology *t, unsigned i, unsigned j)
{
    /* nvmlGpuTopologyLevel_t: 0 one board, 10 single switch, 20 several, 30 host bridge, 40 node, 50 system */
    static const enum pci_near levels[] = {PCI_PIX, PCI_PIX, PCI_PXB, PCI_PHB, PCI_NODE, PCI_SYS};
    const struct nvml_gpu *gpu = topology_nvml(t, i);
    int level = gpu ? gpu->level[j] : -1;
    if (i != j && level >= 0 && level % 10 == 0 && (size_t)level / 10 < ARRAY_LEN(levels))
        return levels[level / 10];
    return pci_near(&t->gpu[i].pci, &t->gpu[j].pci);
}

void topology_cell(const struct topology *t, unsigned a, unsigned b, char ret[8])
{
    unsigned n = t->list.n;
    const struct pci_device *x = a < n ? &t->gpu[a].pci : &t->nic[a - n].pci;
    const struct pci_device *y = b < n ? &t->gpu[b].pci : &t->nic[b - n].pci;
    if (a == b)
        snprintf(ret, 8, "X");
    else if (a < n && b < n && t->links[a][b] && t->list.vendor == GPU_AMD)
        snprintf(ret, 8, "XGMI");
    else if (a < n && b < n && t->links[a][b])
        snprintf(ret, 8, "NV%u", t->links[a][b]);
    else if (a < n && b < n)
        snprintf(ret, 8, "%s", pci_near_name(topology_near(t, a, b)));
    else /* two ports of one card are two NICs at one address */
        snprintf(ret, 8, "%s",
                 strcmp(x->address, y->address) ? pci_near_name(pci_near(x, y)) : "PIX");
}

int topology_nearest_nic(const struct topology *t, unsigned i)
{
    enum pci_near least = PCI_NEAR_N;
    unsigned ties = 0, before = 0;
    for (unsigned k = 0; k < t->rdma_n; k++) {
        if (t->nic[k].down)
            continue;
        enum pci_near near = pci_near(&t->gpu[i].pci, &t->nic[k].pci);
        ties = near < least ? 1 : ties + (near == least);
        least = near < least ? near : least;
    }
    if (ties == 0)
        return -1;
    /* GPUs as far from the same NICs take turns. */
    for (unsigned k = 0; k < i; k++)
        before += t->gpu[k].pci.numa_node == t->gpu[i].pci.numa_node;
    unsigned skip = before % ties;
    for (unsigned k = 0; k < t->rdma_n; k++)
        if (!t->nic[k].down && pci_near(&t->gpu[i].pci, &t->nic[k].pci) == least && skip-- == 0)
            return (int)k;
    return -1;
}
