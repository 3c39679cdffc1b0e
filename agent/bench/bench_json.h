/* SPDX-License-Identifier: MIT */
/* A run for programs: JSON with the keys of nccl-tests' -J, and CSV. */
#ifndef LAUNCH_AGENT_BENCH_BENCH_JSON_H
#define LAUNCH_AGENT_BENCH_BENCH_JSON_H

#include "record.h"

#include <stdio.h>
#include <time.h>

/* What a run does not know of itself. All borrowed. */
struct bench_context {
    char *const *argv; /* NULL-terminated */
    char *const *env;  /* likewise; only what bears on the result is written */
    time_t start, end;
    double min_bw;     /* NCCL_TESTS_MIN_BW; negative: not given */
    const char *error; /* why the run is not complete; NULL: it is */
};

/* version 3 of nccl-tests' format, booleans as strings included. Beside its keys: checked in the halves, pairs, notes. */
void bench_json(FILE *out, const struct bench_run *run, const struct bench_context *context);

/* A line for each result, or, where there are pairs, for each pair; a first line with the names. */
void bench_csv(FILE *out, const struct bench_run *run);

/* Opens path for writing, or, where that exists, path.0, path.1, ...: never a file that is there. *ret_name: owned by
 * the caller. -errno. */
MUST_CHECK int bench_file_open(const char *path, FILE **ret, char **ret_name, struct err *err);

#endif
