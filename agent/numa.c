/* SPDX-License-Identifier: MIT */
/* See numa.h. */
#include "numa.h"

#include "sysfile.h"

#include <stdio.h>

#define NODES "/sys/devices/system/node"
#define CPUS "/sys/devices/system/cpu"
#define NUMBER_MAX 99999 /* of a package that can be believed */

static int package_of(const char *sysroot, unsigned cpu)
{
    long long package;
    int rc = sysfile_number(&package, sysroot, CPUS "/cpu%u/topology/physical_package_id", cpu);
    return rc < 0 || package < 0 || package > NUMBER_MAX ? 0 : (int)package;
}

/* Of a text made of lines "key   <n> kB"; 0: not told. */
static uint64_t memory_in(const char *text, const char *key)
{
    char value[32];
    return sysfile_field(text, key, value, sizeof value) ? strtoull(value, NULL, 10) << 10 : 0;
}

static uint64_t read_memory(const char *sysroot, unsigned node)
{
    char text[4096], key[32];
    snprintf(key, sizeof key, "Node %u MemTotal:", node);
    if (sysfile_read(text, sizeof text, sysroot, NODES "/node%u/meminfo", node) < 0)
        return 0;
    return memory_in(text, key);
}

/* A node's own figure leaves out what a virtual machine was given after its start: the only node has it all. */
static uint64_t read_all_memory(const char *sysroot)
{
    char text[4096];
    if (sysfile_read(text, sizeof text, sysroot, "/proc/meminfo") < 0)
        return 0;
    return memory_in(text, "MemTotal:");
}

static void add(struct topology *t, const char *sysroot, unsigned id, const struct bitset *cpus)
{
    if (t->nodes_n == TOPOLOGY_NODES_MAX)
        return;
    struct topology_node *node = &t->node[t->nodes_n++];
    int first = bitset_next(cpus, -1);
    *node = (struct topology_node){.id = (int)id, .package = -1, .cpus_n = bitset_count(cpus)};
    bitset_text(cpus, node->cpus, sizeof node->cpus);
    if (first >= 0)
        node->package = package_of(sysroot, (unsigned)first);
    node->memory_bytes = read_memory(sysroot, id);
    t->cpus_n += node->cpus_n;
    bool known = node->package < 0;
    for (unsigned i = 0; i + 1 < t->nodes_n; i++)
        known |= t->node[i].package == node->package;
    t->packages_n += !known;
}

void numa_read(struct topology *t, const char *sysroot)
{
    struct bitset online, cpus;
    if (sysfile_list(&online, sysroot, NODES "/online"))
        for (int id = -1; (id = bitset_next(&online, id)) >= 0;)
            if (sysfile_list(&cpus, sysroot, NODES "/node%d/cpulist", id))
                add(t, sysroot, (unsigned)id, &cpus);
    if (t->nodes_n == 0 && sysfile_list(&cpus, sysroot, CPUS "/online"))
        add(t, sysroot, 0, &cpus);
    uint64_t all = t->nodes_n == 1 ? read_all_memory(sysroot) : 0;
    if (all)
        t->node[0].memory_bytes = all;
}
