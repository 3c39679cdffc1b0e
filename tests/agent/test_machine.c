/* SPDX-License-Identifier: MIT */
/* agent/machine.c and agent/hwloc.c: made-up trees of /sys, described machines, and this very one from both sources. */
#include "../../agent/machine.h"
#include "../harness.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define ALL (MACHINE_PACKAGES | MACHINE_CORES | MACHINE_CACHES)
#define CPU "sys/devices/system/cpu/"
#define NODE "sys/devices/system/node/"

static struct machine *read_root(const char *sysroot, unsigned details)
{
    struct machine *m = NULL;
    struct err err;
    if (machine_read(&m, sysroot, details, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return m;
}

static const char *text_of(const struct bitset *set)
{
    static char text[4][256];
    static unsigned turn;
    return bitset_text(set, text[turn = (turn + 1) % 4], sizeof text[0]);
}

static void __attribute__((format(printf, 2, 3))) put(const char *text, const char *format, ...)
{
    char path[128];
    va_list ap;
    va_start(ap, format);
    vsnprintf(path, sizeof path, format, ap);
    va_end(ap);
    test_write(path, text);
}

/* One file of each kind for CPU i. */
static void put_cpu(int i, const char *siblings, const char *package, const char *shared)
{
    put(siblings, CPU "cpu%d/topology/thread_siblings_list", i);
    put(package, CPU "cpu%d/topology/physical_package_id", i);
    static const char *const kinds[][2] = {
        {"1", "Data"}, {"1", "Instruction"}, {"2", "Unified"}, {"3", "Unified"}};
    for (int k = 0; k < 4; k++) {
        put(kinds[k][0], CPU "cpu%d/cache/index%d/level", i, k);
        put(kinds[k][1], CPU "cpu%d/cache/index%d/type", i, k);
        put(k < 3 ? siblings : shared, CPU "cpu%d/cache/index%d/shared_cpu_list", i, k);
    }
}

/* Two packages of two cores with two threads, a node each, and two nodes of memory only. */
static void put_machine(void)
{
    static const char *const siblings[] = {"0,4\n", "1,5\n", "2,6\n", "3,7\n"};
    for (int i = 0; i < 8; i++)
        put_cpu(i, siblings[i % 4], i % 4 < 2 ? "0\n" : "36\n",
                i % 4 < 2 ? "0-1,4-5\n" : "2-3,6-7\n");
    test_write(NODE "online", "0-1,8-9\n");
    test_write(NODE "has_cpu", "0-1\n");
    test_write(NODE "has_memory", "0-1,8-9\n");
    test_write(NODE "node0/cpulist", "0-1,4-5\n");
    test_write(NODE "node1/cpulist", "2-3,6-7\n");
    test_write(NODE "node8/cpulist", "\n");
    test_write(NODE "node9/cpulist", "\n");
    test_write(NODE "node8/distance", "80 120 10 160\n");
    test_write(NODE "node9/distance", "120 80 160 10\n");
    test_write("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-7\nMems_allowed_list:\t0-9\n");
}

TEST(nodes_packages_cores_and_caches_are_read)
{
    put_machine();
    CHECK(machine_has_nodes(test_dir()));
    struct machine *m = read_root(test_dir(), ALL);
    CHECK_STR(text_of(&m->cpus), "0-7");
    CHECK_STR(text_of(&m->allowed), "0-7");
    CHECK_STR(text_of(&m->nodes), "0-1,8-9");
    CHECK_STR(text_of(&m->memory), "0-1,8-9");
    CHECK_INT(m->threads, ==, 1);
    for (int i = 0; i < 8; i++) {
        CHECK_INT(m->cpu[i].node, ==, i % 4 / 2);
        CHECK_INT(m->cpu[i].package, ==, i % 4 < 2 ? 0 : 36);
        CHECK_INT(m->cpu[i].core, ==, i % 4);
        CHECK_INT(m->cpu[i].cache, ==, i % 4 < 2 ? 0 : 2);
    }
    free(m);
}

TEST(a_node_without_cpus_is_near_the_nearest_that_has_some)
{
    put_machine();
    struct machine *m = read_root(test_dir(), 0);
    CHECK_INT(m->near[0], ==, 0);
    CHECK_INT(m->near[1], ==, 1);
    CHECK_INT(m->near[8], ==, 0);
    CHECK_INT(m->near[9], ==, 1);
    CHECK_INT(m->near[5], ==, -1);
    free(m);
    test_write(NODE "node9/distance", "junk\n");
    m = read_root(test_dir(), 0);
    CHECK_INT(m->near[9], ==, 0);
    free(m);
}

TEST(what_the_mask_or_the_cpuset_takes_away_is_not_allowed)
{
    put_machine();
    test_write("proc/self/status", "Cpus_allowed_list:\t1-2,5,64\nMems_allowed_list:\t1\n");
    struct machine *m = read_root(test_dir(), ALL);
    CHECK_STR(text_of(&m->cpus), "0-7");
    CHECK_STR(text_of(&m->allowed), "1-2,5");
    CHECK_STR(text_of(&m->memory), "1");
    free(m);
}

TEST(where_cores_are_not_read_the_first_tells_how_many_threads_one_has)
{
    put_machine();
    struct machine *m = read_root(test_dir(), 0);
    CHECK_INT(m->threads, ==, 2);
    CHECK_INT(m->cpu[4].core, ==, 4);
    free(m);
    test_write("proc/self/status", "Cpus_allowed_list:\t0-3\n"); /* one thread of each */
    m = read_root(test_dir(), 0);
    CHECK_INT(m->threads, ==, 1);
    free(m);
}

TEST(offline_cpus_are_in_no_node_and_split_no_core)
{
    put_machine();
    test_write(NODE "node0/cpulist", "0,4-5\n");
    put("4-5\n", CPU "cpu5/topology/thread_siblings_list"); /* nonsense, but a list with itself */
    put("x\n", CPU "cpu4/topology/thread_siblings_list");
    struct machine *m = read_root(test_dir(), MACHINE_CORES);
    CHECK_STR(text_of(&m->allowed), "0,2-7");
    CHECK(m->cpu[5].core >= 0 && m->cpu[5].core < 8);
    free(m);
}

TEST(a_kernel_without_numa_is_one_node)
{
    test_write(CPU "online", "0-3\n");
    CHECK(!machine_has_nodes(test_dir()));
    struct machine *m = read_root(test_dir(), ALL);
    CHECK_STR(text_of(&m->cpus), "0-3");
    CHECK_STR(text_of(&m->nodes), "0");
    CHECK_INT(m->near[0], ==, 0);
    CHECK_INT(m->cpu[3].core, ==, 3);
    CHECK_INT(m->cpu[3].package, ==, -1);
    free(m);
}

TEST(files_full_of_junk_leave_a_machine_with_cpus)
{
    put_machine();
    test_write(NODE "online", "\xff\xfe");
    test_write(CPU "online", "zzz");
    test_write("proc/self/status", "Cpus_allowed_list:\t0-7\n");
    struct machine *m = read_root(test_dir(), ALL);
    CHECK(!bitset_empty(&m->allowed)); /* as many as the C library counts */
    free(m);
    test_write(NODE "online", "0-1,8-9,4000\n");
    test_write(NODE "node1/cpulist", "no list");
    m = read_root(test_dir(), ALL);
    CHECK_STR(text_of(&m->cpus), "0-1,4-5");
    CHECK_INT(m->near[1], ==, 0);
    free(m);
}

TEST(without_smt_no_sibling_is_read)
{
    put_machine();
    test_write(CPU "smt/active", "0\n");
    struct machine *m = read_root(test_dir(), MACHINE_CORES);
    CHECK_INT(m->cpu[4].core, ==, 4);
    free(m);
}

/* ---- hwloc ---- */

static void need_hwloc(void)
{
#if !__has_include(<hwloc.h>)
    test_skip("built without hwloc.h");
#endif
    if (!dlopen("libhwloc.so.15", RTLD_NOW))
        test_skip("no libhwloc.so.15");
}

/* An empty place, so that no mask is known. */
static struct machine *described(const char *variable, const char *value)
{
    need_hwloc();
    setenv(variable, value, 1);
    CHECK_STR(machine_described(), variable);
    struct machine *m = read_root("/nowhere", ALL);
    unsetenv(variable);
    return m;
}

TEST(hwloc_fills_the_same_struct_from_a_synthetic_machine)
{
    struct machine *m = described("HWLOC_SYNTHETIC", "pack:2 numa:2 l3:2 core:3 pu:2");
    CHECK_STR(text_of(&m->cpus), "0-47");
    CHECK_STR(text_of(&m->allowed), "0-47");
    CHECK_STR(text_of(&m->nodes), "0-3");
    CHECK_STR(text_of(&m->memory), "0-3");
    for (int i = 0; i < 48; i++) {
        CHECK_INT(m->cpu[i].node, ==, i / 12);
        CHECK_INT(m->cpu[i].package, ==, i / 24);
        CHECK_INT(m->cpu[i].core, ==, i / 2 * 2);
        CHECK_INT(m->cpu[i].cache, ==, i / 6 * 6);
    }
    CHECK_INT(m->near[3], ==, 3);
    free(m);
}

TEST(hwloc_reads_a_machine_from_xml_inside_our_mask_if_it_is_this_one)
{
    need_hwloc();
    char path[512];
    snprintf(path, sizeof path, "%s/m.xml", test_dir());
    test_write(
        "m.xml",
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
        "<topology version=\"2.0\">\n"
        "<object type=\"Machine\" os_index=\"0\" cpuset=\"0xf\" complete_cpuset=\"0xf\" "
        "allowed_cpuset=\"0xf\" nodeset=\"0x5\" complete_nodeset=\"0x5\" allowed_nodeset=\"0x5\" "
        "gp_index=\"1\">\n"
        "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0xf\" complete_cpuset=\"0xf\" "
        "nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"2\" local_memory=\"1073741824\"/>\n"
        "<object type=\"NUMANode\" os_index=\"2\" cpuset=\"0xf\" complete_cpuset=\"0xf\" "
        "nodeset=\"0x4\" complete_nodeset=\"0x4\" gp_index=\"3\" local_memory=\"1073741824\"/>\n"
        "<object type=\"PU\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x5\" "
        "complete_nodeset=\"0x5\" gp_index=\"4\"/>\n"
        "<object type=\"PU\" os_index=\"1\" cpuset=\"0x2\" complete_cpuset=\"0x2\" nodeset=\"0x5\" "
        "complete_nodeset=\"0x5\" gp_index=\"5\"/>\n"
        "<object type=\"PU\" os_index=\"2\" cpuset=\"0x4\" complete_cpuset=\"0x4\" nodeset=\"0x5\" "
        "complete_nodeset=\"0x5\" gp_index=\"6\"/>\n"
        "<object type=\"PU\" os_index=\"3\" cpuset=\"0x8\" complete_cpuset=\"0x8\" nodeset=\"0x5\" "
        "complete_nodeset=\"0x5\" gp_index=\"7\"/>\n"
        "</object>\n</topology>\n");
    test_write("proc/self/status", "Cpus_allowed_list:\t2-63\n");
    setenv("HWLOC_XMLFILE", path, 1);
    struct machine *m = read_root(test_dir(), ALL);
    CHECK_STR(text_of(&m->allowed), "0-3"); /* of another machine: our mask says nothing */
    free(m);
    setenv("HWLOC_THISSYSTEM", "1", 1);
    m = read_root(test_dir(), ALL);
    CHECK_STR(text_of(&m->cpus), "0-3");
    CHECK_STR(text_of(&m->allowed), "2-3");
    CHECK_STR(text_of(&m->nodes), "0,2");
    CHECK_INT(m->cpu[1].node, ==, 0); /* node 2 has memory only */
    CHECK_INT(m->near[2], ==, 0);
    free(m);
}

TEST(a_description_that_hwloc_does_not_take_is_told_in_one_line)
{
    need_hwloc();
    char path[512];
    struct machine *m = NULL;
    struct err err;
    snprintf(path, sizeof path, "%s/m.xml", test_dir());
    test_write("m.xml", "<topology version=\"2.0\"><object type=");
    setenv("HWLOC_XMLFILE", path, 1);
    CHECK_INT(machine_read(&m, "", ALL, &err), ==, -EINVAL);
    CHECK_HAS(err.text, "HWLOC_XMLFILE");
    CHECK_HAS(err.text, "m.xml");
    unsetenv("HWLOC_XMLFILE");
    setenv("HWLOC_SYNTHETIC", "pack:two", 1);
    CHECK_INT(machine_read(&m, "", ALL, &err), ==, -EINVAL);
    CHECK_HAS(err.text, "HWLOC_SYNTHETIC");
    CHECK(m == NULL);
}

TEST(both_sources_agree_about_this_very_machine)
{
    need_hwloc();
    struct err err;
    struct machine *sys = read_root("", ALL), *hw = calloc(1, sizeof *hw);
    CHECK_INT(machine_read_hwloc(hw, NULL, &err), ==, 0);
    bitset_and(&hw->cpus, &sys->allowed); /* hwloc leaves the rest out, or not, by its version */
    CHECK_STR(text_of(&hw->cpus), text_of(&sys->allowed));
    CHECK_STR(text_of(&hw->nodes), text_of(&sys->nodes));
    CHECK_STR(text_of(&hw->memory), text_of(&sys->memory));
    for (int i = -1; (i = bitset_next(&sys->allowed, i)) >= 0;) {
        CHECK_INT(hw->cpu[i].node, ==, sys->cpu[i].node);
        CHECK_INT(hw->cpu[i].package, ==, sys->cpu[i].package);
        CHECK_INT(hw->cpu[i].core, ==, sys->cpu[i].core);
        CHECK_INT(hw->cpu[i].cache, ==, sys->cpu[i].cache);
    }
    for (int node = -1; (node = bitset_next(&sys->nodes, node)) >= 0;)
        CHECK_INT(hw->near[node], ==, sys->near[node]);
    free(sys);
    free(hw);
}
