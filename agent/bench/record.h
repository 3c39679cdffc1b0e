/* SPDX-License-Identifier: MIT */
/* A run of `launch bench` in memory: what the job's records (proto/bench.h) said. Must never know how it is shown. */
#ifndef LAUNCH_AGENT_BENCH_RECORD_H
#define LAUNCH_AGENT_BENCH_RECORD_H

#include "../../proto/base.h"
#include "../../proto/bench.h"
#include "../../proto/err.h"

#include <stdbool.h>
#include <stdint.h>

/* One direction of one size. Bandwidths in GB/s (1e9 bytes), time in microseconds. */
struct bench_half {
    double time, alg_bw, bus_bw;
    int64_t wrong;  /* elements; -1: not checked */
    double checked; /* which part of the elements was looked at, 0 to 1 */
};

struct bench_result {
    uint64_t size, count;
    enum bench_type type;
    int op;   /* enum bench_op; -1: none */
    int root; /* -1: none */
    struct bench_half out_of_place, in_place;
    bool has_in_place;
};

struct bench_device {
    int rank, device; /* device: -1 on the host */
    long pid;
    char host[64], bus[20], name[80], uuid[48];
};

struct bench_pair {
    int from, to;
    uint64_t size;
    double time, alg_bw, both_bw; /* both_bw: the sum of both directions at once; 0: not measured */
    int64_t wrong;
};

struct bench_run {
    enum bench_collective collective;
    bool host; /* host memory over shared memory, no GPU */
    bool rccl; /* not NCCL */
    int ranks;
    int nccl_library, nccl_headers, cuda_runtime, cuda_driver; /* 22809: 2.28.9; 0: none */
    uint64_t min_bytes, max_bytes, step_bytes, step_factor;    /* one of the steps is 0 */
    int iterations, warmup, check;
    struct bench_device *devices; /* owned, devices_n of them */
    struct bench_result *results;
    struct bench_pair *pairs;
    char **notes;
    unsigned devices_n, results_n, pairs_n, notes_n;
    bool ended;     /* the last record came */
    bool timed_out; /* so it said */
    int wrong;      /* halves with wrong values */
};

/* What a line was. */
enum bench_record {
    BENCH_RECORD_NONE,
    BENCH_RECORD_BENCH,
    BENCH_RECORD_DEVICE,
    BENCH_RECORD_NOTE,
    BENCH_RECORD_AT, /* *ret_at of bench_run_take() */
    BENCH_RECORD_RESULT,
    BENCH_RECORD_PAIR,
    BENCH_RECORD_END
};

/* Takes one line of the job, n bytes without its newline; for BENCH_RECORD_AT *ret_at tells what is measured now, else
 * it is not touched. BENCH_RECORD_NONE: no record (a worker's own output). -EINVAL with a text: a record that makes no
 * sense; -ENOMEM. */
MUST_CHECK int bench_run_take(struct bench_run *run, const char *line, size_t n,
                              struct bench_result *ret_at, struct err *err);
/* Frees what is in it; a zeroed one is fine. */
void bench_run_finish(struct bench_run *run);

/* Plain mean of the bus bandwidth of all halves, as nccl-tests has it; 0: there are none. */
double bench_average(const struct bench_run *run);
/* Halves and pairs with wrong values. */
int bench_wrong(const struct bench_run *run);
/* The device of a rank; NULL: it has not told. */
const struct bench_device *bench_device_of(const struct bench_run *run, int rank);

const char *bench_collective_name(enum bench_collective collective);
const char *bench_type_name(enum bench_type type);
/* "none" for -1 */
const char *bench_op_name(int op);
unsigned bench_type_bytes(enum bench_type type);
/* Whether it has an operation, a root. */
bool bench_reduces(enum bench_collective collective);
bool bench_has_root(enum bench_collective collective);
/* bus bandwidth / algorithm bandwidth */
double bench_factor(enum bench_collective collective, int ranks);
/* The enum's value, or -1. */
int bench_collective_find(const char *name);
int bench_type_find(const char *name);
int bench_op_find(const char *name);

#endif
