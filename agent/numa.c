/* SPDX-License-Identifier: MIT */
/* See numa.h. */
#include "numa.h"

#include "sysfile.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define NODES "/sys/devices/system/node"
#define CPUS "/sys/devices/system/cpu"
#define NUMBER_MAX 99999 /* of a node or CPU that can be believed */

bool numa_next_range(const char **at, unsigned *ret_first, unsigned *ret_last)
{
    char *end;
    const char *text = *at + strspn(*at, ", \t\n");
    if (*text < '0' || *text > '9')
        return false;
    unsigned long first = strtoul(text, &end, 10), last = first;
    if (*end == '-' && end[1] >= '0' && end[1] <= '9')
        last = strtoul(end + 1, &end, 10);
    if (first > last || last > NUMBER_MAX)
        return false;
    *ret_first = (unsigned)first;
    *ret_last = (unsigned)last;
    *at = end;
    return true;
}

void numa_list_of_mask(char *text, size_t bytes, const unsigned long *mask, unsigned words)
{
    unsigned bits = words * sizeof *mask * CHAR_BIT;
    size_t used = 0;
    for (unsigned bit = 0; bit < bits; bit++) {
        unsigned first = bit;
        while (bit < bits &&
               mask[bit / (sizeof *mask * CHAR_BIT)] >> bit % (sizeof *mask * CHAR_BIT) & 1)
            bit++;
        if (bit == first || used >= bytes)
            continue;
        int n = snprintf(text + used, bytes - used, bit - first > 1 ? "%s%u-%u" : "%s%u",
                         used ? "," : "", first, bit - 1);
        used += (size_t)n;
    }
}

static unsigned count(const char *list)
{
    unsigned n = 0, first, last;
    while (numa_next_range(&list, &first, &last))
        n += last - first + 1;
    return n;
}

static int package_of(const char *sysroot, unsigned cpu)
{
    long long package;
    int rc = sysfile_number(&package, sysroot, CPUS "/cpu%u/topology/physical_package_id", cpu);
    return rc < 0 || package < 0 || package > NUMBER_MAX ? 0 : (int)package;
}

static uint64_t read_memory(const char *sysroot, unsigned node)
{
    char text[4096], key[32], value[32];
    snprintf(key, sizeof key, "Node %u MemTotal:", node);
    if (sysfile_read(text, sizeof text, sysroot, NODES "/node%u/meminfo", node) < 0 ||
        !sysfile_field(text, key, value, sizeof value))
        return 0;
    return strtoull(value, NULL, 10) << 10;
}

static void add(struct topology *t, const char *sysroot, unsigned id, const char *cpus)
{
    if (t->nodes_n == TOPOLOGY_NODES_MAX)
        return;
    struct topology_node *node = &t->node[t->nodes_n++];
    unsigned first, last;
    const char *at = cpus;
    *node = (struct topology_node){.id = (int)id, .package = -1, .cpus_n = count(cpus)};
    snprintf(node->cpus, sizeof node->cpus, "%.*s", (int)strspn(cpus, "0123456789,-"), cpus);
    if (numa_next_range(&at, &first, &last))
        node->package = package_of(sysroot, first);
    node->memory_bytes = read_memory(sysroot, id);
    t->cpus_n += node->cpus_n;
    bool known = node->package < 0;
    for (unsigned i = 0; i + 1 < t->nodes_n; i++)
        known |= t->node[i].package == node->package;
    t->packages_n += !known;
}

void numa_read(struct topology *t, const char *sysroot)
{
    char list[1024], cpus[1024];
    unsigned first, last;
    if (sysfile_read(list, sizeof list, sysroot, NODES "/online") < 0)
        list[0] = '\0';
    for (const char *at = list; numa_next_range(&at, &first, &last);)
        for (unsigned id = first; id <= last && t->nodes_n < TOPOLOGY_NODES_MAX; id++)
            if (sysfile_read(cpus, sizeof cpus, sysroot, NODES "/node%u/cpulist", id) >= 0)
                add(t, sysroot, id, cpus);
    if (t->nodes_n == 0 && sysfile_read(cpus, sizeof cpus, sysroot, CPUS "/online") >= 0)
        add(t, sysroot, 0, cpus);
}
