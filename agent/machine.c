/* SPDX-License-Identifier: MIT */
/* The machine from /sys and /proc. Must never know hwloc's types. */
#include "machine.h"

#include "sysfile.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define NODE "/sys/devices/system/node"
#define CPU "/sys/devices/system/cpu"
#define LIST_BYTES 4096 /* of a list of CPUs or nodes */
#define CACHES_MAX 16   /* index0, index1, ... of a CPU */

bool machine_has_nodes(const char *sysroot)
{
    struct bitset nodes;
    return sysfile_list(&nodes, sysroot, NODE "/has_cpu") && bitset_count(&nodes) > 1;
}

const char *machine_described(void)
{
    static const char *const variables[] = {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC"};
    for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            return variables[i];
    }
    return NULL;
}

/* ---- CPUs and nodes ---- */

static void read_nodes(struct machine *m, const char *sysroot)
{
    struct bitset cpus;
    for (int node = -1; (node = bitset_next(&m->nodes, node)) >= 0;) {
        if (!sysfile_list(&cpus, sysroot, NODE "/node%d/cpulist", node))
            continue;
        bitset_or(&m->cpus, &cpus);
        for (int i = -1; (i = bitset_next(&cpus, i)) >= 0;)
            m->cpu[i].node = node;
        if (!bitset_empty(&cpus))
            m->near[node] = node;
    }
}

/* Of a node without CPUs (memory of a GPU, CXL): its row of distances has one number for each online node. */
static int nearest(const struct machine *m, const char *sysroot, int node)
{
    char text[LIST_BYTES];
    if (sysfile_read(text, sizeof text, sysroot, NODE "/node%d/distance", node) < 0)
        text[0] = '\0';
    int best = -1;
    unsigned long least = 0;
    char *at = text;
    for (int other = -1; (other = bitset_next(&m->nodes, other)) >= 0;) {
        char *end = at;
        unsigned long distance = strtoul(at, &end, 10);
        if (end == at && best >= 0)
            break; /* no more is told, and none of the others can be nearer */
        if (end == at)
            distance = ULONG_MAX; /* not told: as far as can be */
        at = end;
        if (m->near[other] == other && (best < 0 || distance < least)) {
            best = other;
            least = distance;
        }
    }
    return best;
}

static void find_near(struct machine *m, const char *sysroot)
{
    for (int node = -1; (node = bitset_next(&m->nodes, node)) >= 0;)
        if (m->near[node] < 0)
            m->near[node] = nearest(m, sysroot, node);
}

/* Without NUMA in the kernel there are no files of nodes: all is node 0. */
static void one_node(struct machine *m, const char *sysroot)
{
    if (!sysfile_list(&m->cpus, sysroot, CPU "/online"))
        for (long i = sysconf(_SC_NPROCESSORS_CONF); i-- > 0;)
            bitset_add(&m->cpus, (int)i);
    bitset_add(&m->nodes, 0);
    m->near[0] = 0;
}

static void read_all_nodes(struct machine *m, const char *sysroot)
{
    if (sysfile_list(&m->nodes, sysroot, NODE "/online"))
        read_nodes(m, sysroot);
    if (bitset_empty(&m->cpus))
        one_node(m, sysroot);
    find_near(m, sysroot);
    if (!sysfile_list(&m->memory, sysroot, NODE "/has_memory"))
        m->memory = m->nodes;
}

/* ---- Details of the CPUs that are allowed ---- */

static void read_packages(struct machine *m, const char *sysroot)
{
    long long package;
    for (int i = -1; (i = bitset_next(&m->allowed, i)) >= 0;) {
        if (sysfile_number(&package, sysroot, CPU "/cpu%d/topology/physical_package_id", i) == 0 &&
            package >= 0 && package <= INT_MAX)
            m->cpu[i].package = (int)package;
    }
}

static bool has_smt(const char *sysroot)
{
    long long smt;
    return sysfile_number(&smt, sysroot, CPU "/smt/active") < 0 || smt != 0;
}

/* The first core stands for all: a file for each would be a millisecond on a large server. */
static void count_threads(struct machine *m, const char *sysroot)
{
    struct bitset threads;
    int first = bitset_next(&m->allowed, -1);
    if (has_smt(sysroot) &&
        sysfile_list(&threads, sysroot, CPU "/cpu%d/topology/thread_siblings_list", first) &&
        bitset_has(&threads, first)) {
        bitset_and(&threads, &m->allowed);
        m->threads = bitset_count(&threads);
    }
}

/* One file a core: what it says holds for all its threads. */
static void read_cores(struct machine *m, const char *sysroot)
{
    struct bitset done = {0}, threads;
    if (!has_smt(sysroot))
        return;
    for (int i = -1; (i = bitset_next(&m->allowed, i)) >= 0;) {
        if (bitset_has(&done, i) ||
            !sysfile_list(&threads, sysroot, CPU "/cpu%d/topology/thread_siblings_list", i) ||
            !bitset_has(&threads, i))
            continue;
        bitset_or(&done, &threads);
        int core = bitset_next(&threads, -1);
        for (int t = -1; (t = bitset_next(&threads, t)) >= 0;)
            m->cpu[t].core = core;
    }
}

/* The CPUs that share the largest cache of data with CPU i. False: not told. */
static bool largest_cache(struct bitset *ret, const char *sysroot, int i)
{
    long long level, highest = 0;
    char type[32];
    struct bitset shared;
    for (int index = 0; index < CACHES_MAX; index++) {
        if (sysfile_number(&level, sysroot, CPU "/cpu%d/cache/index%d/level", i, index) < 0) {
            if (highest)
                break;
            continue;
        }
        if (level <= highest ||
            sysfile_read(type, sizeof type, sysroot, CPU "/cpu%d/cache/index%d/type", i, index) <
                0 ||
            (type[0] != 'U' && type[0] != 'D') || /* Unified, Data, Instruction */
            !sysfile_list(&shared, sysroot, CPU "/cpu%d/cache/index%d/shared_cpu_list", i, index) ||
            !bitset_has(&shared, i))
            continue;
        highest = level;
        *ret = shared;
    }
    return highest > 0;
}

static void read_caches(struct machine *m, const char *sysroot)
{
    struct bitset done = {0}, shared;
    for (int i = -1; (i = bitset_next(&m->allowed, i)) >= 0;) {
        if (bitset_has(&done, i) || !largest_cache(&shared, sysroot, i))
            continue;
        bitset_or(&done, &shared);
        int cache = bitset_next(&shared, -1);
        for (int c = -1; (c = bitset_next(&shared, c)) >= 0;)
            m->cpu[c].cache = cache;
    }
}

/* ---- All together ---- */

/* What is described is this very machine, as hwloc has it said. */
static bool is_this_system(void)
{
    const char *said = getenv("HWLOC_THISSYSTEM");
    return said && strcmp(said, "1") == 0;
}

/* What the kernel lets this process use: its mask, which is inside its cpuset. What is not told stays as it is. */
static void read_own_limits(struct bitset *cpus, struct bitset *memory, const char *sysroot)
{
    char text[16384], value[LIST_BYTES];
    struct bitset told;
    if (sysfile_read(text, sizeof text, sysroot, "/proc/self/status") < 0)
        return;
    if (sysfile_field(text, "Cpus_allowed_list:", value, sizeof value) &&
        bitset_parse(&told, value) && !bitset_empty(&told))
        *cpus = told;
    if (sysfile_field(text, "Mems_allowed_list:", value, sizeof value) &&
        bitset_parse(&told, value) && !bitset_empty(&told))
        *memory = told;
}

static void read_kernel(struct machine *m, const char *sysroot, unsigned details)
{
    read_all_nodes(m, sysroot);
    bitset_and(&m->allowed, &m->cpus);
    if (details & MACHINE_PACKAGES)
        read_packages(m, sysroot);
    if (details & MACHINE_CORES)
        read_cores(m, sysroot);
    else
        count_threads(m, sysroot);
    if (details & MACHINE_CACHES)
        read_caches(m, sysroot);
}

int machine_read(struct machine **ret, const char *sysroot, unsigned details, struct err *err)
{
    struct machine *m = calloc(1, sizeof *m);
    if (!m)
        return err_set_errno(err, -ENOMEM, "CPUs of this machine");
    m->threads = 1;
    for (int i = 0; i < BITSET_MAX; i++) {
        m->near[i] = -1;
        m->cpu[i] = (struct machine_cpu){.package = -1, .core = i, .cache = i};
    }
    struct bitset memory;
    const char *variable = machine_described();
    memset(&m->allowed, 0xff, sizeof m->allowed);
    memset(&memory, 0xff, sizeof memory);
    if (!variable || is_this_system())
        read_own_limits(&m->allowed, &memory, sysroot);
    int rc = 0;
    if (variable)
        rc = machine_read_hwloc(m, variable, err);
    else
        read_kernel(m, sysroot, details);
    if (rc < 0) {
        free(m);
        return rc;
    }
    bitset_and(&m->allowed, &m->cpus);
    bitset_and(&m->memory, &memory);
    *ret = m;
    return 0;
}
