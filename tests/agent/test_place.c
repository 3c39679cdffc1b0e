/* SPDX-License-Identifier: MIT */
/* agent/place.c: every mode on machines built here, and what must hold on any machine. */
#include "../../agent/place.h"
#include "../harness.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define RANKS_MAX 64

static struct machine machine;
static struct gpu_list gpus;
static struct gpu_set set;
static struct place places[RANKS_MAX];
static char note[PLACE_NOTE_BYTES];
static struct place_question question;

/* Packages, nodes in each, caches in each, cores in each; CPUs are numbered as Linux does: first threads first. */
static void build(int packages, int nodes, int caches, int cores, int threads)
{
    int all = packages * nodes * caches * cores;
    memset(&machine, 0, sizeof machine);
    memset(machine.near, 0xff, sizeof machine.near);
    for (int i = 0; i < all * threads; i++) {
        int core = i % all, cache = core / cores, node = cache / caches;
        machine.cpu[i] = (struct machine_cpu){
            .node = node, .package = node / nodes, .core = core, .cache = cache * cores};
        bitset_add(&machine.cpus, i);
        bitset_add(&machine.nodes, node);
        machine.near[node] = node;
    }
    machine.threads = 1;
    machine.allowed = machine.cpus;
    machine.memory = machine.nodes;
    memset(&gpus, 0, sizeof gpus);
    memset(&set, 0, sizeof set);
    question = (struct place_question){.machine = &machine,
                                       .gpus = &gpus,
                                       .gpu_set = &set,
                                       .cpus = bitset_count(&machine.allowed),
                                       .quota = UINT_MAX};
}

/* GPUs at these nodes, the job has all of them, a rank each. */
static void give_gpus(unsigned n, const int nodes[])
{
    gpus.vendor = GPU_NVIDIA;
    gpus.n = set.n = question.ranks = n;
    for (unsigned i = 0; i < n; i++) {
        gpus.gpu[i].numa_node = nodes[i];
        set.index[i] = (int)i;
    }
}

static void allow(const char *cpus)
{
    CHECK(bitset_parse(&machine.allowed, cpus));
    bitset_and(&machine.allowed, &machine.cpus);
    question.cpus = bitset_count(&machine.allowed);
}

static int ask(enum affinity affinity)
{
    struct err err = {0};
    question.affinity = affinity;
    int rc = place_ranks(places, &question, note, &err);
    CHECK(rc == 0 || err.text[0]);
    return rc;
}

/* The CPUs of all ranks, "0-3 4-7". */
static const char *cpus(enum affinity affinity)
{
    static char text[2048];
    size_t used = 0;
    CHECK_INT(ask(affinity), ==, 0);
    for (uint32_t i = 0; i < question.ranks; i++) {
        char one[128];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "",
                                 bitset_text(&places[i].cpus, one, sizeof one));
    }
    return text;
}

static const char *memory(enum mem_policy policy)
{
    static char text[512];
    size_t used = 0;
    question.mem_policy = policy;
    CHECK_INT(ask(question.affinity), ==, 0);
    for (uint32_t i = 0; i < question.ranks; i++) {
        char one[64];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "",
                                 bitset_text(&places[i].memory, one, sizeof one));
    }
    return text;
}

TEST(node_gives_the_cpus_of_the_gpus_node)
{
    build(2, 1, 1, 4, 2);
    give_gpus(4, (int[]){1, 0, 0, 1});
    CHECK_STR(cpus(AFFINITY_NODE), "4-7,12-15 0-3,8-11 0-3,8-11 4-7,12-15");
    CHECK_STR(note, "");
    CHECK_INT(places[0].node, ==, 1);
    CHECK_INT(places[0].gpu, ==, 0);
}

TEST(socket_gives_all_nodes_of_the_package)
{
    build(2, 2, 1, 2, 1);
    give_gpus(2, (int[]){1, 2});
    CHECK_STR(cpus(AFFINITY_NODE), "2-3 4-5");
    CHECK_STR(cpus(AFFINITY_SOCKET), "0-3 4-7");
    allow("0-2,7"); /* node 2 has none of these */
    CHECK_STR(cpus(AFFINITY_SOCKET), "0-2 ");
    CHECK_HAS(note, "rank 1 is not bound: it belongs to NUMA node 2");
}

TEST(exclusive_divides_a_nodes_cores_with_all_their_threads)
{
    build(2, 1, 1, 5, 2);
    give_gpus(4, (int[]){0, 0, 1, 1});
    CHECK_STR(cpus(AFFINITY_EXCLUSIVE), "0-2,10-12 3-4,13-14 5-7,15-17 8-9,18-19");
}

TEST(jobs_with_different_gpus_have_different_exclusive_cores)
{
    build(1, 1, 1, 8, 1);
    give_gpus(4, (int[]){0, 0, 0, 0});
    set.n = question.ranks = 2;
    CHECK_STR(cpus(AFFINITY_EXCLUSIVE), "0-1 2-3");
    set.index[0] = 2, set.index[1] = 3;
    CHECK_STR(cpus(AFFINITY_EXCLUSIVE), "4-5 6-7");
    CHECK_STR(cpus(AFFINITY_CORES), "0-3 4-7"); /* which divides among this job's ranks */
    allow("0-2");                               /* too few for the others' GPUs, too */
    CHECK_STR(cpus(AFFINITY_EXCLUSIVE), "0-1 2");
}

TEST(cores_that_others_have_for_themselves_are_left_to_them)
{
    struct bitset taken;
    build(1, 1, 1, 4, 2);
    give_gpus(2, (int[]){0, 0});
    CHECK(bitset_parse(&taken, "1,6")); /* a thread takes its core */
    question.taken = &taken;
    CHECK_STR(cpus(AFFINITY_EXCLUSIVE), "0,4 3,7");
    CHECK(bitset_parse(&taken, "0-1")); /* all that the first GPU has: by rank then */
    CHECK_STR(cpus(AFFINITY_EXCLUSIVE), "2,6 3,7");
    CHECK(bitset_parse(&taken, "0-2"));
    CHECK_INT(ask(AFFINITY_EXCLUSIVE), ==, -EINVAL);
    CHECK(bitset_parse(&taken, "0-3"));
    CHECK_INT(ask(AFFINITY_EXCLUSIVE), ==, -EINVAL);
    set.n = question.ranks = 1; /* whose own cores nobody has: they stay the same */
    set.index[0] = 1;
    CHECK(bitset_parse(&taken, "0-1"));
    CHECK_STR(cpus(AFFINITY_EXCLUSIVE), "2-3,6-7");
}

TEST(more_exclusive_ranks_than_cores_are_refused_in_one_line)
{
    struct err err;
    build(2, 1, 1, 2, 2);
    give_gpus(4, (int[]){0, 0, 0, 1});
    question.affinity = AFFINITY_EXCLUSIVE;
    CHECK_INT(place_ranks(places, &question, note, &err), ==, -EINVAL);
    CHECK_STR(err.text,
              "--affinity=exclusive: 3 ranks belong to NUMA node 0, which has 2 cores for them; "
              "start fewer, or let them share with --affinity=cores");
    CHECK_STR(cpus(AFFINITY_CORES), "0,4 1,5 0,4 2-3,6-7");
}

TEST(ranks_that_share_a_gpu_divide_what_it_has)
{
    build(1, 1, 1, 8, 1);
    give_gpus(2, (int[]){0, 0});
    question.ranks = 5; /* 0, 2, 4 on the first */
    CHECK_STR(cpus(AFFINITY_EXCLUSIVE), "0-1 4-5 2 6-7 3");
    question.ranks = 9;
    CHECK_INT(ask(AFFINITY_EXCLUSIVE), ==, -EINVAL);
}

TEST(core_complexes_are_taken_in_turn_the_largest_first)
{
    build(1, 1, 3, 2, 1);
    give_gpus(4, (int[]){0, 0, 0, 0});
    CHECK_STR(cpus(AFFINITY_CORE_COMPLEX), "0-1 2-3 4-5 0-1");
    allow("0,2-5");
    CHECK_STR(cpus(AFFINITY_CORE_COMPLEX), "2-3 4-5 0 2-3");
}

TEST(ranks_without_gpus_are_laid_out_evenly_over_nodes_neighbours_together)
{
    build(2, 1, 1, 4, 1);
    question.ranks = 4;
    CHECK_STR(cpus(AFFINITY_NODE), "0-3 0-3 4-7 4-7");
    CHECK_STR(cpus(AFFINITY_EXCLUSIVE), "0-1 2-3 4-5 6-7");
    CHECK_INT(places[3].gpu, ==, -1);
    question.ranks = 3;
    CHECK_STR(cpus(AFFINITY_NODE), "0-3 0-3 4-7");
    allow("0,4-7"); /* nodes get ranks as they have cores */
    question.ranks = 5;
    CHECK_STR(cpus(AFFINITY_EXCLUSIVE), "0 4 5 6 7");
}

TEST(a_gpu_whose_node_is_not_told_goes_where_there_is_room)
{
    build(2, 1, 1, 4, 1);
    give_gpus(2, (int[]){-1, -1});
    CHECK_STR(cpus(AFFINITY_NODE), "0-3 4-7");
    give_gpus(2, (int[]){INT_MAX, 77});
    CHECK_STR(cpus(AFFINITY_NODE), "0-3 4-7");
    set.index[1] = -1; /* a MIG instance */
    CHECK_STR(cpus(AFFINITY_EXCLUSIVE), "0-3 4-7");
}

TEST(a_gpu_at_memory_without_cpus_goes_to_the_nearest_node_with_some)
{
    build(2, 1, 1, 4, 1);
    for (int node = 2; node < 10; node++) {
        bitset_add(&machine.nodes, node);
        bitset_add(&machine.memory, node);
        machine.near[node] = node % 2;
    }
    give_gpus(2, (int[]){3, 4});
    CHECK_STR(cpus(AFFINITY_NODE), "4-7 0-3");
    CHECK_STR(memory(MEM_POLICY_BIND), "1 0"); /* never the GPUs' memory */
    CHECK_STR(memory(MEM_POLICY_PREFER), "1 0");
    CHECK_STR(memory(MEM_POLICY_INTERLEAVE), "0-1 0-1");
    CHECK_STR(memory(MEM_POLICY_NONE), " ");
}

TEST(a_cpuset_outside_of_the_gpus_node_leaves_a_rank_unbound_and_says_so)
{
    build(2, 1, 1, 4, 1);
    give_gpus(2, (int[]){0, 1});
    allow("5");
    CHECK_STR(cpus(AFFINITY_NODE), " 5");
    CHECK_STR(
        note,
        "rank 0 is not bound: it belongs to NUMA node 0, of which this process may use no CPU");
    CHECK_STR(cpus(AFFINITY_EXCLUSIVE), " 5");
    CHECK(note[0]);
}

TEST(memory_that_this_process_may_not_use_is_in_no_policy)
{
    build(2, 2, 1, 2, 1);
    give_gpus(2, (int[]){0, 3});
    CHECK_INT(ask(AFFINITY_SOCKET), ==, 0);
    CHECK_STR(memory(MEM_POLICY_BIND), "0-1 2-3");
    CHECK(bitset_parse(&machine.memory, "1-2"));
    CHECK_STR(memory(MEM_POLICY_BIND), "1 2");
    CHECK_STR(memory(MEM_POLICY_PREFER), " ");
    CHECK_STR(note, "rank 0 has no memory policy: it belongs to NUMA node 0, of which this process "
                    "may use no memory");
}

TEST(threads_are_a_ranks_share_of_the_cores_it_may_use)
{
    build(2, 1, 1, 8, 2);
    give_gpus(4, (int[]){0, 0, 0, 1});
    CHECK_INT(ask(AFFINITY_NODE), ==, 0);
    CHECK_INT(places[0].threads, ==, 2); /* 8 cores, 3 ranks */
    CHECK_INT(places[3].threads, ==, 8);
    CHECK_INT(ask(AFFINITY_EXCLUSIVE), ==, 0);
    CHECK_INT(places[0].threads, ==, 3);
    CHECK_INT(places[2].threads, ==, 2);
    CHECK_INT(ask(AFFINITY_NONE), ==, 0);
    CHECK_INT(places[0].threads, ==, 8); /* 32 CPUs, 4 ranks */
    for (int i = 0; i < 32; i++)         /* as if cores had not been read */
        machine.cpu[i].core = i;
    machine.threads = 2;
    CHECK_INT(ask(AFFINITY_NODE), ==, 0);
    CHECK_INT(places[0].threads, ==, 2);
    CHECK_INT(places[3].threads, ==, 8);
    question.quota = 6;
    question.cpus = 6;
    CHECK_INT(ask(AFFINITY_NODE), ==, 0);
    CHECK_INT(places[3].threads, ==, 1);
    question.quota = 1;
    CHECK_INT(ask(AFFINITY_NODE), ==, 0);
    CHECK_INT(places[3].threads, ==, 1);
}

TEST(without_affinity_nobody_is_bound)
{
    build(2, 1, 1, 4, 1);
    give_gpus(2, (int[]){0, 1});
    CHECK_STR(cpus(AFFINITY_NONE), " ");
    CHECK_STR(memory(MEM_POLICY_BIND), "0 1");
}

/* ---- What holds on any machine ---- */

static int below(int n)
{
    return (int)(random() % n);
}

static void build_any(void)
{
    build(1 + below(2), 1 + below(4), 1 + below(4), 1 + below(6), 1 + below(2));
    int n = (int)bitset_count(&machine.cpus), nodes = (int)bitset_count(&machine.nodes);
    struct bitset allowed = {0};
    for (int i = 0; i < n; i++)
        if (below(4))
            bitset_add(&allowed, i);
    bitset_add(&allowed, below(n));
    if (below(2))
        machine.allowed = allowed;
    question.cpus = bitset_count(&machine.allowed);
    int at[GPU_MAX] = {0};
    unsigned has = (unsigned)below(9);
    for (unsigned i = 0; i < has; i++)
        at[i] = below(nodes + 1) - 1;
    give_gpus(has, at);
    set.n = has ? 1 + (unsigned)below((int)has) : 0;
    for (unsigned i = 0; i < set.n; i++) /* the last ones, sometimes not known which */
        set.index[i] = below(20) ? (int)(has - set.n + i) : -1;
    question.ranks = 1 + (unsigned)below(2 * n < RANKS_MAX ? 2 * n : RANKS_MAX);
    question.mem_policy = (enum mem_policy)below(MEM_POLICIES_N);
}

static void check_inside(const struct bitset *part, const struct bitset *whole)
{
    struct bitset outside = *part;
    bitset_minus(&outside, whole);
    CHECK(bitset_empty(&outside));
}

static void check_disjoint(void)
{
    struct bitset cores = {0};
    for (uint32_t r = 0; r < question.ranks; r++) {
        struct bitset mine = {0};
        for (int i = -1; (i = bitset_next(&places[r].cpus, i)) >= 0;)
            bitset_add(&mine, machine.cpu[i].core);
        struct bitset both = mine;
        bitset_and(&both, &cores);
        CHECK(bitset_empty(&both));
        bitset_or(&cores, &mine);
    }
}

/* Ranks without GPUs: nodes with as many cores have as many ranks, but for one. */
static void check_balanced(void)
{
    int ranks[64] = {0}, low = INT_MAX, high = 0;
    for (uint32_t r = 0; r < question.ranks; r++)
        ranks[places[r].node]++;
    for (int node = -1; (node = bitset_next(&machine.nodes, node)) >= 0;) {
        low = ranks[node] < low ? ranks[node] : low;
        high = ranks[node] > high ? ranks[node] : high;
    }
    CHECK_INT(high - low, <=, 1);
}

TEST(on_random_machines_the_promises_of_every_mode_hold)
{
    static struct place again[RANKS_MAX];
    unsigned refused = 0, bound = 0;
    srandom(5);
    for (int round = 0; round < 3000; round++) {
        build_any();
        enum affinity mode = AFFINITY_NONE + (enum affinity)below(AFFINITIES_N - AFFINITY_NONE);
        bool whole = bitset_count(&machine.allowed) == bitset_count(&machine.cpus);
        if (ask(mode) < 0) {
            CHECK(mode == AFFINITY_EXCLUSIVE);
            refused++;
            continue;
        }
        for (uint32_t r = 0; r < question.ranks; r++) {
            check_inside(&places[r].cpus, &machine.allowed);
            check_inside(&places[r].memory, &machine.memory);
            CHECK(places[r].threads >= 1);
            CHECK(bitset_has(&machine.nodes, places[r].node));
            CHECK(!bitset_empty(&places[r].cpus) || mode == AFFINITY_NONE || note[0]);
            CHECK(!bitset_empty(&places[r].cpus) || mode == AFFINITY_NONE || !whole);
            bound += !bitset_empty(&places[r].cpus);
        }
        if (mode == AFFINITY_EXCLUSIVE)
            check_disjoint();
        if (set.n == 0 && whole)
            check_balanced();
        memcpy(again, places, sizeof again);
        CHECK_INT(ask(mode), ==, 0);
        for (uint32_t r = 0; r < question.ranks; r++)
            CHECK(memcmp(&again[r].cpus, &places[r].cpus, sizeof again[r].cpus) == 0 &&
                  again[r].node == places[r].node && again[r].threads == places[r].threads);
    }
    CHECK(refused > 50 && bound > 5000);
}
