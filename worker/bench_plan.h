/* SPDX-License-Identifier: MIT */
/* What one collective of one size moves: how much, from where to where, and what must come out. Pure; knows no value.
 * Counts are elements, and nccl-tests' own: where every rank has a share, the share is a whole number of 16 bytes. */
#ifndef LAUNCH_WORKER_BENCH_PLAN_H
#define LAUNCH_WORKER_BENCH_PLAN_H

#include "../proto/bench.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_plan {
    enum bench_collective collective;
    enum bench_type type;
    int op, root; /* -1: none */
    int ranks;
    size_t count;          /* what the collective's argument says */
    size_t in_n, out_n;    /* the send and the receive buffer */
    size_t in_at, out_at;  /* in place, times the rank: where they lie in the one buffer */
    bool in_place_checked; /* false: what comes out in place is undefined */
};

/* A stretch of what must come out. */
struct bench_piece {
    size_t n;
    int rank;     /* whose input, or one of the two below */
    size_t first; /* index in it */
};
#define BENCH_REDUCED (-1) /* all ranks' inputs, reduced */
#define BENCH_NOTHING (-2) /* zeros, as before */

size_t bench_type_size(enum bench_type type);
const char *bench_type_text(enum bench_type type);
const char *bench_op_text(int op); /* "none" for -1 */
const char *bench_collective_text(enum bench_collective collective);
bool bench_has_op(enum bench_collective collective);
bool bench_plan_has_root(enum bench_collective collective);

/* bytes: the size that was asked for. op and root count only where the collective has one. */
struct bench_plan bench_plan_make(enum bench_collective collective, enum bench_type type, int op,
                                  int root, int ranks, size_t bytes);

/* Bytes by which the size is called. */
size_t bench_plan_bytes(const struct bench_plan *p);

/* GB/s of `seconds` a time; *ret_bus: the bus bandwidth. */
double bench_plan_bandwidth(const struct bench_plan *p, double seconds, double *ret_bus);

/* Has this rank anything to send? */
bool bench_plan_sends(const struct bench_plan *p, int rank);

/* What must come out on this rank: the i-th piece, one after the other; n 0: that was all. */
struct bench_piece bench_plan_piece(const struct bench_plan *p, int rank, bool in_place, int i);

#endif
