/* SPDX-License-Identifier: MIT */
#include "lease.h"

#include "../proto/clock.h"
#include "../proto/env.h"
#include "../proto/status.h"
#include "holdings.h"
#include "lease_wait.h"
#include "log.h"
#include "quarantine.h"
#include "signals.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Who looks at all locks keeps others from it for as long as that takes: microseconds, unless he is stopped. */
#define TABLE_LIMIT_MS 10000
#define TABLE_NAP_NS 200000
/* Who ended a moment ago may still be on a GPU's list. */
#define GONE_LIMIT_MS 500

/* One job on its way to its GPUs. */
struct taking {
    const struct job_spec *spec;
    const struct plan *plan;
    const char *sysroot;
    struct units units;
    struct turn_table table;
    struct turn_ask ask;
    struct holder me;
    uint64_t used; /* by programs without a lease, when we last looked */
    uint64_t bad;  /* in quarantine, likewise; none with --force */
    struct gpu_users users;
    struct lease_wait wait;
    bool queued;
    unsigned told; /* this place in the line was told, + 1 */
    uint64_t granted;
};

static struct holder describe(const struct job_spec *spec)
{
    struct holder me = {.uid = geteuid(), .pid = getpid(), .started = (int64_t)time(NULL)};
    snprintf(me.run, sizeof me.run, "%s", spec->run_id);
    snprintf(me.program, sizeof me.program, "%s", spec->argv[0]);
    return me;
}

/* ---- one unit ---- */

/* A MIG instance's GPU is held, too, but shared: others may have its other instances. */
static int lock_unit(struct units *u, unsigned unit, bool alone, const struct holder *me)
{
    for (int at = (int)unit; at >= 0; at = u->parent[at], alone = false) {
        int rc = holder_lock(u->fd[at], alone);
        if (rc < 0)
            return rc;
        if (!lockdir_is_current(&u->dir, u->name[at], u->fd[at]))
            return -ESTALE;
        if (holder_sign(u->fd[at], me) < 0)
            log_debug("lease: %s: no page to sign", u->name[at]);
    }
    return 0;
}

static void keep(struct lease *lease, struct units *u, unsigned unit)
{
    for (int at = (int)unit; at >= 0; at = u->parent[at])
        if (u->fd[at] >= 0)
            lease->fd[lease->n++] = take_fd(&u->fd[at]);
}

/* New descriptors in the place of those that may have locks: closing the old ones tells those who wait. */
static int give_up(struct taking *t, struct err *err)
{
    struct units *u = &t->units;
    int rc = 0;
    for (uint64_t left = t->granted; left; left &= left - 1)
        for (int at = __builtin_ctzll(left); at >= 0; at = u->parent[at])
            close_fd(&u->fd[at]);
    for (unsigned unit = 0; unit < u->n && rc == 0; unit++)
        rc = units_open_one(u, unit, err);
    t->granted = 0;
    return rc;
}

/* ---- the table of all locks ---- */

static uint64_t find_quarantined(const struct units *u)
{
    struct quarantine q;
    uint64_t bad = 0;
    for (unsigned i = 0; i < u->n; i++)
        bad |= quarantine_of(u, i, &q) ? PICK_BIT(i) : 0;
    return bad;
}

static int open_table(struct taking *t, struct err *err)
{
    uint64_t deadline = clock_deadline_ns(TABLE_LIMIT_MS);
    int rc;
    while ((rc = holder_lock(t->units.queue, true)) == -EAGAIN && clock_now_ns() < deadline)
        nanosleep(&(struct timespec){.tv_nsec = TABLE_NAP_NS}, NULL);
    if (rc < 0)
        return err_set_errno(err, rc, "%s/launch-queue is locked by somebody for %d s",
                             t->units.dir.path, TABLE_LIMIT_MS / 1000);
    units_look(&t->units, &t->table);
    t->bad = t->spec->force ? 0 : find_quarantined(&t->units);
    for (uint64_t left = t->used & t->table.free; left; left &= left - 1)
        t->table.held[t->table.jobs++] = left & -left;
    t->table.free &= ~(t->used | t->bad);
    return 0;
}

static void line_up(struct taking *t)
{
    t->ask.ticket = 1;
    for (unsigned i = 0; i < t->table.asks; i++)
        if (t->table.ask[i].ticket >= t->ask.ticket)
            t->ask.ticket = t->table.ask[i].ticket + 1;
}

static int join_queue(struct taking *t, struct err *err)
{
    struct holder me = t->me;
    me.ticket = t->ask.ticket;
    me.wants = t->ask.wants;
    units_list(&t->units, t->ask.among, me.units);
    int rc = holder_sign(t->units.queue, &me);
    if (rc < 0)
        return err_set(err, rc, "--wait: %d jobs are waiting already", HOLDER_PAGES);
    t->queued = true;
    return 0;
}

/* All of what is granted, or nothing. */
static int lock_granted(struct taking *t, struct err *err)
{
    units_list(&t->units, t->granted, t->me.units);
    for (uint64_t left = t->granted; left; left &= left - 1) {
        int rc = lock_unit(&t->units, (unsigned)__builtin_ctzll(left), true, &t->me);
        if (rc < 0) /* a job that shares was faster, or the file was replaced */
            return give_up(t, err);
    }
    return 0;
}

/* One look at all locks: takes what it is our turn to take, else we have a place in the line. */
static int look(struct taking *t, struct err *err)
{
    int rc = open_table(t, err);
    if (rc < 0)
        return rc;
    if (!t->queued)
        line_up(t);
    t->granted = turn_grant(&t->table, &t->ask);
    if (t->granted)
        rc = lock_granted(t, err);
    if (rc == 0 && !t->granted && !t->queued && t->spec->wait_ms)
        rc = join_queue(t, err);
    holder_unlock(t->units.queue);
    return rc;
}

/* ---- programs without a lease ---- */

static bool is_gone(pid_t pid)
{
    return kill(pid, 0) < 0 && errno == ESRCH;
}

/* The granted GPUs that somebody is on. *ret_fading: one of them has ended, or lives in a container. */
static uint64_t used_ones(const struct taking *t, bool *ret_fading)
{
    uint64_t used = 0;
    *ret_fading = false;
    for (unsigned i = 0; i < t->users.n; i++) {
        const struct gpu_user *user = &t->users.user[i];
        if (!(t->granted & PICK_BIT(user->gpu)))
            continue;
        used |= PICK_BIT(user->gpu);
        *ret_fading |= is_gone(user->pid);
    }
    return used;
}

static uint64_t ask_nvml(struct taking *t)
{
    uint64_t used, deadline = clock_deadline_ns(GONE_LIMIT_MS);
    bool fading;
    do {
        int rc = gpu_users_read(&t->users, t->sysroot, &t->plan->gpus);
        if (rc == -ETIMEDOUT)
            log_warn("--gpus: NVML has not told whether other programs use the GPUs");
        else if (rc < 0)
            log_debug("lease: NVML can't tell whether other programs use the GPUs");
        used = used_ones(t, &fading);
    } while (fading && clock_now_ns() < deadline);
    return used;
}

/* Gives back what is granted if programs without a lease are on some of it, and remembers those. */
static int check_users(struct taking *t, struct err *err)
{
    if (t->spec->force || !t->granted)
        return 0;
    uint64_t used = ask_nvml(t);
    if (!used)
        return 0;
    for (unsigned i = 0; i < t->users.n; i++) {
        char text[HOLDINGS_WHO_BYTES];
        if (!(used & PICK_BIT(t->users.user[i].gpu)))
            continue;
        log_info("GPU %u is used by %s, which launch did not start; --force takes it all the same",
                 t->users.user[i].gpu, holdings_user(&t->users.user[i], text));
        if (t->spec->wait_ms)
            lease_wait_watch(&t->wait, t->users.user[i].pid);
    }
    t->used |= used;
    return give_up(t, err);
}

/* ---- taking ---- */

/* Instances are named by UUIDs that NVML alone can tell the GPU of. */
static void find_parents(struct taking *t)
{
    const struct gpu_set *set = &t->plan->gpu_set;
    const char *name[GPU_MAX];
    int unit[GPU_MAX], parent[GPU_MAX];
    unsigned n = 0;
    for (unsigned i = 0; i < set->n; i++) {
        if (set->index[i] >= 0 || t->units.of_set[i] < 0 ||
            t->units.parent[t->units.of_set[i]] >= 0)
            continue;
        unit[n] = t->units.of_set[i];
        name[n++] = set->entry[i];
    }
    if (gpu_users_find_mig(parent, t->sysroot, &t->plan->gpus, name, n) < 0)
        log_debug("lease: NVML can't tell which GPU a MIG instance is part of");
    for (unsigned i = 0; i < n; i++)
        t->units.parent[unit[i]] = parent[i];
}

static int begin(struct taking *t, struct err *err)
{
    const struct gpu_set *set = &t->plan->gpu_set;
    int rc = units_open(&t->units, t->spec->lease_dir, t->sysroot, &t->plan->gpus, set, err);
    if (rc == 0)
        find_parents(t);
    if (rc == 0)
        rc = units_open_all(&t->units, err);
    if (rc == 0 && t->spec->wait_ms)
        rc = lease_wait_start(&t->wait, t->units.dir.path, &t->spec->signals_to_handle,
                              t->spec->wait_ms, err);
    if (rc < 0)
        return rc;
    t->me = describe(t->spec);
    t->ask.wants = t->plan->gpus_wanted;
    near_read(&t->table.near, t->sysroot, &t->plan->gpus);
    for (unsigned i = 0; i < set->n; i++) {
        if (t->units.of_set[i] >= 0)
            t->ask.among |= PICK_BIT(t->units.of_set[i]);
        else if (t->spec->gpus_mode == GPUS_LIST || t->plan->gpus_wanted == set->n)
            return err_set(
                err, -EINVAL,
                "--gpus: which GPU %s is can't be told; give its index, or the whole name",
                set->entry[i]);
    }
    return 0;
}

static void tell_place(struct taking *t)
{
    unsigned before = turn_before(&t->table, &t->ask);
    if (t->told == before + 1)
        return;
    t->told = before + 1;
    unsigned free = (unsigned)__builtin_popcountll(t->table.free & t->ask.among);
    log_info("waiting for %u GPU%s, %u of %d free: number %u in line", t->ask.wants,
             t->ask.wants == 1 ? "" : "s", free, __builtin_popcountll(t->ask.among), before + 1);
}

/* EXIT_CODE_OK: the granted ones are ours; else the code to exit with, and then err has a line. */
static int take(struct taking *t, struct err *err)
{
    for (;;) {
        uint64_t used = t->used;
        if (look(t, err) < 0 || check_users(t, err) < 0)
            return EXIT_CODE_OURS;
        if (t->granted)
            return EXIT_CODE_OK;
        if (used != t->used)
            continue; /* without those */
        bool process;
        int event = LEASE_WAIT_OVER;
        if (t->spec->wait_ms) {
            tell_place(t);
            event = lease_wait(&t->wait, &process);
        }
        if (event == LEASE_WAIT_OVER) {
            err_set(err, -EBUSY, "--gpus: %u of the %d GPUs asked for are free, %u are needed%s%s",
                    (unsigned)__builtin_popcountll(t->table.free & t->ask.among),
                    __builtin_popcountll(t->ask.among), t->ask.wants,
                    t->spec->wait_ms ? "; the time of --wait is over" : " (--wait waits for them)",
                    t->bad & t->ask.among ? "; --force takes those in quarantine, too" : "");
            return EXIT_CODE_BUSY;
        }
        if (event > 0) {
            err_set(err, -EINTR, "--wait: ended while waiting for GPUs; nothing was started");
            return 128 + event;
        }
        if (process)
            t->used = 0; /* look at all again */
    }
}

static void tell_table(struct taking *t)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return;
    bool known = gpu_users_read(&t->users, t->sysroot, &t->plan->gpus) == 0;
    holdings_print(out, &t->units, &t->plan->gpus, known ? &t->users : NULL, "launch:   ");
    if (fclose(out) == 0)
        log_block(text, n);
    free(text);
}

static void keep_granted(struct lease *lease, struct taking *t, struct plan *plan)
{
    uint64_t chosen = 0;
    for (unsigned i = 0; i < plan->gpu_set.n; i++)
        if (t->units.of_set[i] >= 0 && (t->granted & PICK_BIT(t->units.of_set[i])))
            chosen |= PICK_BIT(i);
    plan_take_gpus(plan, chosen);
    for (uint64_t left = t->granted; left; left &= left - 1)
        keep(lease, &t->units, (unsigned)__builtin_ctzll(left));
}

int lease_take(struct lease *lease, const struct job_spec *spec, struct plan *plan,
               const char *sysroot)
{
    struct err err = {0};
    struct taking *t = calloc(1, sizeof *t);
    *lease = LEASE_NONE;
    if (!t) {
        log_error("no memory");
        return EXIT_CODE_OURS;
    }
    *t = (struct taking){.spec = spec, .plan = plan, .sysroot = sysroot};
    uint64_t began = clock_now_ns();
    int code = begin(t, &err) < 0 ? EXIT_CODE_USAGE : take(t, &err);
    if (code)
        log_error("%s", err.text);
    if (code == EXIT_CODE_BUSY)
        tell_table(t);
    if (code == EXIT_CODE_OK) {
        keep_granted(lease, t, plan);
        lease->watch = lease_wait_detach(&t->wait);
    }
    log_debug("lease: %s after %.3f ms", code ? "none" : t->me.units,
              (double)(clock_now_ns() - began) / NS_PER_MS);
    lease_wait_stop(&t->wait);
    units_close(&t->units);
    free(t);
    if (code == 128 + SIGINT)
        signals_die_of_interrupt();
    return code;
}

/* ---- sharing ---- */

static void warn_of_lease(const struct units *u, unsigned unit, const char *entry)
{
    struct holder who = {0};
    char text[HOLDINGS_WHO_BYTES] = "another job";
    unsigned page = 0;
    const char *outer = getenv(ENV_RUN_ID);
    if (holder_next(u->fd[unit], &page, &who)) {
        if (outer && strcmp(outer, who.run) == 0)
            return; /* we are a part of it */
        holdings_who(&who, text);
    }
    log_warn("GPU %s is leased by %s; --gpus takes GPUs that nobody else has", entry, text);
}

/* Of the GPUs that the workers would use, those in quarantine: bits of the set. */
static uint64_t find_bad(struct units *u, const struct plan *plan, struct err *err)
{
    uint64_t bad = 0;
    struct quarantine q;
    for (unsigned i = 0, good = 0; i < plan->gpu_set.n && good < plan->world_size; i++) {
        int unit = u->of_set[i];
        bool known = unit >= 0 && units_open_one(u, (unsigned)unit, err) == 0;
        if (known && quarantine_of(u, (unsigned)unit, &q))
            bad |= PICK_BIT(i);
        else
            good++;
    }
    return bad;
}

static void warn_of_bad(const struct units *u, const struct gpu_set *set, uint64_t bad,
                        bool avoided)
{
    struct quarantine q = {0};
    for (; bad; bad &= bad - 1) {
        int i = __builtin_ctzll(bad);
        if (quarantine_of(u, (unsigned)u->of_set[i], &q))
            log_warn("GPU %s is in quarantine: %s; %s", set->entry[i], q.reason,
                     avoided ? "the job does without it (--force uses it)"
                             : "it is used all the same, as the job needs so many");
    }
}

/* Leaves GPUs in quarantine out. 1: the set has changed; 0; -EBUSY: told. */
static int avoid_bad(struct units *u, const struct job_spec *spec, struct plan *plan)
{
    struct err err;
    uint64_t bad = find_bad(u, plan, &err);
    if (!bad)
        return 0;
    struct gpu_set before = plan->gpu_set;
    int rc = plan_avoid_gpus(plan, spec, bad, &err);
    if (rc >= 0)
        warn_of_bad(u, &before, bad, rc > 0);
    else
        log_error("%s", err.text);
    return rc;
}

static int share_all(struct lease *lease, const struct job_spec *spec, const struct plan *plan,
                     struct units *u, struct err *err)
{
    const struct gpu_set *set = &plan->gpu_set;
    struct holder me = describe(spec);
    bool warned = false;
    unsigned n = plan->world_size < set->n ? plan->world_size : set->n;
    for (unsigned i = 0; i < n; i++) {
        if (u->of_set[i] < 0)
            continue;
        unsigned unit = (unsigned)u->of_set[i];
        int rc = units_open_one(u, unit, err);
        if (rc < 0)
            return rc;
        rc = lock_unit(u, unit, false, &me); /* of one that can't be had the others know nothing */
        if (rc == -EAGAIN && !warned) {
            warn_of_lease(u, unit, set->entry[i]);
            warned = true;
        }
        if (rc == 0)
            keep(lease, u, unit);
    }
    return 0;
}

int lease_share(struct lease *lease, const struct job_spec *spec, struct plan *plan,
                const char *sysroot)
{
    struct units u;
    struct err err;
    uint64_t began = clock_now_ns();
    *lease = LEASE_NONE;
    int rc = units_open(&u, spec->lease_dir, sysroot, &plan->gpus, &plan->gpu_set, &err);
    int changed = rc < 0 || spec->force ? 0 : avoid_bad(&u, spec, plan);
    if (changed > 0) {
        units_close(&u);
        rc = units_open(&u, spec->lease_dir, sysroot, &plan->gpus, &plan->gpu_set, &err);
    }
    if (rc == 0 && changed >= 0)
        rc = share_all(lease, spec, plan, &u, &err);
    if (rc < 0)
        log_debug("no hold on the GPUs: %s", err.text);
    units_close(&u);
    log_debug("lease: %u shared after %.3f ms", lease->n,
              (double)(clock_now_ns() - began) / NS_PER_MS);
    return changed < 0 ? EXIT_CODE_BUSY : EXIT_CODE_OK;
}

void lease_close(struct lease *lease)
{
    for (unsigned i = 0; i < lease->n; i++)
        close_fd(&lease->fd[i]);
    close_fd(&lease->watch); /* last, for it takes long */
    lease->n = 0;
}

void lease_sign_again(const struct lease *lease, const struct job_spec *spec)
{
    struct holder me = describe(spec);
    for (unsigned i = 0; i < lease->n; i++) {
        holder_unsign(lease->fd[i]);
        if (holder_sign(lease->fd[i], &me) < 0)
            log_debug("lease: no page to sign");
    }
}
