/* SPDX-License-Identifier: MIT */
/* The topology for Graphviz: nodes are NUMA nodes, switches, GPUs and NICs. */
#include "topo.h"

#include <string.h>

/* A quoted string of DOT: "\n" begins a new line in it. */
static void put_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        fputc(*text >= ' ' && *text < 127 ? *text : '?', out);
    }
}

static void put_id(FILE *out, const struct topology *t, unsigned device)
{
    if (topo_is_gpu(t, device))
        fprintf(out, "gpu%u", device);
    else
        fprintf(out, "nic%u", device - t->list.n);
}

static void put_device(FILE *out, const struct topology *t, unsigned device)
{
    fputs("      ", out);
    put_id(out, t, device);
    if (topo_is_gpu(t, device)) {
        fprintf(out, " [label=\"GPU %u\\n", device);
        put_text(out, topo_short_name(t->gpu[device].name));
        fprintf(out, "\\n%s\", fillcolor=\"#d8f0d0\"];\n", topo_device(t, device)->address);
    } else {
        fputs(" [label=\"", out);
        put_text(out, t->nic[device - t->list.n].name);
        fprintf(out, "\\n%s\", fillcolor=\"#fbe7c6\"];\n", topo_device(t, device)->address);
    }
}

static void put_node(FILE *out, const struct topology *t, int id, const char *cpus)
{
    fprintf(out, "    subgraph cluster_node%d {\n      label=\"NUMA node %d\"; style=dashed;\n",
            id + 1, id);
    fprintf(out, "      node%d [label=\"CPUs %s\", fillcolor=\"#dbe6f6\"];\n", id + 1,
            *cpus ? cpus : "none");
    for (unsigned d = 0; d < topo_devices(t); d++) {
        if (topo_device(t, d)->numa_node != id)
            continue;
        if (topo_opens_branch(t, d) && topo_is_switch(t, d))
            fprintf(out, "      switch%u [label=\"PCIe switch\", shape=hexagon];\n", d);
        put_device(out, t, d);
    }
    fputs("    }\n", out);
}

static void put_packages(FILE *out, const struct topology *t)
{
    bool untold = false;
    for (int package = -1; package <= TOPOLOGY_NODES_MAX; package++) {
        bool open = false;
        for (unsigned k = 0; k < t->nodes_n; k++) {
            if (t->node[k].package != package)
                continue;
            if (!open && package >= 0)
                fprintf(out, "  subgraph cluster_package%d {\n    label=\"package %d\";\n", package,
                        package);
            open = true;
            put_node(out, t, t->node[k].id, t->node[k].cpus);
        }
        if (open && package >= 0)
            fputs("  }\n", out);
    }
    for (unsigned d = 0; d < topo_devices(t); d++)
        untold |= topo_device(t, d)->numa_node < 0;
    if (untold)
        put_node(out, t, -1, "");
}

static void put_pcie(FILE *out, const struct topology *t)
{
    char label[16];
    for (unsigned d = 0; d < topo_devices(t); d++) {
        const struct pci_device *device = topo_device(t, d);
        unsigned opener = 0;
        while (!topo_one_branch(t, d, opener))
            opener++;
        topo_link(topo_is_gpu(t, d) ? t->gpu[d].now : device->now, label);
        if (topo_is_switch(t, d)) {
            if (opener == d)
                fprintf(out, "  node%d -- switch%u;\n", device->numa_node + 1, d);
            fprintf(out, "  switch%u -- ", opener);
        } else {
            fprintf(out, "  node%d -- ", device->numa_node + 1);
        }
        put_id(out, t, d);
        fprintf(out, " [label=\"%s\"];\n", label[0] == '-' ? "PCIe" : label);
    }
}

static void put_links(FILE *out, const struct topology *t)
{
    static const char green[] = "color=\"#4f9a2f\", penwidth=3";
    enum topo_middle middle = topo_middle(t);
    char speed[40];
    if (middle != TOPO_NO_MIDDLE)
        fprintf(out, "  middle [label=\"%s\", shape=hexagon, fillcolor=\"#bfe3ae\"];\n",
                middle == TOPO_SWITCHES     ? "NVSwitch"
                : t->list.vendor == GPU_AMD ? "xGMI, every pair"
                                            : "NVLink, every pair");
    for (unsigned i = 0; i < t->list.n; i++) {
        if (middle != TOPO_NO_MIDDLE) {
            topo_put_speed(t, i, i ? 0 : 1, speed);
            fprintf(out, "  gpu%u -- middle [label=\"%s\", %s];\n", i, speed, green);
            continue;
        }
        for (unsigned j = i + 1; j < t->list.n; j++) {
            topo_put_speed(t, i, j, speed);
            if (t->links[i][j])
                fprintf(out, "  gpu%u -- gpu%u [label=\"%s\", %s];\n", i, j, speed, green);
        }
    }
}

void topo_dot(FILE *out, const struct topology *t)
{
    fputs(
        "graph server {\n  graph [fontname=\"sans-serif\", compound=true];\n"
        "  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"sans-serif\"];\n"
        "  edge [fontname=\"sans-serif\", fontsize=10];\n",
        out);
    put_packages(out, t);
    int before = -1;
    for (unsigned k = 0; k < t->nodes_n; k++) {
        if (!t->node[k].cpus_n)
            continue;
        if (before >= 0)
            fprintf(out, "  node%d -- node%d [style=dotted];\n", before + 1, t->node[k].id + 1);
        before = t->node[k].id;
    }
    put_pcie(out, t);
    put_links(out, t);
    fputs("}\n", out);
}
