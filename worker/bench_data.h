/* SPDX-License-Identifier: MIT */
/* What the ranks put in and what must come out of a reduction, element by element. Pure.
 *
 * An element depends on (seed, rank, index modulo BENCH_PERIOD) alone: so a table of that length says what a gigabyte must
 * look like, and memcmp() compares it. The period is prime: nothing that a collective cuts its work into is a multiple of
 * it, and a part that went to the wrong place shows.
 *
 * Values are such that the result is exact, in whatever order the ranks are combined: integers wrap; sums of floating-point
 * numbers are whole numbers, no partial sum of which needs more bits than there are, times a power of two that is the
 * element's own; products are powers of two, and one number with all its bits. An average of integers does not wrap, and
 * one of floating-point numbers over a number of ranks that is no power of two is right within 2 units in the last place:
 * there two ranks put in something other than 0, as NCCL's rounding depends on the GPU. */
#ifndef LAUNCH_WORKER_BENCH_DATA_H
#define LAUNCH_WORKER_BENCH_DATA_H

#include "../proto/bench.h"

#include <stddef.h>
#include <stdint.h>

#define BENCH_PERIOD ((size_t)65521)
#define BENCH_ELEMENT_BYTES 8 /* the largest type */

struct bench_data {
    enum bench_type type;
    int op; /* enum bench_op; -1: nothing is calculated */
    int ranks;
    uint64_t seed;
};

/* The first n <= BENCH_PERIOD elements of what this rank puts in. */
void bench_data_input(const struct bench_data *d, int rank, void *table, size_t n);

/* The same of what must come out of the reduction. */
void bench_data_reduced(const struct bench_data *d, void *table, size_t n);

/* What mulsum multiplies this rank's input by, in the type. */
void bench_data_scalar(const struct bench_data *d, int rank, void *ret_scalar);

/* How many of n elements differ from the table's, which begins again after BENCH_PERIOD; got[0] is compared with
 * table[first % BENCH_PERIOD]. The table holds as much as is compared. reduced: it is one of bench_data_reduced(). */
size_t bench_data_wrong(const struct bench_data *d, const void *got, const void *table,
                        size_t first, size_t n, int reduced);

#endif
