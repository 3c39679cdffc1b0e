/* SPDX-License-Identifier: MIT */
/* What is printed, to the column, and the matrix of pairs. The lines of nccl-tests here were written by its formats. */
#include "../../agent/bench/pairs.h"
#include "../../agent/bench/text.h"
#include "../harness.h"

#include <stdio.h>
#include <stdlib.h>

static char *text;
static size_t text_n;

static FILE *begin(void)
{
    free(text);
    return open_memstream(&text, &text_n);
}

static const char *line_of(struct bench_half out_of_place, struct bench_half in_place)
{
    const struct bench_result r = {.size = 1048576,
                                   .count = 262144,
                                   .type = BENCH_TYPE_FLOAT,
                                   .op = BENCH_OP_SUM,
                                   .root = -1,
                                   .out_of_place = out_of_place,
                                   .in_place = in_place,
                                   .has_in_place = true};
    FILE *out = begin();
    bench_text_result(out, &r);
    fclose(out);
    return text;
}

TEST(a_result_is_a_line_of_nccl_tests)
{
    struct bench_half half = {.time = 23.456, .alg_bw = 44.7, .bus_bw = 78.2, .wrong = 0};
    CHECK_STR(
        line_of(half, (struct bench_half){.wrong = -1}),
        "     1048576        262144     float     sum      -1    23.46   44.70   78.20       0"
        "     0.00    0.00    0.00    N/A\n");
    half = (struct bench_half){
        .time = 1234567, .alg_bw = 1234.5, .bus_bw = 99999.6, .wrong = 123456789};
    CHECK_STR(
        line_of(half, half),
        "     1048576        262144     float     sum      -1  1234567  1234.5  100000  1.23457e+08"
        "  1234567  1234.5  100000  1.23457e+08\n");
}

TEST(a_number_keeps_as_many_decimals_as_fit)
{
    static const struct {
        double time, bw;
        const char *want;
    } CASES[] = {
        {0, 0, "     0.00    0.00    0.00"},
        {9999.994, 999.994, "  9999.99  999.99  999.99"},
        {9999.996, 999.996, "  10000.0  1000.0  1000.0"},
        {99999.96, 9999.96, "   100000   10000   10000"},
        {9999999.6, 999999.6, "  1.0e+07   1e+06   1e+06"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct bench_half half = {
            .time = CASES[i].time, .alg_bw = CASES[i].bw, .bus_bw = CASES[i].bw};
        CHECK_HAS(line_of(half, half), CASES[i].want);
    }
}

static struct bench_run two_gpus(void)
{
    static struct bench_device devices[2] = {{.rank = 1,
                                              .device = 1,
                                              .pid = 1235,
                                              .host = "box",
                                              .bus = "0000:2a:00.0",
                                              .name = "NVIDIA H200"},
                                             {.rank = 0,
                                              .device = 0,
                                              .pid = 1234,
                                              .host = "box",
                                              .bus = "0000:18:00.0",
                                              .name = "NVIDIA H200"}};
    static char *notes[] = {"Reducing maxBytes to 64 due to memory limitation", "later"};
    static struct bench_result results[2];
    results[0] = (struct bench_result){.size = 64,
                                       .out_of_place = {.bus_bw = 10, .checked = 0.5},
                                       .in_place = {.bus_bw = 20, .checked = 1},
                                       .has_in_place = true};
    results[1] =
        (struct bench_result){.size = 32, .out_of_place = {.bus_bw = 36, .wrong = 5, .checked = 1}};
    return (struct bench_run){.collective = BENCH_ALL_REDUCE,
                              .ranks = 2,
                              .nccl_library = 22809,
                              .nccl_headers = 22807,
                              .min_bytes = 8,
                              .max_bytes = 128,
                              .step_factor = 2,
                              .iterations = 20,
                              .warmup = 1,
                              .check = 1,
                              .devices = devices,
                              .devices_n = 2,
                              .results = results,
                              .results_n = 2,
                              .notes = notes,
                              .notes_n = 1};
}

TEST(the_header_is_that_of_nccl_tests_below_a_line_of_ours)
{
    struct bench_run run = two_gpus();
    FILE *out = begin();
    bench_text_header(out, &run);
    bench_text_columns(out);
    fclose(out);
    CHECK_STR(
        text,
        "# launch bench 0.1.0: 2 processes, a GPU each, nccl-headers=22807 nccl-library=22809\n"
        "# Collective test starting: all_reduce_perf\n"
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 128 step: 2(factor) warmup iters: 1 iters: 20 agg "
        "iters: 1 validation: 1 graph: 0 unalign: 0\n"
        "#\n"
        "# Using devices\n"
        "#  Rank  0 Group  0 Pid   1234 on        box device  0 [0000:18:00] NVIDIA H200\n"
        "#  Rank  1 Group  0 Pid   1235 on        box device  1 [0000:2a:00] NVIDIA H200\n"
        "#\n"
        "# Reducing maxBytes to 64 due to memory limitation\n"
        "#\n"
        "#                                                              out-of-place               "
        "        in-place          \n"
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong     "
        "time   algbw   busbw  #wrong \n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             "
        "(us)  (GB/s)  (GB/s)         \n");
}

TEST(the_footer_has_the_verdict_and_what_was_sampled)
{
    struct bench_run run = two_gpus();
    run.notes_n = 2;
    FILE *out = begin();
    bench_text_footer(out, &run, -1, 1);
    fclose(out);
    CHECK_STR(text, "# Out of bounds values : 1 FAILED\n"
                    "# Avg bus bandwidth    : 22 \n"
                    "# Checked by a sample  : from 64 bytes on, at least 50 % of the elements\n"
                    "# later\n"
                    "#\n"
                    "# Collective test concluded: all_reduce_perf\n"
                    "#\n"
                    "\n");
}

TEST(the_average_may_be_a_tenth_below_what_is_asked_for)
{
    struct bench_run run = two_gpus();
    CHECK(bench_fast_enough(&run, -1));
    CHECK(bench_fast_enough(&run, 24.4));
    CHECK(!bench_fast_enough(&run, 24.5));
    FILE *out = begin();
    bench_text_footer(out, &run, 24.5, 2);
    fclose(out);
    CHECK_HAS(text, "# Avg bus bandwidth    : 22 FAILED\n");
}

/* ---- pairs ---- */

static struct bench_pair pairs[12];

/* Four ranks; rank 3 is behind a slower kind of link; both its pair with 0 and the pair 1-2 are slow for their kind. */
static struct bench_run four_ranks(void)
{
    static struct bench_device devices[4];
    struct bench_run run = two_gpus();
    run.ranks = 4;
    run.devices = devices;
    run.devices_n = 4;
    run.pairs = pairs;
    run.pairs_n = 0;
    for (int from = 0; from < 4; from++) {
        devices[from] = (struct bench_device){.rank = from, .device = from};
        snprintf(devices[from].bus, sizeof devices[from].bus, "0000:0%d:00.0", from);
        for (int to = 0; to < 4; to++)
            if (from != to)
                pairs[run.pairs_n++] = (struct bench_pair){
                    .from = from, .to = to, .size = 64, .alg_bw = from == 3 || to == 3 ? 20 : 40};
    }
    pairs[4].alg_bw = 30; /* 1 to 2 */
    pairs[9].alg_bw = 15; /* 3 to 0 */
    return run;
}

static struct topology *nvlinks(void)
{
    static struct topology t;
    t.list.n = 4;
    t.list.vendor = GPU_AMD; /* links are then all there is to know */
    for (unsigned i = 0; i < 4; i++) {
        snprintf(t.list.gpu[i].pci, sizeof t.list.gpu[i].pci, "0000:0%u:00.0", i);
        for (unsigned j = 0; j < 4; j++)
            t.links[i][j] = i != j && i != 3 && j != 3;
    }
    return &t;
}

TEST(a_pair_is_slow_beside_those_with_its_kind_of_link)
{
    struct bench_run run = four_ranks();
    char link[8];
    pairs_link(&run, nvlinks(), 0, 1, link);
    CHECK_STR(link, "XGMI");
    CHECK(pairs_median(&run, nvlinks(), "XGMI") == 40);
    FILE *out = begin();
    pairs_text(out, &run, nvlinks());
    fclose(out);
    CHECK_HAS(
        text,
        "# slow: rank 1 to rank 2, 30.00 GB/s: 75 % of the median of all pairs linked by XGMI\n");
    CHECK_HAS(text,
              "# slow: rank 3 to rank 0, 15.00 GB/s: 75 % of the median of all pairs linked by ");
    CHECK(!strstr(text, "rank 0 to rank 3"));
}

TEST(without_a_topology_a_pair_is_slow_beside_all)
{
    struct bench_run run = four_ranks();
    pairs[0].wrong = 7;
    FILE *out = begin();
    pairs_text(out, &run, NULL);
    fclose(out);
    CHECK_STR(text, "# 64 bytes from each to each, one pair at a time\n"
                    "# one way, GB/s: from the rank of the row to that of the column\n"
                    "                 0         1         2         3\n"
                    "       0         X     40.00     40.00     20.00\n"
                    "       1     40.00         X     30.00     20.00\n"
                    "       2     40.00     40.00         X     20.00\n"
                    "       3     15.00     20.00     20.00         X\n"
                    "# slow: rank 3 to rank 0, 15.00 GB/s: 60 % of the median of all pairs\n"
                    "# wrong: rank 0 to rank 1, 7 elements\n");
}

TEST(both_ways_is_a_matrix_of_its_own_where_it_was_measured)
{
    struct bench_run run = four_ranks();
    for (unsigned i = 0; i < run.pairs_n; i++) {
        pairs[i].both_bw = 55.5;
        pairs[i].alg_bw = 40;
    }
    run.pairs_n--;
    FILE *out = begin();
    pairs_text(out, &run, NULL);
    fclose(out);
    CHECK_HAS(text, "# both ways at once, the sum, GB/s");
    CHECK_HAS(text, "       3     55.50     55.50         -         X\n");
    CHECK_HAS(text, "# no slow pair: none is below 80 % of the median of all\n");
}

TEST(each_size_has_its_own_matrix_and_its_own_slow_pairs)
{
    static struct bench_pair both[24];
    struct bench_run run = four_ranks();
    for (unsigned i = 0; i < 12; i++) {
        both[i] = pairs[i];
        both[i].alg_bw = 10;
        both[12 + i] = pairs[i];
        both[12 + i].size = 128;
    }
    run.pairs = both;
    run.pairs_n = 24;
    FILE *out = begin();
    pairs_text(out, &run, NULL);
    fclose(out);
    CHECK_HAS(text, "# 64 bytes from each to each");
    CHECK_HAS(text, "       3     10.00     10.00     10.00         X\n"
                    "# no slow pair: none is below 80 % of the median of all\n"
                    "# 128 bytes from each to each, one pair at a time\n");
    CHECK_HAS(text, "# slow: rank 3 to rank 0, 15.00 GB/s: 60 % of the median of all pairs\n");
}
