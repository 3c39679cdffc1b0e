/* SPDX-License-Identifier: MIT */
/* The airlock of hwloc: fills struct machine from a machine that somebody described. The library is loaded when it is
 * needed; only its header must be there to build. Must never decide anything. */
#include "machine.h"

#if __has_include(<hwloc.h>)

#include <dlfcn.h>
#include <hwloc.h>
#include <string.h>

#define LIBRARY "libhwloc.so.15"

/* The functions we call, under their own names: the macro parts the list from its two uses. */
/* clang-format off */
#define CALLS(X) X(topology_init) X(topology_set_xml) X(topology_set_synthetic) X(topology_load)   \
    X(topology_destroy) X(get_type_depth) X(get_nbobjs_by_depth) X(get_obj_by_depth)               \
    X(bitmap_first) X(bitmap_next)
/* clang-format on */

struct calls {
#define MEMBER(name) __typeof__(&hwloc_##name) name;
    CALLS(MEMBER)
#undef MEMBER
};

static bool load(struct calls *c)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
#define FIND(name) *(void **)&c->name = dlsym(library, "hwloc_" #name);
    CALLS(FIND)
#undef FIND
#define HERE(name) &&c->name
    return true CALLS(HERE);
#undef HERE
}

/* The object's CPUs that are there, as the kernel numbers them. */
static struct bitset cpus_of(const struct calls *c, hwloc_const_cpuset_t cpuset)
{
    struct bitset set = {0};
    for (int i = c->bitmap_first(cpuset); i >= 0 && i < BITSET_MAX; i = c->bitmap_next(cpuset, i))
        bitset_add(&set, i);
    return set;
}

/* Calls on(m, obj, cpus) for every object of a type. */
static void each(const struct calls *c, hwloc_topology_t topology, hwloc_obj_type_t type,
                 struct machine *m,
                 void (*on)(struct machine *m, hwloc_obj_t obj, const struct bitset *cpus))
{
    int depth = c->get_type_depth(topology, type);
    if (depth == HWLOC_TYPE_DEPTH_UNKNOWN || depth == HWLOC_TYPE_DEPTH_MULTIPLE)
        return;
    unsigned n = c->get_nbobjs_by_depth(topology, depth);
    for (unsigned i = 0; i < n; i++) {
        hwloc_obj_t obj = c->get_obj_by_depth(topology, depth, i);
        struct bitset cpus = cpus_of(c, obj->cpuset);
        on(m, obj, &cpus);
    }
}

static void on_cpu(struct machine *m, hwloc_obj_t obj, const struct bitset *cpus)
{
    (void)obj;
    bitset_or(&m->cpus, cpus);
}

static void on_package(struct machine *m, hwloc_obj_t obj, const struct bitset *cpus)
{
    for (int i = -1; (i = bitset_next(cpus, i)) >= 0;)
        m->cpu[i].package = (int)obj->os_index;
}

static void on_core(struct machine *m, hwloc_obj_t obj, const struct bitset *cpus)
{
    (void)obj;
    for (int i = -1; (i = bitset_next(cpus, i)) >= 0;)
        m->cpu[i].core = bitset_next(cpus, -1);
}

/* Called from the smallest cache to the largest: the last one stays. */
static void on_cache(struct machine *m, hwloc_obj_t obj, const struct bitset *cpus)
{
    (void)obj;
    for (int i = -1; (i = bitset_next(cpus, i)) >= 0;)
        m->cpu[i].cache = bitset_next(cpus, -1);
}

/* hwloc also gives CPUs to nodes that have memory only: those near them. Of several, the one with the lowest number has
 * the CPU, as in the kernel's files, where the others come later. */
static void on_node(struct machine *m, hwloc_obj_t obj, const struct bitset *cpus)
{
    int node = (int)obj->os_index;
    if (node < 0 || node >= BITSET_MAX)
        return;
    for (int i = -1; (i = bitset_next(cpus, i)) >= 0;)
        if (m->cpu[i].node < 0 || m->cpu[i].node > node)
            m->cpu[i].node = node;
    bitset_add(&m->nodes, node);
    if (obj->attr && obj->attr->numanode.local_memory > 0)
        bitset_add(&m->memory, node);
}

static void on_node_again(struct machine *m, hwloc_obj_t obj, const struct bitset *cpus)
{
    int node = (int)obj->os_index;
    int first = bitset_next(cpus, -1);
    if (bitset_has(&m->nodes, node))
        m->near[node] = first < 0 ? m->cpu[bitset_next(&m->cpus, -1)].node : m->cpu[first].node;
}

static bool fill(const struct calls *c, hwloc_topology_t topology, struct machine *m)
{
    static const hwloc_obj_type_t caches[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE,
                                              HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE,
                                              HWLOC_OBJ_L5CACHE};
    each(c, topology, HWLOC_OBJ_PU, m, on_cpu);
    if (bitset_empty(&m->cpus))
        return false;
    for (int i = 0; i < BITSET_MAX; i++)
        m->cpu[i].node = -1;
    each(c, topology, HWLOC_OBJ_NUMANODE, m, on_node);
    for (int i = -1; (i = bitset_next(&m->cpus, i)) >= 0;)
        if (m->cpu[i].node < 0) {
            m->cpu[i].node = 0;
            bitset_add(&m->nodes, 0);
        }
    each(c, topology, HWLOC_OBJ_NUMANODE, m, on_node_again);
    each(c, topology, HWLOC_OBJ_PACKAGE, m, on_package);
    each(c, topology, HWLOC_OBJ_CORE, m, on_core);
    for (size_t i = 0; i < ARRAY_LEN(caches); i++)
        each(c, topology, caches[i], m, on_cache);
    return true;
}

/* hwloc itself would fall back to the real machine when it can't read a description, hence not its own getenv(). */
static bool describe(const struct calls *c, hwloc_topology_t topology, const char *variable)
{
    if (!variable)
        return true;
    int (*set)(hwloc_topology_t, const char *) =
        strcmp(variable, "HWLOC_XMLFILE") == 0 ? c->topology_set_xml : c->topology_set_synthetic;
    return set(topology, getenv(variable)) == 0;
}

int machine_read_hwloc(struct machine *m, const char *variable, struct err *err)
{
    struct calls c;
    hwloc_topology_t topology;
    if (!load(&c))
        return err_set(err, -ENOSYS,
                       "%s is set, but there is no " LIBRARY ": unset it, or install hwloc",
                       variable ? variable : "hwloc");
    if (c.topology_init(&topology) < 0)
        return err_set_errno(err, -ENOMEM, "hwloc");
    bool ok =
        describe(&c, topology, variable) && c.topology_load(topology) == 0 && fill(&c, topology, m);
    c.topology_destroy(topology);
    if (!ok)
        return err_set(err, -EINVAL, "%s: '%s' is no machine that hwloc can read",
                       variable ? variable : "hwloc", variable ? getenv(variable) : "this machine");
    return 0;
}

#else

int machine_read_hwloc(struct machine *m, const char *variable, struct err *err)
{
    (void)m;
    return err_set(err, -ENOSYS,
                   "%s is set, but this launch was built without hwloc's headers: unset it",
                   variable);
}

#endif
