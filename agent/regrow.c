/* SPDX-License-Identifier: MIT */
#include "regrow.h"

#include "job_inside.h"
#include "log.h"
#include "units.h"
#include "watch.h"

#include <string.h>

int regrow_init(struct regrow *r, uint32_t world_size)
{
    *r = (struct regrow){.fd = -1, .barred = calloc(world_size, sizeof *r->barred)};
    return r->barred ? 0 : -ENOMEM;
}

static void close_units(struct regrow *r)
{
    if (r->units)
        units_close(r->units);
    free(r->units);
    r->units = NULL;
}

void regrow_stop(struct regrow *r)
{
    watch_stop(&r->watch);
    close_fd(&r->fd);
    close_units(r);
}

void regrow_finish(struct regrow *r)
{
    if (r->barred)
        regrow_stop(r);
    free(r->barred);
    *r = (struct regrow){.fd = -1};
}

/* Its place in the list; -1: none, or not known. */
static int gpu_of(const struct job *job, uint32_t rank)
{
    const struct gpu_set *set = &job->config->plan->gpu_set;
    return set->n && job->config->plan->gpus.vendor == GPU_NVIDIA ? set->index[rank % set->n] : -1;
}

bool regrow_is_barred(struct job *job, uint32_t rank, struct quarantine *ret)
{
    struct units *units = job->heal.regrow.units;
    int i = gpu_of(job, rank);
    struct err err;
    return units && i >= 0 && units_open_one(units, (unsigned)i, &err) == 0 &&
           quarantine_read(units->fd[i], job->config->sysroot, ret);
}

/* The quarantine may have begun before the loss or after it. */
static void look_at(struct job *job, uint32_t rank)
{
    struct quarantine q;
    struct err err;
    bool *barred = &job->heal.regrow.barred[rank], was = *barred;
    *barred = regrow_is_barred(job, rank, &q);
    if (!was || *barred)
        return;
    log_info("the GPU of rank %u is in quarantine no more", rank);
    if (heal_grow(job, (int)rank, &err) < 0)
        log_info("rank %u does not come back: %s", rank, err.text);
}

static void on_change(void *user)
{
    struct job *job = user;
    char events[4096];
    while (read(job->heal.regrow.fd, events, sizeof events) > 0)
        continue;
    for (uint32_t i = 0; i < job->world_size && job->heal.regrow.watch; i++)
        if (job->heal.loss[i] == LOSS_FOR_GOOD)
            look_at(job, i);
}

static int start(struct job *job, struct err *err)
{
    struct regrow *r = &job->heal.regrow;
    const char *lease_dir = job->config->spec->lease_dir, *sysroot = job->config->sysroot;
    r->units = calloc(1, sizeof *r->units);
    if (!r->units)
        return err_set_errno(err, -ENOMEM, "lock files");
    int rc = units_open(r->units, lease_dir, sysroot, &job->config->plan->gpus, NULL, err);
    if (rc < 0)
        return rc;
    r->fd = quarantine_watch(lease_dir, sysroot);
    r->watch = r->fd < 0 ? NULL : watch_start(&job->loop, r->fd, on_change, job);
    return r->watch ? 0 : err_set(err, -ENOMEM, "%s can't be watched", r->units->dir.path);
}

void regrow_watch(struct job *job, uint32_t rank)
{
    struct regrow *r = &job->heal.regrow;
    struct err err;
    if (gpu_of(job, rank) < 0)
        return;
    if (!r->watch && start(job, &err) < 0) {
        log_debug("quarantines are not watched: %s", err.text);
        regrow_stop(r);
        return;
    }
    r->barred[rank] = false;
    look_at(job, rank);
}
