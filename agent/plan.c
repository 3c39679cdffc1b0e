/* SPDX-License-Identifier: MIT */
#include "plan.h"

#include "../proto/board.h"
#include "../proto/env.h"
#include "cpus.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static_assert(sizeof((struct gpu *)NULL)->uuid <= GPU_NAME_BYTES, "an entry has room for a UUID");

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

static unsigned gpus_of(const struct plan *plan)
{
    return plan->gpus_wanted ? plan->gpus_wanted : plan->gpu_set.n;
}

static int count_workers(struct plan *plan, const struct job_spec *spec, const char *variable,
                         const char *visible, struct err *err)
{
    unsigned gpus = gpus_of(plan);
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
    unsigned gpus = gpus_of(plan);
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

/* ---- --gpus ---- */

/* Place in the set of a GPU that a list names; -1: the set is without it. */
static int find_entry(const struct gpu_set *set, const struct gpu_set *named, unsigned i)
{
    for (unsigned j = 0; j < set->n; j++)
        if (named->index[i] >= 0 ? set->index[j] == named->index[i]
                                 : strcasecmp(set->entry[j], named->entry[i]) == 0)
            return (int)j;
    return -1;
}

/* Leaves of the set what --gpus names, in its order; in the notation of the variable, if that is set. */
static int narrow_to_list(struct plan *plan, const char *list, const char *variable,
                          const char *visible, struct err *err)
{
    struct gpu_set *set = &plan->gpu_set, named;
    int rc = gpu_set_choose(&named, &plan->gpus, "--gpus", list, err);
    if (rc < 0)
        return rc;
    if (named.stopped_at[0])
        return err_set(err, -EINVAL,
                       "--gpus: there is no GPU %s here; this server has %u (0 to %u)",
                       named.stopped_at, plan->gpus.n, plan->gpus.n - 1);
    for (unsigned i = 0; i < named.n; i++) {
        int at = find_entry(set, &named, i);
        /* Without the variable a name that the list of GPUs does not have (MIG) is as good as any. */
        if (at < 0 && set->given)
            return err_set(err, -EINVAL, "--gpus: %s is not among those of %s='%.40s'",
                           named.entry[i], variable, visible);
        if (at >= 0 && set->given)
            memcpy(named.entry[i], set->entry[at], sizeof named.entry[i]);
    }
    named.given = set->given;
    *set = named;
    return 0;
}

/* Leaves those that can be told from one another: a lease is on one GPU. */
static int want_gpus(struct plan *plan, const struct job_spec *spec, const char *variable,
                     const char *visible, struct err *err)
{
    struct gpu_set *set = &plan->gpu_set;
    if (spec->gpus_mode == GPUS_VISIBLE)
        return 0;
    if (plan->gpus.n == 0)
        return err_set(err, -EINVAL, "--gpus: this machine has no GPU that this process may use");
    if (set->n == 0)
        return err_set(err, -EINVAL, "--gpus: %s='%.40s' leaves none of the %u GPUs", variable,
                       visible ? visible : "", plan->gpus.n);
    if (spec->gpus_mode == GPUS_LIST) {
        int rc = narrow_to_list(plan, spec->gpus_list, variable, visible, err);
        if (rc < 0)
            return rc;
    }
    plan->gpus_wanted = set->n;
    if (spec->gpus_mode == GPUS_COUNT)
        plan->gpus_wanted = spec->gpus_n;
    if (spec->gpus_mode == GPUS_AUTO)
        plan->gpus_wanted = spec->nproc_mode == NPROC_CPU ? plan->cpus : spec->nproc;
    if (plan->gpus_wanted > set->n && set->given)
        return err_set(err, -EINVAL, "--gpus: %u GPUs are asked for, %s='%.40s' leaves %u",
                       plan->gpus_wanted, variable, visible, set->n);
    if (plan->gpus_wanted > set->n)
        return err_set(err, -EINVAL, "--gpus: %u GPUs are asked for, this server has %u",
                       plan->gpus_wanted, set->n);
    set->chosen = true;
    return 0;
}

static int name_by_uuid(struct plan *plan, struct err *err)
{
    struct gpu_set *set = &plan->gpu_set;
    for (unsigned i = 0; i < set->n; i++) {
        if (set->index[i] < 0)
            continue; /* a name already */
        const struct gpu *gpu = &plan->gpus.gpu[set->index[i]];
        if (!gpu->uuid[0])
            return err_set(err, -EINVAL,
                           "--gpu-ids=uuid: the driver does not tell that of GPU %s before its "
                           "first use (nvidia-smi is one)",
                           gpu->pci);
        memcpy(set->entry[i], gpu->uuid,
               sizeof gpu->uuid); /* gcc sees an overlap in snprintf() here */
    }
    return 0;
}

void plan_take_gpus(struct plan *plan, uint64_t chosen)
{
    struct gpu_set *set = &plan->gpu_set, all = *set;
    set->n = 0;
    for (unsigned i = 0; i < all.n; i++) {
        if (!(chosen >> i & 1))
            continue;
        memcpy(set->entry[set->n], all.entry[i], sizeof all.entry[i]);
        set->index[set->n++] = all.index[i];
    }
}

static int check_stdin(const struct plan *plan, const struct job_spec *spec, struct err *err)
{
    if (spec->stdin_mode != STDIN_RANK || spec->stdin_rank < plan->world_size)
        return 0;
    return err_set(err, -EINVAL, "--stdin=%u: there is no rank %u, the job has %u worker%s",
                   spec->stdin_rank, spec->stdin_rank, plan->world_size,
                   plan->world_size == 1 ? "" : "s");
}

int plan_avoid_gpus(struct plan *plan, const struct job_spec *spec, uint64_t bad, struct err *err)
{
    unsigned all = plan->gpu_set.n, left = all - (unsigned)__builtin_popcountll(bad);
    bool by_gpu = spec->nproc_mode == NPROC_GPU || spec->nproc_mode == NPROC_AUTO;
    if (by_gpu && left == 0)
        return err_set(err, -EBUSY,
                       "all %u GPUs that the job may use are in quarantine (launch gpus); --force "
                       "uses them all the same",
                       all);
    if (left == 0 || (!by_gpu && !spec->share_gpus && left < plan->world_size))
        return 0;
    plan_take_gpus(plan, ~bad);
    plan->gpu_set.chosen = true;
    if (by_gpu)
        plan->world_size = left;
    if (check_healing(plan, spec, err) == 0 && check_stdin(plan, spec, err) == 0)
        return 1;
    return err_wrap(err, -EBUSY, "%u of %u GPUs are in quarantine", all - left, all);
}

int plan_make(struct plan *plan, const struct job_spec *spec, struct err *err)
{
    *plan = (struct plan){0};
    const char *sysroot = getenv(ENV_SYSROOT);
    if (!sysroot)
        sysroot = "";
    plan->quota = cpus_quota(sysroot);
    plan->cpus = cpus_allowed(plan->quota);
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
    rc = want_gpus(plan, spec, variable, visible, err);
    if (rc == 0 && spec->gpu_ids == GPU_IDS_UUID)
        rc = name_by_uuid(plan, err);
    if (rc == 0)
        rc = count_workers(plan, spec, variable, visible, err);
    if (rc == 0)
        rc = check_gpus(plan, spec, err);
    if (rc == 0)
        rc = check_healing(plan, spec, err);
    return rc < 0 ? rc : check_stdin(plan, spec, err);
}
