/* SPDX-License-Identifier: MIT */
/* A job's hold on its GPUs: kernel locks that end with the last of its processes, however that comes. Alone with --gpus, on
 * all of them or none; shared without, so that others keep away. The guard and the agent have the descriptors, and no
 * worker: when both are gone, so are the workers. Whose turn it is: turn.h. */
#ifndef LAUNCH_AGENT_LEASE_H
#define LAUNCH_AGENT_LEASE_H

#include "plan.h"

struct lease {
    unsigned n;
    int fd[2 * GPU_MAX]; /* owned: of a MIG instance, its GPU's, too */
    int watch;           /* owned: what lease_wait_detach() gave; -1: nothing */
};

/* Nothing is held. */
#define LEASE_NONE ((struct lease){.watch = -1})

/* Takes plan->gpus_wanted of plan->gpu_set, and narrows the set to them. Waits for them with spec->wait_ms; a signal that
 * would end the job ends the wait. What there is to say is logged. Returns an exit code for the launcher: EXIT_CODE_OK;
 * EXIT_CODE_BUSY with a table of who has what; EXIT_CODE_USAGE: no directory of locks that will do; 128+n: signal n.
 * Call it, and lease_share(), before there is a second thread, or a worker. */
MUST_CHECK int lease_take(struct lease *lease, const struct job_spec *spec, struct plan *plan,
                          const char *sysroot);

/* Puts a shared hold on the GPUs that the workers will use. Those in quarantine are left out of plan->gpu_set, unless
 * spec->force; if the workers are too many for the others they are used as well. A GPU that a job has for itself is warned of
 * once; no other reason for doing without is told. Costs a few system calls a GPU. EXIT_CODE_OK; EXIT_CODE_BUSY: one worker
 * per GPU was asked for, and all GPUs are in quarantine, which was told. */
MUST_CHECK int lease_share(struct lease *lease, const struct job_spec *spec, struct plan *plan,
                           const char *sysroot);

/* Another process has taken over (--detach): writes down which. */
void lease_sign_again(const struct lease *lease, const struct job_spec *spec);

/* Takes LEASE_NONE too. */
void lease_close(struct lease *lease);

#endif
