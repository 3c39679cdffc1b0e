/* SPDX-License-Identifier: MIT */
/* What a job's settings mean on this machine: how many workers, which GPUs, how many CPUs. Decided once,
 * before anything is started. */
#ifndef LAUNCH_AGENT_PLAN_H
#define LAUNCH_AGENT_PLAN_H

#include "../config/spec.h"
#include "gpu.h"

struct plan {
    uint32_t world_size;
    unsigned cpus;  /* that the job may use */
    unsigned quota; /* of the cgroup, in CPUs; UINT_MAX: none */
    struct gpu_list gpus;
    struct gpu_set gpu_set; /* the job's GPUs; until they are leased, those it may have */
    unsigned gpus_wanted;   /* with --gpus: how many of the set shall be leased; 0: no lease */
    char warning[256];      /* one line for the user; empty: none */
};

/* Its GPUs were leased: those of the set whose bit is set. */
void plan_take_gpus(struct plan *plan, uint64_t chosen);

/* Does without those GPUs of the set whose bit is set; with one worker per GPU there are then fewer workers. 1: done. 0: the
 * workers are too many for the others. -EBUSY, -EINVAL: what was asked for can't be done without them; one line. */
MUST_CHECK int plan_avoid_gpus(struct plan *plan, const struct job_spec *spec, uint64_t bad,
                               struct err *err);

/* Reads the machine (LAUNCH_SYSROOT, CUDA_VISIBLE_DEVICES from the environment). -EINVAL: what was asked for
 * can't be on this machine; one line that names the setting or variable and what would work. */
MUST_CHECK int plan_make(struct plan *plan, const struct job_spec *spec, struct err *err);

#endif
