/* SPDX-License-Identifier: MIT */
/* What a machine did in one sweep, to be compared with later: the median of several runs of each size, how far they were
 * apart, on which machine, and what came of later comparisons. Where files are kept is baseline_store.h's. */
#ifndef LAUNCH_AGENT_BENCH_BASELINE_H
#define LAUNCH_AGENT_BENCH_BASELINE_H

#include "identity.h"

#include <stdio.h>
#include <time.h>

#define BASELINE_FORMAT 1
#define BASELINE_HISTORY_MAX 50
#define BASELINE_POINTS_MAX 65536
#define BASELINE_REAL_MAX 1e12 /* microseconds, GB/s: more makes no sense, and sums stay finite */
#define BASELINE_DATE_BYTES 24 /* "2026-11-29T20:39:45Z" */

enum baseline_half { BASELINE_OUT, BASELINE_IN, BASELINE_HALVES_N };

/* One size (of a type, an operation, a root). */
struct baseline_point {
    struct bench_result result; /* each half is that of its median run */
    double spread
        [BASELINE_HALVES_N]; /* of the time: half the range of the runs, as part of the median */
};

/* name in files, how history shows it */
#define BASELINE_VERDICTS(X)                                                                       \
    X(SAME, "same", "as fast")                                                                     \
    X(FASTER, "faster", "faster")                                                                  \
    X(SLOWER, "slower", "slower")                                                                  \
    X(SAVED, "saved", "saved")

#define X(id, ...) BASELINE_##id,
enum baseline_verdict { BASELINE_VERDICTS(X) BASELINE_VERDICTS_N };
#undef X

/* One run of the history. */
struct baseline_event {
    char date[BASELINE_DATE_BYTES];
    int runs;
    double peak, average; /* bus bandwidth, GB/s: of the best size; of all, as nccl-tests has it */
    char driver[32], nccl[16];
    enum baseline_verdict verdict;
    int sizes; /* slower or faster ones */
};

struct baseline {
    struct identity identity;
    enum bench_collective collective;
    bool host, shared; /* shared: several ranks had one GPU */
    int ranks;
    uint64_t min_bytes, max_bytes, step_bytes, step_factor;
    int iterations, warmup, runs, nccl_library;
    char date[BASELINE_DATE_BYTES];
    struct bench_device *devices;  /* owned; only what a person wants to know */
    struct baseline_point *points; /* owned */
    unsigned devices_n, points_n, history_n;
    struct baseline_event history[BASELINE_HISTORY_MAX]; /* oldest first */
};

/* From n runs of one sweep. -EINVAL: one of them did not end, had wrong values or measured something else than the first
 * one; -ENOMEM: nothing is left allocated. */
MUST_CHECK int baseline_make(struct baseline *ret, const struct bench_run *runs, unsigned n,
                             const struct topology *t, time_t now, struct err *err);
/* A zeroed one is fine. */
void baseline_finish(struct baseline *b);

/* For a line: "8 x NVIDIA H200, driver 580.95.05, NCCL 2.28.9"; "all_reduce, 8 ranks, 8 to 1073741824 bytes". */
#define BASELINE_WORDS_BYTES 320
const char *baseline_machine(const struct baseline *b, char ret[BASELINE_WORDS_BYTES]);
const char *baseline_sweep(const struct baseline *b, char ret[BASELINE_WORDS_BYTES]);
/* What a machine (its hardware) and a sweep are called in a file name. */
uint64_t baseline_key(const struct baseline *b);
double baseline_peak(const struct baseline *b);
double baseline_average(const struct baseline *b);
const char *baseline_verdict_name(enum baseline_verdict verdict);
const char *baseline_verdict_words(enum baseline_verdict verdict);

/* ---- comparing ---- */

/* Whether two may be compared size by size. -EINVAL: another machine or another sweep, and which parts of it. Another
 * driver or NCCL is another machine, too, unless across_versions. */
MUST_CHECK int baseline_comparable(const struct baseline *then, const struct baseline *now,
                                   bool across_versions, struct err *err);

/* One half of a point. */
struct baseline_change {
    bool judged;   /* both have a time */
    double change; /* of the time: 0.2 is 20 % longer */
    double limit;  /* what is noise */
    enum baseline_verdict verdict;
};

struct baseline_comparison {
    struct baseline_change (*points)[BASELINE_HALVES_N]; /* owned, one for each point */
    unsigned points_n, slower_n, faster_n;               /* points with a half that is so */
    enum baseline_verdict verdict;                       /* slower, if one point is */
};

/* Two that are comparable. floor: the least limit, whatever the size (0.05); negative: by size. */
MUST_CHECK int baseline_compare(struct baseline_comparison *ret, const struct baseline *then,
                                const struct baseline *now, double floor, struct err *err);
void baseline_comparison_finish(struct baseline_comparison *comparison);

/* Notes in b's history what `now` was; the oldest entry goes when there are too many. */
void baseline_note(struct baseline *b, const struct baseline *now, enum baseline_verdict verdict,
                   unsigned sizes);

const struct bench_half *baseline_half(const struct bench_result *result, enum baseline_half which);

/* ---- as text ---- */

/* JSON, with nccl-tests' names where there are such. */
void baseline_write(FILE *out, const struct baseline *b);
/* -EINVAL: no whole JSON, not ours, another format, a member that makes no sense; -ENOMEM. *ret is untouched then. */
MUST_CHECK int baseline_parse(struct baseline *ret, const char *text, size_t n, struct err *err);
/* Whether it is, or was once before it was damaged, something that baseline_write() wrote. */
bool baseline_is_ours(const char *text, size_t n);

/* Lines for a person, that begin with '#' for programs that read what nccl-tests prints. */
void baseline_put_comparison(FILE *out, const struct baseline *then, const struct baseline *now,
                             const struct baseline_comparison *comparison);
void baseline_put_history(FILE *out, const struct baseline *b);
/* "2026-11-29 20:39:45": a date of ours. */
const char *baseline_put_date(const char *date, char ret[BASELINE_DATE_BYTES]);
/* "8", "64K", "1G". */
const char *baseline_put_size(uint64_t size, char ret[24]);

#endif
