/* SPDX-License-Identifier: MIT */
#include "plan.h"

#include "../proto/board.h"
#include "../proto/env.h"
#include "cpus.h"

#include <stdio.h>
#include <string.h>

static int no_gpu(const struct plan *plan, const char *variable, const char *visible,
                  struct err *err)
{
    const char *advice = "--nproc-per-node=auto takes CPUs then";
    if (plan->gpus.n == 0)
        return err_set(
            err, -EINVAL,
            "--nproc-per-node=gpu: this machine has no GPU that this process may use; %s", advice);
    return err_set(err, -EINVAL, "--nproc-per-node=gpu: %s='%.40s' leaves none of the %u GPUs; %s",
                   variable, visible ? visible : "", plan->gpus.n, advice);
}

static int count_workers(struct plan *plan, const struct job_spec *spec, const char *variable,
                         const char *visible, struct err *err)
{
    unsigned gpus = plan->gpu_set.n;
    switch (spec->nproc_mode) {
    case NPROC_GPU:
        if (gpus == 0)
            return no_gpu(plan, variable, visible, err);
        plan->world_size = gpus;
        return 0;
    case NPROC_AUTO:
        plan->world_size = gpus ? gpus : plan->cpus;
        break;
    case NPROC_CPU:
        plan->world_size = plan->cpus;
        break;
    default:
        plan->world_size = spec->nproc;
        break;
    }
    if (plan->world_size > BOARD_MAX_RANKS)
        plan->world_size = BOARD_MAX_RANKS;
    return 0;
}

static int check_gpus(struct plan *plan, const struct job_spec *spec, struct err *err)
{
    unsigned gpus = plan->gpu_set.n;
    if (spec->share_gpus && gpus == 0)
        snprintf(plan->warning, sizeof plan->warning,
                 "--share-gpus: there is no GPU to share; the job runs on the host");
    if (!spec->share_gpus && spec->gpu_visibility == GPU_VISIBILITY_RANK && gpus > 0 &&
        plan->world_size > gpus)
        return err_set(err, -EINVAL,
                       "--gpu-visibility=rank: %u workers can't have a GPU each of %u; "
                       "--share-gpus lets several work on one",
                       plan->world_size, gpus);
    return 0;
}

/* What only shows when a rank is lost, hours later, is said now. */
static int check_healing(const struct plan *plan, const struct job_spec *spec, struct err *err)
{
    bool shrinks = spec->on_failure == ON_FAILURE_SHRINK;
    if (spec->on_failure == ON_FAILURE_HEAL && spec->max_restarts == 0)
        return err_set(
            err, -EINVAL,
            "--on-failure=heal: --max-restarts=N must say how many losses may be healed");
    if (spec->standby != STANDBY_NONE &&
        ((spec->on_failure != ON_FAILURE_HEAL && !shrinks) || spec->max_restarts == 0))
        return err_set(err, -EINVAL,
                       "--standby: nothing is replaced without --on-failure=heal and "
                       "--max-restarts=N");
    if (shrinks && spec->min_workers > plan->world_size)
        return err_set(err, -EINVAL, "--min-workers=%u: the job has only %u worker%s",
                       spec->min_workers, plan->world_size, plan->world_size == 1 ? "" : "s");
    return 0;
}

static int check_stdin(const struct plan *plan, const struct job_spec *spec, struct err *err)
{
    if (spec->stdin_mode != STDIN_RANK || spec->stdin_rank < plan->world_size)
        return 0;
    return err_set(err, -EINVAL, "--stdin=%u: there is no rank %u, the job has %u worker%s",
                   spec->stdin_rank, spec->stdin_rank, plan->world_size,
                   plan->world_size == 1 ? "" : "s");
}

int plan_make(struct plan *plan, const struct job_spec *spec, struct err *err)
{
    *plan = (struct plan){0};
    const char *sysroot = getenv(ENV_SYSROOT);
    if (!sysroot)
        sysroot = "";
    plan->cpus = cpus_allowed(sysroot);
    int rc = gpu_list_read(&plan->gpus, sysroot, err);
    if (rc < 0)
        return rc;
    const char *variable = gpu_visible_variable(plan->gpus.vendor);
    const char *visible = getenv(variable);
    rc = gpu_set_choose(&plan->gpu_set, &plan->gpus, variable, visible, err);
    if (rc < 0)
        return rc;
    if (plan->gpus.n && plan->gpu_set.stopped_at[0] && strcmp(plan->gpu_set.stopped_at, "-1") != 0)
        snprintf(plan->warning, sizeof plan->warning,
                 "%s: '%s' names no GPU here; it and what follows are not used", variable,
                 plan->gpu_set.stopped_at);
    rc = count_workers(plan, spec, variable, visible, err);
    if (rc == 0)
        rc = check_gpus(plan, spec, err);
    if (rc == 0)
        rc = check_healing(plan, spec, err);
    return rc < 0 ? rc : check_stdin(plan, spec, err);
}
