/* SPDX-License-Identifier: MIT */
/* Pure: whose turn it is. Jobs that wait for GPUs are served in the order in which they came; one may pass those before it
 * only if that can't make them wait any longer, whichever of the running jobs ends first. */
#ifndef LAUNCH_AGENT_TURN_H
#define LAUNCH_AGENT_TURN_H

#include "pick.h"

struct turn_ask {
    uint64_t ticket;
    uint64_t among; /* the GPUs it may have */
    unsigned wants; /* how many of them */
};

struct turn_table {
    struct distances near;
    uint64_t free;
    unsigned jobs; /* that hold GPUs: */
    uint64_t held[GPU_MAX];
    unsigned asks; /* that wait, the one in question left out; in any order */
    struct turn_ask ask[GPU_MAX];
};

/* What the job gets now; 0: it has to wait. */
uint64_t turn_grant(const struct turn_table *table, const struct turn_ask *job);

/* How many are served before it. */
unsigned turn_before(const struct turn_table *table, const struct turn_ask *job);

#endif
