/* SPDX-License-Identifier: MIT */
/* The command line of `launch bench`: nccl-tests' flags in both of their spellings, ours, and launch's own long options, which
 * are for the job. Starts nothing, prints nothing but the help. */
#ifndef LAUNCH_AGENT_BENCH_ASK_H
#define LAUNCH_AGENT_BENCH_ASK_H

#include "../../config/spec.h"
#include "record.h"
#include "verdict.h"

#include <stdio.h>

enum ask_format { ASK_TEXT, ASK_JSON, ASK_CSV, ASK_SVG, ASK_FORMATS_N };

struct bench_ask {
    enum bench_collective collective;
    uint64_t min_bytes, max_bytes, step_bytes; /* ASK_OPEN: not given, until ask_settle() */
    uint32_t step_factor; /* 0: step_bytes counts; so does 1 until ask_settle() */
    uint32_t iterations, warmup, check;
    uint32_t timeout_s;    /* of one wait inside of the job; 0: none */
    int type, op;          /* of BENCH_TYPES, BENCH_OPS; their count: all of them */
    int root;              /* -1: all */
    uint32_t ranks;        /* -g; 0: not given */
    const char *json_file; /* borrowed; NULL: none */
    enum ask_format format;
    bool pairs, history, help;
    struct verdict_ask verdict;
    uint32_t runs; /* of the whole sweep */

    bool collective_given;
    char **words; /* owned: launch's options for the job, NULL-terminated; NULL: none */
    unsigned words_n;
};

#define ASK_OPEN UINT64_MAX

/* Parses argv[1..]. The variables of settings that the bench decides itself (--detach, --redirects, ...) are taken out of
 * the environment. 0; -EINVAL with one line (which word, what would be right); -ENOMEM. */
MUST_CHECK int ask_parse(struct bench_ask *ask, int argc, char **argv, struct err *err);

/* Fills in what depends on the machine and refuses what can't be on it: `ranks` processes, with a GPU each or without. */
MUST_CHECK int ask_settle(struct bench_ask *ask, bool gpus, unsigned ranks, struct err *err);

/* How many sizes a settled one measures. */
uint64_t ask_sizes(const struct bench_ask *ask);

/* The job's arguments (see worker/bench.c) behind its name: NULL-terminated, pointing into text. */
#define ASK_ARGUMENTS_MAX 28
#define ASK_TEXT_BYTES 512
void ask_job_arguments(const struct bench_ask *ask, char *ret[ASK_ARGUMENTS_MAX],
                       char text[ASK_TEXT_BYTES]);

void ask_print_help(FILE *out);

/* Takes a zeroed one, too. */
void ask_finish(struct bench_ask *ask);

#endif
