/* SPDX-License-Identifier: MIT */
/* The job behind `launch bench` and `launch check`: what its files share. Written with liblaunch's public API only, and
 * linked twice: launch-bench (bench_host.c, host memory) and launch-bench-nccl (bench_nccl.c). Not for people: those two
 * commands start it, and read what rank 0 writes (proto/bench.h).
 *
 *     launch-bench COLLECTIVE -b BYTES -e BYTES (-i BYTES | -f FACTOR) -n ITERATIONS -w WARM_UPS -c CHECKS
 *                  -d TYPE|all -o OP|all -r ROOT|all -T SECONDS [--pairs]
 *     launch-bench check
 *
 * Numbers are plain. Exit codes: 0, measured to the end, whether the values were right or wrong (the last record says so);
 * 1, a call failed or `check` saw a wrong sum; 2, wrong options; 124, a wait took longer than -T.
 *
 * It measures as nccl-tests does, so that its numbers may stand beside those: the same buffers, order of calls, clock and
 * mean over ranks. */
#ifndef LAUNCH_WORKER_BENCH_H
#define LAUNCH_WORKER_BENCH_H

#include "launch.h"

#include "bench_data.h"
#include "bench_plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_WINDOW_BYTES ((size_t)16 << 20) /* of the device, compared at a time */

struct bench_options {
    bool check; /* `launch-bench check`: nothing below counts */
    bool pairs;
    enum bench_collective collective;
    uint64_t min_bytes, max_bytes, step_bytes, step_factor; /* one of the steps is 0 */
    unsigned iterations, warm_ups, checks, timeout_s;       /* timeout_s 0: none */
    int type, op, root;                                     /* -1: all */
};

/* 0, or -1 with one line in ret_why. */
int bench_options_parse(struct bench_options *o, int argc, char **argv, char *ret_why, size_t size);

/* ---- what can be measured ---- */

/* A collective, ready to be called as often as wanted. */
struct bench_call {
    struct bench_plan plan;
    char *in, *out;
    size_t shift,
        steps;    /* both move so many bytes a call; after so many they are back where they were */
    int to, from; /* SENDRECV; -1: nobody */
};

struct bench_device {
    int rank, device; /* device: -1, the host */
    int sm;           /* compute capability, 90: 9.0 */
    long pid;
    uint64_t memory_bytes;
    char host[64], bus[20], name[80], uuid[48];
};

struct bench;

/* Functions return an enum launch_result, with a text at launch_error(). */
struct bench_backend {
    const char *name, *words; /* for records; for people */
    bool pairs;
    unsigned collectives, types, ops; /* a bit for each that it has */
    int (*open)(struct bench *b, struct bench_device *ret);
    void (*close)(struct bench *b);
    void (*versions)(int *ret_library, int *ret_headers, int *ret_runtime, int *ret_driver);
    /* Bytes that a buffer may have when a rank has `copies` of them and `sharers` ranks share the device. */
    uint64_t (*room)(const struct bench_device *device, int sharers, int copies);
    int (*alloc)(struct bench *b, char **ret, size_t bytes);
    void (*free)(char *data);
    /* Before and after calls of one type and operation. */
    int (*prepare)(struct bench *b, const struct bench_plan *p);
    void (*restore)(struct bench *b);
    /* n calls, and until the last is done. This is what is timed: nothing else may happen in it. */
    int (*run)(struct bench *b, const struct bench_call *call, unsigned n);
    /* Tells liblaunch that all is done; not timed. */
    int (*settle)(struct bench *b);
    /* Within the device and to and from it; done on return. */
    int (*put)(struct bench *b, char *to, const void *from, size_t bytes);
    int (*get)(struct bench *b, void *to, const char *from, size_t bytes);
    int (*move)(struct bench *b, char *to, const char *from, size_t bytes);
    int (*zero)(struct bench *b, char *to, size_t bytes);
    /* The sum of each rank's number, over the same way as a collective. */
    int (*sum)(struct bench *b, int64_t mine, int64_t *ret);
};

extern const struct bench_backend BENCH_BACKEND; /* of this program */

struct bench {
    struct launch *l;
    int rank, ranks;
    struct bench_options o;
    const struct bench_backend *on;
    void *state; /* the backend's */
    char *send, *receive;
    void *table;  /* BENCH_PERIOD elements */
    void *window; /* BENCH_WINDOW_BYTES of what is on the device; made by alloc() */
    uint64_t seed, steps;
    int halves_wrong;
};

/* ---- bench_measure.c ---- */

struct bench_half {
    double seconds;
    int64_t wrong; /* -1: not checked */
};

/* One size, one direction: as bench_plan, from b->send to b->receive. */
int bench_measure(struct bench *b, const struct bench_plan *p, bool in_place,
                  struct bench_half *ret);

/* Warm-up of a size, out of place. */
int bench_warm_up(struct bench *b, const struct bench_plan *p);

/* --pairs: every ordered pair, the others idle; writes the records. p: of BENCH_SENDRECV. */
int bench_measure_pairs(struct bench *b, const struct bench_plan *p);

/* ---- bench_verify.c ---- */

/* What this rank puts in is in its place, and the rest of where the result comes is zero. */
int bench_fill(struct bench *b, const struct bench_call *call, bool in_place);

/* Adds the wrong elements of one piece; at: elements of the result before it. */
int bench_verify_piece(struct bench *b, const struct bench_call *call,
                       const struct bench_piece *piece, size_t at, int64_t *wrong);

/* How many elements are wrong on this rank. */
int bench_verify(struct bench *b, const struct bench_call *call, bool in_place, int64_t *ret);

/* A test's: LAUNCH_BENCH_FAULT=RANK:INDEX in the environment spoils that element of that rank's result; true: it lies
 * in these n elements, and *ret is its place there. */
bool bench_fault(const struct bench *b, size_t first, size_t n, size_t *ret);

/* ---- bench_watch.c: -T ---- */

/* From now on this rank waits for others; too long, and the process ends with a word. */
void bench_watch(const struct bench *b, const struct bench_plan *p);
void bench_unwatch(const struct bench *b);

/* ---- bench_records.c: rank 0's stdout; other ranks write nothing ---- */

void bench_record_head(const struct bench *b);
void bench_record_device(const struct bench *b, const struct bench_device *device);
void bench_record_note(const struct bench *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void bench_record_at(const struct bench *b, const struct bench_plan *p);
void bench_record_result(const struct bench *b, const struct bench_plan *p,
                         const struct bench_half halves[2]);
void bench_record_pair(const struct bench *b, const struct bench_plan *p, int from, int to,
                       const struct bench_half *one_way, double both_seconds);
void bench_record_end(const struct bench *b);

#endif
