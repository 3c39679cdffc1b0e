/* SPDX-License-Identifier: MIT */
/* The inside of a job, shared by job.c (which owns it and alone changes its state), news.c (which writes down
 * what happened) and answers.c (which reads it). Nobody else may include this. */
#ifndef LAUNCH_AGENT_JOB_INSIDE_H
#define LAUNCH_AGENT_JOB_INSIDE_H

#include "aftermath.h"
#include "gpu_wait.h"
#include "gpu_watch.h"
#include "heal.h"
#include "job.h"
#include "oom.h"
#include "reserve.h"
#include "vigil.h"

struct job {
    const struct job_config *config;
    uv_loop_t loop;
    uv_timer_t timer; /* the state's deadline; every change of state stops it */
    struct signals signals;
    struct watch *guard_watch;

    struct lifecycle life;
    uint64_t state_since_ns;

    uint32_t world_size;
    struct group group;
    uint32_t joined; /* in this generation */
    uint32_t generation;
    struct environ environ;
    struct relay *relay; /* owned; NULL: one worker, which inherits our streams */
    struct attempt attempt;
    struct attempt_config start; /* how its processes are started */
    struct heal heal;
    struct reserve reserve;
    struct vigil vigil; /* for --hang-timeout */
    struct gpu_watch gpu_watch;
    struct oom oom;
    struct nccl_topo topo;

    struct control *control; /* owned; NULL: nobody can ask */
    uint64_t since_ns;
    bool restart_asked; /* of this attempt: by `launch restart`, which is no failure */

    uint32_t restarts;
    struct failure failure; /* the first one of this attempt */
    struct aftermath after;
    int stop_signal; /* that asked the job to end; 0: none */
    uint64_t stop_signal_ns;
    uint64_t stop_since_ns;    /* the group of this attempt was asked to end; 0: it was not */
    bool killed;               /* ... and killed */
    bool leaf_killed;          /* what is in the cgroup was: it takes nobody any more */
    bool gpus_used;            /* by the group that is being ended, as far as can be seen */
    struct gpu_wait *gpu_wait; /* owned; in RESTART only */
    uv_timer_t limit;          /* --timeout */
    bool timed_out;
    int exit_code;
};

/* As lifecycle_post(). */
void job_post(struct job *job, enum job_event event);

/* Nothing of the attempt is left: another one, or the end. */
void job_decide(struct job *job);

#endif
