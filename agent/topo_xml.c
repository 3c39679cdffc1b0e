/* SPDX-License-Identifier: MIT */
/* The topology as NCCL writes it (NCCL_TOPO_DUMP_FILE) and reads it (NCCL_TOPO_FILE): CPUs with their NUMA nodes, below them
 * PCI devices, in those GPUs with their NVLinks. What NCCL finds out by itself (ranks, GPUDirect) is left to it. */
#include "bitset.h"
#include "topo.h"

#include <string.h>

#define STEPS_MAX 32
#define CHAIN_MAX (STEPS_MAX / 2 + 1)
#define CLASS_NVSWITCH 0x068000
#define CLASS_GPU 0x030200

/* The way from the CPU down to a device. A switch has two bridges, its port up and a port down, of which NCCL counts
 * the upper one only. */
struct chain {
    unsigned device, n;
    char step[CHAIN_MAX][PCI_ADDRESS_BYTES];
};

static void make_chain(struct chain *chain, const struct topology *t, unsigned device)
{
    const char *step[STEPS_MAX];
    size_t bytes[STEPS_MAX];
    const struct pci_device *pci = topo_device(t, device);
    unsigned n = pci_steps(pci, step, bytes, STEPS_MAX);
    *chain = (struct chain){.device = device};
    for (unsigned i = n > 1 ? (n - 1) % 2 ? 1 : 2 : n; i < n; i += 2)
        snprintf(chain->step[chain->n++], PCI_ADDRESS_BYTES, "%.*s", (int)bytes[i], step[i]);
    if (!chain->n)
        memcpy(chain->step[chain->n++], pci->address, PCI_ADDRESS_BYTES);
}

static int by_way(const void *a, const void *b)
{
    const struct chain *x = a, *y = b;
    for (unsigned i = 0; i < x->n && i < y->n; i++) {
        int order = strcmp(x->step[i], y->step[i]);
        if (order)
            return order;
    }
    return x->n != y->n ? (x->n > y->n) - (x->n < y->n)
                        : (x->device > y->device) - (x->device < y->device);
}

static void put_indent(FILE *out, unsigned depth)
{
    fprintf(out, "%*s", (int)(2 * depth + 4), "");
}

static void put_pci(FILE *out, const struct pci_device *pci, struct pci_link link)
{
    static const char *const speeds[] = {"", "2.5", "5.0", "8.0", "16.0", "32.0", "64.0"};
    fprintf(out, "<pci busid=\"%s\" class=\"0x%06x\" vendor=\"0x%04x\" device=\"0x%04x\"",
            pci->address, pci->class_code, pci->vendor, pci->device);
    fprintf(out, " subsystem_vendor=\"0x%04x\" subsystem_device=\"0x%04x\"", pci->subsystem_vendor,
            pci->subsystem_device);
    fprintf(out, " link_speed=\"%s%s\" link_width=\"%u\">\n",
            link.gen < ARRAY_LEN(speeds) ? speeds[link.gen] : "", link.gen ? " GT/s PCIe" : "",
            link.width);
}

static void put_gpu(FILE *out, const struct topology *t, unsigned i, unsigned depth)
{
    const struct nvml_gpu *gpu = topology_nvml(t, i);
    put_indent(out, depth);
    fprintf(out, "<gpu dev=\"%u\"", i);
    if (gpu && gpu->cc_major >= 0)
        fprintf(out, " sm=\"%d\"", gpu->cc_major * 10 + gpu->cc_minor);
    fputs(">\n", out);
    if (gpu && gpu->switched) {
        put_indent(out, depth + 1);
        fprintf(out, "<nvlink target=\"fffffff:ffff:ff\" count=\"%d\" tclass=\"0x%06x\"/>\n",
                gpu->links, CLASS_NVSWITCH);
    }
    for (unsigned j = 0; gpu && !gpu->switched && j < t->list.n; j++) {
        if (!t->links[i][j])
            continue;
        put_indent(out, depth + 1);
        fprintf(out, "<nvlink target=\"%s\" count=\"%u\" tclass=\"0x%06x\"/>\n", t->list.gpu[j].pci,
                t->links[i][j], CLASS_GPU);
    }
    for (unsigned j = 0; t->list.vendor == GPU_AMD && j < t->list.n; j++) {
        if (!t->links[i][j])
            continue;
        put_indent(out, depth + 1);
        fprintf(out, "<xgmi target=\"%s\" count=\"%u\" tclass=\"0x%06x\"/>\n", t->list.gpu[j].pci,
                t->links[i][j], t->gpu[j].pci.class_code);
    }
    put_indent(out, depth);
    fputs("</gpu>\n", out);
}

static void put_net(FILE *out, const struct topology *t, unsigned device, unsigned depth)
{
    const struct topology_nic *nic = &t->nic[device - t->list.n];
    put_indent(out, depth);
    fputs("<nic><net name=\"", out);
    topo_put_xml(out, nic->name);
    fprintf(out, "\" speed=\"%u\"/></nic>\n", nic->mbits);
}

/* All chains that agree in their first `depth` steps. */
static void put_level(FILE *out, const struct topology *t, const struct chain *chains, unsigned n,
                      unsigned depth)
{
    for (unsigned i = 0, end; i < n; i = end) {
        const char *address = chains[i].step[depth];
        bool leaf = chains[i].n == depth + 1;
        struct pci_device bridge;
        const struct pci_device *pci = &bridge;
        struct pci_link link;
        for (end = i; end < n && strcmp(chains[end].step[depth], address) == 0; end++)
            continue;
        if (leaf) {
            pci = topo_device(t, chains[i].device);
            link = topo_is_gpu(t, chains[i].device) ? t->gpu[chains[i].device].most : pci->most;
        } else {
            topology_bridge(t, &bridge, address);
            link = bridge.most;
        }
        put_indent(out, depth);
        put_pci(out, pci, link);
        for (; i < end && chains[i].n == depth + 1; i++) {
            if (topo_is_gpu(t, chains[i].device))
                put_gpu(out, t, chains[i].device, depth + 1);
            else
                put_net(out, t, chains[i].device, depth + 1);
        }
        if (i < end)
            put_level(out, t, chains + i, end - i, depth + 1);
        put_indent(out, depth);
        fputs("</pci>\n", out);
    }
}

/* "0000ffff,ffffffff": groups of 32 CPUs, the highest first, as many as the server has. */
static void put_mask(FILE *out, const char *cpus, unsigned words)
{
    struct bitset set;
    (void)!bitset_parse(&set, cpus);
    for (unsigned i = words; i-- > 0;)
        fprintf(out, "%08x%s", (unsigned)(set.word[i / 2] >> i % 2 * 32), i ? "," : "");
}

/* So many words that the highest CPU of the server fits. */
static unsigned mask_words(const struct topology *t)
{
    unsigned words = 1;
    struct bitset set;
    for (unsigned i = 0; i < t->nodes_n; i++) {
        (void)!bitset_parse(&set, t->node[i].cpus);
        for (int cpu = -1; (cpu = bitset_next(&set, cpu)) >= 0;)
            words = (unsigned)cpu / 32 + 1 > words ? (unsigned)cpu / 32 + 1 : words;
    }
    return words;
}

static void put_cpu(FILE *out, const struct topology *t, int id, const char *cpus)
{
    struct chain chains[GPU_MAX + TOPOLOGY_NICS_MAX];
    unsigned n = 0;
    for (unsigned d = 0; d < topo_devices(t); d++)
        if (topo_device(t, d)->numa_node == id)
            make_chain(&chains[n++], t, d);
    if (!n && !*cpus)
        return;
    qsort(chains, n, sizeof chains[0], by_way);
    fprintf(out, "  <cpu numaid=\"%d\"", id);
    if (*cpus) {
        fputs(" affinity=\"", out);
        put_mask(out, cpus, mask_words(t));
        fputc('"', out);
    }
#if defined(__aarch64__)
    fputs(" arch=\"arm64\"", out);
#else
    fputs(" arch=\"x86_64\"", out);
#endif
    fputs(" vendor=\"", out);
    topo_put_xml(out, t->cpu_vendor);
    fprintf(out, "\" familyid=\"%u\" modelid=\"%u\">\n", t->cpu_family, t->cpu_model);
    put_level(out, t, chains, n, 0);
    fputs("  </cpu>\n", out);
}

void topo_xml(FILE *out, const struct topology *t)
{
    fprintf(out, "<system version=\"%d\">\n", t->list.vendor == GPU_AMD ? 2 : 1);
    for (unsigned i = 0; i < t->nodes_n; i++)
        put_cpu(out, t, t->node[i].id, t->node[i].cpus);
    put_cpu(out, t, -1, "");
    fputs("</system>\n", out);
}
