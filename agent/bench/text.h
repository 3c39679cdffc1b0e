/* SPDX-License-Identifier: MIT */
/* A run as nccl-tests prints it, to the column, so that what reads theirs reads ours. Header and lines can be written while
 * the job runs. Other lines than theirs begin with '#' and stand before or behind the table, never in it. */
#ifndef LAUNCH_AGENT_BENCH_TEXT_H
#define LAUNCH_AGENT_BENCH_TEXT_H

#include "record.h"

#include <stdio.h>

/* Everything above the first result: the run's first record and its devices are there. */
void bench_text_header(FILE *out, const struct bench_run *run);

/* The heads of the columns. */
void bench_text_columns(FILE *out);

void bench_text_result(FILE *out, const struct bench_result *result);

/* min_bw: what NCCL_TESTS_MIN_BW asks for; negative: nothing. notes: how many the header has shown. */
void bench_text_footer(FILE *out, const struct bench_run *run, double min_bw, unsigned notes);

/* Whether the average passes, with nccl-tests' tolerance of 10 %. */
bool bench_fast_enough(const struct bench_run *run, double min_bw);

#endif
