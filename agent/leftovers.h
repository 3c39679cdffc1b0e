/* SPDX-License-Identifier: MIT */
/* What workers leave behind: processes that re-parented themselves to the agent, which is a subreaper. Workers
 * themselves are left to their pidfds, which tell the order of deaths. */
#ifndef LAUNCH_AGENT_LEFTOVERS_H
#define LAUNCH_AGENT_LEFTOVERS_H

#include "group.h"

/* Reaps those that have ended. True: no child of any kind is left. A dead worker in front of the kernel's queue hides
 * the rest, so whoever reaps a worker calls here again. */
bool leftovers_reap(const struct group *group);

/* Asks all to end (SIGTERM); tell: warns, and names one. No worker may be left. */
void leftovers_ask(bool tell);

/* Kills all but the workers, with what is below them. */
void leftovers_kill(struct group *group);

#endif
