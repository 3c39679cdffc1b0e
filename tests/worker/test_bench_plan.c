/* SPDX-License-Identifier: MIT */
/* Counts, sizes and what must come out, for every collective. */
#include "../harness.h"

#include "../../worker/bench_plan.h"

#include <math.h>

static struct bench_plan plan(enum bench_collective collective, int ranks, size_t bytes)
{
    return bench_plan_make(collective, BENCH_TYPE_FLOAT, BENCH_OP_SUM, 1, ranks, bytes);
}

TEST(a_share_is_a_whole_number_of_16_bytes)
{
    for (int c = 0; c < BENCH_COLLECTIVES_N; c++)
        for (int type = 0; type < BENCH_TYPES_N; type++)
            for (int ranks = 1; ranks <= 9; ranks++)
                for (size_t bytes = 0; bytes < 2000; bytes += 37) {
                    struct bench_plan p = bench_plan_make(
                        (enum bench_collective)c, (enum bench_type)type, 0, 0, ranks, bytes);
                    size_t most = p.in_n > p.out_n ? p.in_n : p.out_n;
                    CHECK_INT(bench_plan_bytes(&p), ==, most * bench_type_size(p.type));
                    CHECK_INT(bench_plan_bytes(&p), <=, bytes);
                    if (most == p.count)
                        continue;
                    CHECK_INT(p.count * bench_type_size(p.type) % 16, ==, 0);
                    CHECK_INT(most, ==, p.count * (size_t)ranks);
                    CHECK_INT(bytes - bench_plan_bytes(&p), <, 16 * (size_t)ranks);
                }
}

TEST(each_collective_counts_the_bytes_that_nccl_tests_counts)
{
    const struct {
        enum bench_collective collective;
        size_t count, in, out, in_at, out_at;
        double gigabytes, factor;
    } rows[] = {
        {BENCH_ALL_REDUCE, 1000, 1000, 1000, 0, 0, 4e-6, 1.5},
        {BENCH_ALL_GATHER, 248, 248, 992, 248, 0, 3.968e-6, .75},
        {BENCH_REDUCE_SCATTER, 248, 992, 248, 0, 248, 3.968e-6, .75},
        {BENCH_BROADCAST, 1000, 1000, 1000, 0, 0, 4e-6, 1},
        {BENCH_REDUCE, 1000, 1000, 1000, 0, 0, 4e-6, 1},
        {BENCH_ALLTOALL, 248, 992, 992, 0, 0, 3.968e-6, .75},
        {BENCH_GATHER, 248, 248, 992, 248, 0, 3.968e-6, .75},
        {BENCH_SCATTER, 248, 992, 248, 0, 248, 3.968e-6, .75},
        {BENCH_SENDRECV, 1000, 1000, 1000, 0, 0, 4e-6, 1},
    };
    CHECK_INT(sizeof rows / sizeof rows[0], ==, BENCH_COLLECTIVES_N);
    for (size_t i = 0; i < BENCH_COLLECTIVES_N; i++) {
        struct bench_plan p = plan(rows[i].collective, 4, 4000);
        double bus, bandwidth = bench_plan_bandwidth(&p, 2, &bus);
        CHECK_INT(p.count, ==, rows[i].count);
        CHECK_INT(p.in_n, ==, rows[i].in);
        CHECK_INT(p.out_n, ==, rows[i].out);
        CHECK_INT(p.in_at, ==, rows[i].in_at);
        CHECK_INT(p.out_at, ==, rows[i].out_at);
        CHECK(fabs(bandwidth - rows[i].gigabytes / 2) < 1e-12);
        CHECK(fabs(bus - bandwidth * rows[i].factor) < 1e-12);
    }
}

TEST(what_must_come_out_fills_the_result_and_no_more)
{
    for (int c = 0; c < BENCH_COLLECTIVES_N; c++)
        for (int ranks = 1; ranks <= 5; ranks++)
            for (int rank = 0; rank < ranks; rank++)
                for (int in_place = 0; in_place < 2; in_place++) {
                    struct bench_plan p = bench_plan_make(
                        (enum bench_collective)c, BENCH_TYPE_INT32, 0, ranks - 1, ranks, 1600);
                    size_t all = 0;
                    for (int i = 0; i < ranks; i++)
                        all += bench_plan_piece(&p, rank, in_place, i).n;
                    CHECK_INT(all, ==, p.out_n);
                    CHECK_INT(bench_plan_piece(&p, rank, in_place, ranks).n, ==, 0);
                }
}

static void check_piece(enum bench_collective collective, int me, bool in_place, int i, int rank,
                        size_t first)
{
    struct bench_plan p = plan(collective, 3, 480); /* 120 floats, shares of 40, root 1 */
    struct bench_piece piece = bench_plan_piece(&p, me, in_place, i);
    CHECK_INT(piece.rank, ==, rank);
    CHECK_INT(piece.first, ==, first);
}

TEST(each_collective_brings_what_its_definition_says)
{
    check_piece(BENCH_ALL_REDUCE, 2, false, 0, BENCH_REDUCED, 0);
    check_piece(BENCH_ALL_GATHER, 0, false, 2, 2, 0);
    check_piece(BENCH_REDUCE_SCATTER, 2, false, 0, BENCH_REDUCED, 80);
    check_piece(BENCH_BROADCAST, 2, false, 0, 1, 0);
    check_piece(BENCH_REDUCE, 1, false, 0, BENCH_REDUCED, 0);
    check_piece(BENCH_REDUCE, 2, false, 0, BENCH_NOTHING, 0);
    check_piece(BENCH_REDUCE, 2, true, 0, 2, 0);
    check_piece(BENCH_ALLTOALL, 2, false, 1, 1, 80);
    check_piece(BENCH_GATHER, 1, false, 2, 2, 0);
    check_piece(BENCH_GATHER, 2, false, 2, BENCH_NOTHING, 0);
    check_piece(BENCH_GATHER, 2, true, 2, 2, 0);
    check_piece(BENCH_GATHER, 2, true, 1, BENCH_NOTHING, 0);
    check_piece(BENCH_SCATTER, 2, false, 0, 1, 80);
    check_piece(BENCH_SENDRECV, 0, false, 0, 2, 0);
}
