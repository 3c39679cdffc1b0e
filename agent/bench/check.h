/* SPDX-License-Identifier: MIT */
/* `launch check`: does NCCL give every GPU the right sum, and if not, without which of its ways does it? Each answer is
 * a run of fresh processes, with one way less than the one before. */
#ifndef LAUNCH_AGENT_BENCH_CHECK_H
#define LAUNCH_AGENT_BENCH_CHECK_H

#include "../plan.h"
#include "trial.h"

#include <stdio.h>

/* What a run takes away from NCCL, besides what those before it took. The first takes nothing. */
struct check_rung {
    const char *name;             /* for JSON: "nvls" */
    const char *words;            /* "without NVLS" */
    const char *variable, *value; /* NULL: nothing is taken away */
    const char *meaning, *fix;    /* if this is the first that passes */
};
#define CHECK_RUNGS_N 4
extern const struct check_rung CHECK_RUNGS[CHECK_RUNGS_N];

enum check_outcome { CHECK_PASSES, CHECK_HANGS, CHECK_WRONG, CHECK_FAILS, CHECK_OUTCOMES_N };

struct check_sum {
    bool told;
    long long sum;
};

struct check_run {
    const struct check_rung *rung;
    enum check_outcome outcome;
    struct check_sum *sums; /* owned: one a rank */
    struct trial trial;
};

enum check_verdict { CHECK_HEALTHY, CHECK_DEGRADED, CHECK_BROKEN };

struct check {
    const char *sysroot; /* borrowed, as all here */
    const struct plan *plan;
    char *const *options, *const *job; /* of trial_request */
    unsigned limit_ms;
    uint64_t wait_ms; /* likewise */
    bool host;        /* no GPU: host memory over shared memory */
    bool shared;      /* --share-gpus: all of NCCL's ways but sockets are off anyway */
    struct check_run run[CHECK_RUNGS_N];
    unsigned runs_n;
    enum check_verdict verdict;
};

/* Runs until one passes or no way is left, and tells each run when it is over. -1: the verdict is there; else the exit code of a run that
 * says nothing of NCCL (child_passed_on()), and what launch said is in that, the last one. */
int check_do(struct check *check, void (*on_run)(const struct check *check));
void check_finish(struct check *check);

/* Takes a line of the job's if it is "rank R of N: sum = S". */
void check_take_line(struct check_sum *sums, unsigned ranks, const char *line, size_t n);
/* What a run came to, by its sums and the end of its launch. */
enum check_outcome check_outcome(const struct check_sum *sums, unsigned ranks, int exit_code,
                                 bool hung);
long long check_right_sum(unsigned ranks);
/* "hangs", ... */
const char *check_outcome_name(enum check_outcome outcome);
const char *check_verdict_name(enum check_verdict verdict);
/* The rung of a run that passed behind others that did not; NULL: none. */
const struct check_rung *check_cure(const struct check *check);

/* check_text.c: one run, when it is over; at the end the verdict. check_json.c: all. */
void check_text_run(FILE *out, const struct check *check, const struct check_run *run);
void check_text_verdict(FILE *out, const struct check *check);
void check_json(FILE *out, const struct check *check);

#endif
