/* SPDX-License-Identifier: MIT */
/* agent/placement.c: what settings and GPUs come to on a machine made of files. */
#include "../../agent/cpus.h"
#include "../../agent/placement.h"
#include "../harness.h"

#include <errno.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <stdio.h>

#define NODE "sys/devices/system/node/"

static struct job_spec spec;
static struct plan plan;
static struct placement placement;

/* Two nodes of four CPUs; workers and GPUs, at node 1 and 0 in turn. */
static void setup(uint32_t workers, unsigned gpus)
{
    test_write(NODE "online", "0-1\n");
    test_write(NODE "has_cpu", "0-1\n");
    test_write(NODE "node0/cpulist", "0-3\n");
    test_write(NODE "node1/cpulist", "4-7\n");
    spec_finish(&spec);
    CHECK_INT(spec_init(&spec), ==, 0);
    plan = (struct plan){.world_size = workers, .cpus = 8, .quota = UINT_MAX};
    plan.gpus.n = plan.gpu_set.n = gpus;
    plan.gpus.vendor = gpus ? GPU_NVIDIA : GPU_NONE;
    for (unsigned i = 0; i < gpus; i++) {
        plan.gpus.gpu[i].numa_node = 1 - (int)i % 2;
        plan.gpu_set.index[i] = (int)i;
    }
}

static int make(void)
{
    struct err err = {0};
    int rc = placement_make(&placement, &spec, &plan, test_dir(), &err);
    CHECK(rc == 0 || err.text[0]);
    return rc;
}

/* What --affinity=auto comes to. */
static enum affinity chosen(void)
{
    CHECK_INT(make(), ==, 0);
    CHECK((placement.places != NULL) == (placement.affinity != AFFINITY_NONE));
    enum affinity affinity = placement.affinity;
    placement_finish(&placement);
    return affinity;
}

TEST(by_default_ranks_with_gpus_are_bound_to_nodes_where_there_are_several)
{
    setup(2, 2);
    CHECK_INT(chosen(), ==, AFFINITY_NODE);
    setup(1, 1);
    CHECK_INT(chosen(), ==, AFFINITY_NODE);
    test_write(NODE "has_cpu", "0\n"); /* the others are memory only */
    CHECK_INT(chosen(), ==, AFFINITY_NONE);
}

TEST(by_default_nobody_else_is_bound)
{
    setup(4, 0);
    CHECK_INT(chosen(), ==, AFFINITY_NONE);
    setup(4, 2); /* more workers than GPUs: they work on the CPU */
    CHECK_INT(chosen(), ==, AFFINITY_NONE);
    spec.share_gpus = true;
    CHECK_INT(chosen(), ==, AFFINITY_NODE);
    setup(1, 2); /* it may use both, at two nodes */
    CHECK_INT(chosen(), ==, AFFINITY_NONE);
    spec.gpu_visibility = GPU_VISIBILITY_RANK;
    CHECK_INT(chosen(), ==, AFFINITY_NODE);
    setup(2, 2);
    spec.affinity = AFFINITY_NONE;
    CHECK_INT(chosen(), ==, AFFINITY_NONE);
}

TEST(a_rank_is_spawned_at_its_place)
{
    setup(2, 2);
    spec.mem_policy = MEM_POLICY_BIND;
    CHECK_INT(make(), ==, 0);
    struct spawn_place place = placement_spawn(&placement, 0);
    char text[32];
    CHECK_STR(bitset_text(place.cpus, text, sizeof text), "4-7");
    CHECK_STR(bitset_text(place.nodes, text, sizeof text), "1");
    CHECK_INT(place.mem_policy, ==, MPOL_BIND);
    CHECK_INT(placement_threads(&placement, 0, 99), ==, 4);
    placement_finish(&placement);
}

TEST(without_a_placement_there_is_nothing_to_do_and_the_share_is_fair)
{
    setup(2, 0);
    CHECK_INT(make(), ==, 0);
    const struct placement *none[] = {NULL, &placement};
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        CHECK(!placement_binds(none[i]));
        struct spawn_place place = placement_spawn(none[i], 1);
        CHECK(!place.cpus && !place.nodes);
        CHECK_INT(placement_threads(none[i], 1, 3), ==, 3);
        CHECK_INT(placement_threads(none[i], 1, 0), ==, 1);
    }
}

TEST(a_report_of_unbound_ranks_has_the_fair_share_too)
{
    setup(2, 0);
    spec.report_placement = true;
    CHECK_INT(make(), ==, 0);
    CHECK(!placement_binds(&placement));
    CHECK_INT(placement_threads(&placement, 0, 99), ==, 4);
    placement_finish(&placement);
}

TEST(a_quota_bounds_the_threads_of_bound_ranks)
{
    setup(2, 2);
    test_write("proc/self/cgroup", "0::/\n");
    test_write("sys/fs/cgroup/cpu.max", "600000 100000\n");
    plan.quota = cpus_quota(test_dir());
    CHECK_INT(make(), ==, 0);
    CHECK_INT(placement_threads(&placement, 0, 99), ==, 3);
    placement_finish(&placement);
}

TEST(more_exclusive_ranks_than_cores_are_bad_input)
{
    setup(9, 0);
    spec.affinity = AFFINITY_EXCLUSIVE;
    CHECK_INT(make(), ==, -EINVAL);
    placement_finish(&placement);
    spec.affinity = AFFINITY_CORES;
    CHECK_INT(make(), ==, 0);
    placement_finish(&placement);
}

TEST(two_exclusive_jobs_have_different_cpus_and_the_end_of_one_frees_them)
{
    struct placement first;
    char text[2][32];
    setup(1, 0);
    plan.cpus = 4;
    spec.affinity = AFFINITY_EXCLUSIVE;
    test_write("proc/self/status", "Cpus_allowed_list:\t1-3\n");
    CHECK_INT(make(), ==, 0);
    first = placement;
    CHECK_STR(bitset_text(&first.places[0].cpus, text[0], sizeof text[0]), "1-3");
    test_write("proc/self/status", "Cpus_allowed_list:\t0-3\n");
    CHECK_INT(make(), ==, 0);
    CHECK_STR(bitset_text(&placement.places[0].cpus, text[1], sizeof text[1]), "0");
    placement_finish(&placement);
    test_write("proc/self/status", "Cpus_allowed_list:\t2-3\n");
    CHECK_INT(make(), ==, -EINVAL);
    placement_finish(&placement);
    placement_finish(&first);
    CHECK_INT(make(), ==, 0);
    placement_finish(&placement);
}

TEST(without_locks_exclusive_ranks_are_placed_and_a_word_is_said)
{
    setup(2, 0);
    spec.affinity = AFFINITY_EXCLUSIVE;
    test_write("tmp", "in the way");
    CHECK_INT(make(), ==, 0);
    CHECK_HAS(placement.note, "other jobs may take the same exclusive CPUs");
    CHECK_INT(placement.lock, ==, -1);
    placement_finish(&placement);
}
