/* SPDX-License-Identifier: MIT */
/* `launch bench --pairs`: what every pair of ranks reaches, and which are slow beside their like. */
#ifndef LAUNCH_AGENT_BENCH_PAIRS_H
#define LAUNCH_AGENT_BENCH_PAIRS_H

#include "../topology.h"
#include "record.h"

#include <stdio.h>

#define PAIRS_SLOW_SHARE 0.8 /* of the median of those with the same kind of link */

/* The link between the GPUs of two ranks, as a cell of `launch topo` ("NV18", "PIX"); "" without a topology, or where one of
 * them is not in it. */
void pairs_link(const struct bench_run *run, const struct topology *t, int from, int to,
                char ret[8]);

/* The median of the rate one way of all pairs with that kind of link ("": of whatever kind). */
double pairs_median(const struct bench_run *run, const struct topology *t, const char *link);

/* For each size two matrices of GB/s, one way and, where it was measured, both ways at once; then the slow pairs. t: NULL if the machine
 * was not looked at. */
void pairs_text(FILE *out, const struct bench_run *run, const struct topology *t);

#endif
