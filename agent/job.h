/* SPDX-License-Identifier: MIT */
/* THE state machine of a job. States, events and edges: lifecycle.c; here, one function per state.
 *
 *   LAUNCH ─spawned─► RUN ─first joins─► RENDEZVOUS ─all joined─► RUN ─all ended─► SWEEP ─► DONE
 *                      └── rank lost, deadline, stop ──► STOP ─► KILL ─all ended─► SWEEP ─► RESTART ─► LAUNCH
 *
 * Callbacks write down what happened and post an event; lifecycle.c alone changes the state. */
#ifndef LAUNCH_AGENT_JOB_H
#define LAUNCH_AGENT_JOB_H

#include "attempt.h"
#include "cgroup.h"
#include "group.h"
#include "lifecycle.h"
#include "logs.h"
#include "plan.h"
#include "program.h"
#include "relay.h"
#include "report.h"
#include "rundir.h"
#include "signals.h"

/* What a job needs; borrowed for its whole life. */
struct job_config {
    const struct job_spec *spec;
    const struct plan *plan;
    const struct placement *placement; /* NULL: workers go where they like */
    const struct program *program;
    struct logs *logs; /* prepared */
    const struct spawn_inherited *inherited;
    const char *sysroot;   /* before the paths of /proc and /sys */
    struct cgroup *cgroup; /* where a leaf may be made; the job makes, kills and removes it */
    const struct rundir_place *place; /* of the control socket */
    int started_fd; /* borrowed: gets a byte once the job can be asked; -1: nobody waits */
    unsigned ignored_signals; /* bit n: signal n was ignored when we were started, and stays so */
};

/* Runs a job to its end on a loop of its own; returns the exit code for the launcher. guard_pidfd: taken; when
 * it becomes readable the guard is gone and everything is killed at once. */
int job_run(const struct job_config *config, int guard_pidfd);

#endif
