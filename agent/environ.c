/* SPDX-License-Identifier: MIT */
#include "environ.h"

#include "../proto/env.h"
#include "placement.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN_MAX 48             /* variables we may set */
#define TEXT_BYTES (16 * 1024) /* a list of 64 MIG names fits */

static_assert(STANDBY_EXEC == 1 && STANDBY_CUDA == 2 && STANDBY_NCCL == 3, "ENV_STANDBY");

static const char *const decided[] = {ENV_DECIDED};

static bool is_name(const char *entry, const char *name)
{
    size_t n = strlen(name);
    return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

static bool is_decided(const char *entry)
{
    for (size_t i = 0; i < ARRAY_LEN(decided); i++)
        if (is_name(entry, decided[i]))
            return true;
    return false;
}

static bool begins(const char *entry, const char *with)
{
    return strncmp(entry, with, strlen(with)) == 0;
}

/* An outer job made it; ours would be taken for the user's own and be the same for all ranks, or for both jobs. */
static bool is_outer(const char *entry, bool inside)
{
    return begins(entry, "NCCL_HOSTID=launch-") ||
           (inside && begins(entry, ENV_NCCL_RAS "=127.0.0.1:")) ||
           (inside && begins(entry, ENV_NCCL_TOPO "=/proc/"));
}

int environ_init(struct environ *e, uint32_t n, char *const *inherited, struct err *err)
{
    *e = (struct environ){0};
    size_t variables = 0;
    while (inherited[variables])
        variables++;
    e->slots = variables + OWN_MAX + 1;
    e->base = calloc(variables + 1, sizeof *e->base);
    e->lists = calloc(n, e->slots * sizeof *e->lists);
    e->texts = calloc(n, TEXT_BYTES);
    if (!e->base || !e->lists || !e->texts) {
        environ_finish(e);
        return err_set_errno(err, -ENOMEM, "environment");
    }
    bool inside = false; /* another job */
    for (size_t i = 0; i < variables; i++)
        inside |= is_name(inherited[i], ENV_BOARD_FD);
    for (size_t i = 0; i < variables; i++)
        if (!is_decided(inherited[i]) && !is_outer(inherited[i], inside))
            e->base[e->base_n++] = inherited[i];
    return 0;
}

void environ_finish(struct environ *e)
{
    free(e->base);
    free(e->lists);
    free(e->texts);
    *e = (struct environ){0};
}

static const char *inherited_value(const struct environ *e, const char *name)
{
    for (size_t i = 0; i < e->base_n; i++)
        if (is_name(e->base[i], name))
            return e->base[i] + strlen(name) + 1;
    return NULL;
}

/* Adds a variable that environ_init() has left out of the base. */
static void PRINTF_LIKE(3, 4) add(struct environ *e, const char *name, const char *format, ...)
{
    char *entry = e->text + e->used;
    size_t room = TEXT_BYTES - e->used;
    int n = snprintf(entry, room, "%s=", name);
    va_list ap;
    va_start(ap, format);
    n += vsnprintf(entry + n, room - (size_t)n, format, ap);
    va_end(ap);
    assert((size_t)n < room && e->all_n < e->base_n + OWN_MAX);
    e->used += (size_t)n + 1;
    e->all[e->all_n++] = entry;
    e->all[e->all_n] = NULL;
}

/* All of that name: execve() lets whoever started us pass several, and readers take the first. */
static void drop(struct environ *e, const char *name)
{
    for (size_t i = 0; i < e->all_n;) {
        if (is_name(e->all[i], name))
            e->all[i] = e->all[--e->all_n];
        else
            i++;
    }
    e->all[e->all_n] = NULL;
}

/* As add(), in the place of an inherited variable of that name. */
static void replace(struct environ *e, const char *name, const char *value)
{
    drop(e, name);
    add(e, name, "%s", value);
}

/* For variables in which the user's own value wins. */
static void add_default(struct environ *e, const char *name, const char *value)
{
    if (!inherited_value(e, name))
        add(e, name, "%s", value);
}

static bool sees_own_gpu_only(const struct environ_job *job)
{
    return job->spec->share_gpus || job->spec->gpu_visibility == GPU_VISIBILITY_RANK;
}

uint32_t environ_rank_of(const struct environ_job *job, uint32_t seat)
{
    return seat < job->world_size ? seat : (seat - job->world_size) % job->world_size;
}

bool environ_fits(const struct environ_job *job, uint32_t standby, uint32_t rank)
{
    uint32_t n = job->gpu_set->n, like = environ_rank_of(job, standby);
    if (placement_binds(job->placement))
        return like == rank;
    return n == 0 || !sees_own_gpu_only(job) || like % n == rank % n;
}

int environ_device(const struct environ_job *job, uint32_t rank)
{
    if (job->gpu_set->n == 0)
        return -1;
    return sees_own_gpu_only(job) ? 0 : (int)rank;
}

static void add_gpus(struct environ *e, const struct environ_job *job, uint32_t rank)
{
    const struct gpu_set *set = job->gpu_set;
    const char *variable = gpu_visible_variable(job->gpus->vendor);
    if (set->n == 0 || (!sees_own_gpu_only(job) && !set->chosen))
        return; /* as inherited: every worker sees the job's GPUs and picks by LOCAL_RANK */
    if (!sees_own_gpu_only(job)) {
        char all[GPU_MAX * GPU_NAME_BYTES];
        size_t used = 0;
        for (unsigned i = 0; i < set->n; i++)
            used +=
                (size_t)snprintf(all + used, sizeof all - used, i ? ",%s" : "%s", set->entry[i]);
        replace(e, variable, all);
    } else {
        replace(e, variable,
                rank < set->n || job->spec->share_gpus ? set->entry[rank % set->n] : "");
    }
    /* Indices of ours are in PCI order; a user's own list keeps the user's meaning. */
    if (!set->given && job->gpus->vendor == GPU_NVIDIA)
        replace(e, ENV_CUDA_ORDER, "PCI_BUS_ID");
}

/* NCCL refuses two ranks on one GPU of one host. With a host name of its own each rank looks like a host, and
 * everything goes over loopback sockets; what only works inside a host, or needs other hardware, is off. NCCL
 * 2.30.3 and later can do better: liblaunch then drops NCCL_HOSTID (see worker/nccl.c). */
static void add_shared_gpu(struct environ *e, const struct environ_job *job, uint32_t rank)
{
    char host[80];
    snprintf(host, sizeof host, "launch-%.48s-%u", job->run_id, rank);
    if (rank >= job->world_size) /* one that was here before may be a rank now */
        snprintf(host, sizeof host, "launch-%.48s-%u-%u", job->run_id, rank, job->generation);
    add(e, ENV_SHARE_GPUS, "1");
    add_default(e, "NCCL_HOSTID", host);
    add_default(e, "NCCL_IB_DISABLE", "1");
    add_default(e, "NCCL_NVLS_ENABLE", "0");
    add_default(e, "NCCL_MNNVL_ENABLE", "0");
    /* The ranks' kernels wait for each other and take turns on the GPU: an all-reduce takes 1, 2 or 3 turns of 13.5 ms, by luck more
     * than by the number of blocks (4 ranks on an H200, NCCL 2.28). What one block saves is set up faster: 8 ranks heal in 0.48 s
     * instead of 0.57. */
    add_default(e, "NCCL_MAX_CTAS", "1");
}

static void add_healing(struct environ *e)
{
    add_default(e, "NCCL_NVLS_ENABLE", "0"); /* multicast objects outlive the dead */
    /* Ranks that share memory by CUDA's older IPC connect in 7 ms, by cuMem's handles in 170 (2 H200, NCCL 2.28). */
    add_default(e, "NCCL_CUMEM_ENABLE", "0");
}

/* As sd_notify(3) and sd_watchdog_enabled(3) read them. */
static void add_watchdog(struct environ *e, const struct environ_job *job, uint32_t rank)
{
    char usec[32];
    snprintf(usec, sizeof usec, "%llu", (unsigned long long)job->spec->hang_timeout_ms * 1000);
    replace(e, ENV_NOTIFY_SOCKET, notify_address(job->notify, rank));
    replace(e, ENV_WATCHDOG_USEC, usec);
    drop(e, ENV_WATCHDOG_PID);
}

static void add_torchrun(struct environ *e, const struct environ_job *job, uint32_t rank)
{
    const struct job_spec *spec = job->spec;
    bool standby = rank >= job->world_size; /* launch_join() sets what is missing */
    if (!standby) {
        add(e, ENV_RANK, "%u", rank);
        add(e, ENV_ROLE_RANK, "%u", rank);
    }
    if (!standby || sees_own_gpu_only(job))
        add(e, ENV_LOCAL_RANK, "%u", sees_own_gpu_only(job) ? 0 : rank);
    add(e, ENV_WORLD_SIZE, "%u", job->world_size);
    add(e, ENV_LOCAL_WORLD_SIZE, "%u", job->world_size);
    add(e, ENV_GROUP_RANK, "0");
    add(e, ENV_GROUP_WORLD_SIZE, "1");
    add(e, ENV_ROLE_NAME, "%s", spec->role);
    add(e, ENV_ROLE_WORLD_SIZE, "%u", job->world_size);
    add(e, ENV_MASTER_ADDR, "%s", spec->master_addr);
    add(e, ENV_MASTER_PORT, "%u", job->master_port);
    add(e, ENV_RESTART_COUNT, "%u", job->restart_count);
    add(e, ENV_MAX_RESTARTS, "%u", spec->max_restarts);
    add(e, ENV_RUN_ID, "%s", job->run_id);
    add(e, ENV_ERROR_FILE, "%s", job->error_file ? job->error_file : "");
    char signals[SIGLIST_TEXT_BYTES];
    add(e, ENV_SIGNALS_TO_HANDLE, "%s", siglist_text(&spec->signals_to_handle, signals));
    add_default(e, ENV_NCCL_ASYNC, "1");
}

char *const *environ_of(struct environ *e, const struct environ_job *job, uint32_t rank)
{
    e->used = 0;
    e->all = e->lists + rank * e->slots;
    e->text = e->texts + (size_t)rank * TEXT_BYTES;
    e->all_n = e->base_n;
    memcpy(e->all, e->base, (e->base_n + 1) * sizeof *e->all);
    add_torchrun(e, job, rank);
    add(e, ENV_BOARD_FD, "%d", job->board_fd);
    add(e, ENV_BELL_FD, "%d", job->bell_fd);
    add(e, ENV_SLOT, "%u", rank);
    add(e, ENV_GENERATION, "%u", job->generation);
    if (rank >= job->world_size)
        add(e, ENV_STANDBY, "%d", (int)job->spec->standby);
    add_gpus(e, job, environ_rank_of(job, rank));
    if (job->ras_port && !inherited_value(e, ENV_NCCL_RAS))
        add(e, ENV_NCCL_RAS, "127.0.0.1:%u", job->ras_port);
    if (job->spec->share_gpus)
        add_shared_gpu(e, job, rank);
    else if (job->gpu_set->n && spec_heals(job->spec))
        add_healing(e);
    if (job->topo_file)
        replace(e, ENV_NCCL_TOPO, job->topo_file);
    if (job->topo_draft)
        add(e, ENV_TOPO_DRAFT, "%s", job->topo_draft);
    if (job->notify && rank < job->world_size)
        add_watchdog(e, job, rank);
    /* One server: NCCL's bootstrap need not be reachable from the network. */
    add_default(e, ENV_NCCL_IFNAME, "lo");
    if (!inherited_value(e, ENV_OMP)) {
        unsigned share = placement_threads(job->placement, environ_rank_of(job, rank),
                                           job->cpus / job->world_size);
        add(e, ENV_OMP, "%u", share ? share : 1);
    }
    return e->all;
}
