/* SPDX-License-Identifier: MIT */
/* The outer process, what the shell started. It forks the agent, forwards signals sent to it alone, and when the
 * agent is gone, for whatever reason, kills and reaps every descendant that is left: they re-parent
 * themselves to it. Its promise holds even when the agent is SIGKILLed. Knows nothing of jobs. */
#ifndef LAUNCH_AGENT_GUARD_H
#define LAUNCH_AGENT_GUARD_H

#include "../proto/err.h"
#include "cgroup.h"

#include <stdint.h>

/* Forks; runs agent(user, guard_pidfd) in the child and returns, in the guard, the status to exit with: the agent's
 * own, 128+n if a signal killed it. guard_pidfd becomes readable when the guard dies; the agent owns it.
 * cgroup: borrowed; the leaf that the agent may have made is killed and removed once the agent is gone.
 * forwarded: bit n - 1 for each signal that the agent gets from us, besides TSTP and CONT.
 * All signals are blocked in both processes from before the fork. Returns a negative errno if the agent could not be
 * started. Call it from a single-threaded process. */
MUST_CHECK int guard_run(int (*agent)(void *user, int guard_pidfd), void *user,
                         const struct cgroup *cgroup, uint64_t forwarded, struct err *err);

#endif
