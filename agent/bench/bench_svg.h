/* SPDX-License-Identifier: MIT */
/* A sweep as a picture: bus bandwidth over message size. */
#ifndef LAUNCH_AGENT_BENCH_BENCH_SVG_H
#define LAUNCH_AGENT_BENCH_BENCH_SVG_H

#include "baseline.h"
#include "expected.h"

/* Out of place and in place; behind them the baseline `then`, with the band within which a run is as fast, what is slower
 * than that marked, and what is expected as a line. then, with its comparison, and expected may be NULL. */
void bench_svg(FILE *out, const struct baseline *now, const struct baseline *then,
               const struct baseline_comparison *comparison, const struct expected *expected);

#endif
