/* SPDX-License-Identifier: MIT */
/* What workers leave behind: processes that re-parented themselves to the agent, which is a subreaper. Workers
 * themselves are left to their pidfds, which tell the order of deaths. */
#ifndef LAUNCH_AGENT_LEFTOVERS_H
#define LAUNCH_AGENT_LEFTOVERS_H

#include "group.h"

/* Reaps those that have ended. True: no child of any kind is left. A dead worker in front of the kernel's queue hides
 * the rest, so whoever reaps a worker calls here again. */
bool leftovers_reap(const struct group *group);

/* Asks all to end (SIGTERM); tell: warns, and names one. */
void leftovers_ask(struct group *group, bool tell);

/* Kills what re-parented itself from below one worker that is gone, with what is below that. The worker's processes
 * are known by the LAUNCH_SLOT and LAUNCH_GENERATION that they were started with. */
void leftovers_kill_of(struct group *group, unsigned seat, uint32_t generation);

/* Kills all but the workers, with what is below them. */
void leftovers_kill(struct group *group);

#endif
