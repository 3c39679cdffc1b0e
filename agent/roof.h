/* SPDX-License-Identifier: MIT */
/* The jobs of one file under one roof: a parent that starts an ordinary launcher for each (guard, agent, workers), puts
 * the job's name before its lines, passes signals on, and tells how each one ended. They are independent: one that fails
 * leaves the others alone. Only the start is common: all of them can start, or none does. When the roof is killed, so
 * are they. Knows nothing of what a job does. */
#ifndef LAUNCH_AGENT_ROOF_H
#define LAUNCH_AGENT_ROOF_H

#include "../config/spec.h"

/* Starts the n jobs of spec->jobs, each as a process that calls run(job, gate) and exits with what that returns. GPUs that a
 * job names are taken before those that it only counts, and those before what jobs without --gpus share; else in the order
 * of the file.
 * Returns, when all have ended, the exit code of the first one that failed, EXIT_CODE_OK if none did; a negative errno if
 * nothing could be started. Call it from a single-threaded process that has no loop yet. */
MUST_CHECK int roof_run(const struct job_spec *spec, int (*run)(struct job_spec *job, int gate),
                        struct err *err);

/* In a job, once, when it has all that it needs: waits until the others have, too. False: one of them can't start, so nobody
 * does. gate: -1: there is no roof. */
MUST_CHECK bool roof_pass(int gate);

#endif
