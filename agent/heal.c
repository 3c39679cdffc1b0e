/* SPDX-License-Identifier: MIT */
#include "heal.h"

#include "../proto/clock.h"
#include "job_inside.h"
#include "leftovers.h"
#include "log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FRESH_SHOWN 4 /* replaced ranks that the log names */

int heal_init(struct heal *h, uint32_t world_size)
{
    *h = (struct heal){.loss = calloc(world_size, 1),
                       .fresh = calloc(world_size, 1),
                       .retried = calloc(world_size, sizeof *h->retried)};
    int rc = regrow_init(&h->regrow, world_size);
    return h->loss && h->fresh && h->retried ? rc : -ENOMEM;
}

void heal_finish(struct heal *h)
{
    regrow_finish(&h->regrow);
    free(h->loss);
    free(h->fresh);
    free(h->retried);
    *h = (struct heal){0};
}

void heal_begin(struct heal *h, uint32_t world_size)
{
    struct heal begun = {
        .loss = h->loss, .fresh = h->fresh, .retried = h->retried, .regrow = h->regrow};
    regrow_stop(&begun.regrow);
    memset(h->loss, LOSS_NONE, world_size);
    memset(h->fresh, FRESH_NO, world_size);
    memset(h->retried, false, world_size * sizeof *h->retried);
    *h = begun;
}

bool heal_knows(const struct job *job, uint32_t rank)
{
    return job->heal.loss[rank] != LOSS_NONE;
}

/* ---- can it be healed? ---- */

static const struct host_board *board_of(const struct job *job)
{
    return &job->attempt.board;
}

/* Have all but one called launch_meet()? */
static bool all_can_heal(const struct job *job, uint32_t but)
{
    for (uint32_t i = 0; i < job->world_size; i++)
        if (i != but && !host_board_can_heal(board_of(job), i))
            return false;
    return true;
}

bool heal_consented(struct job *job)
{
    if (!job->heal.consented)
        job->heal.consented = all_can_heal(job, UINT32_MAX);
    return job->heal.consented;
}

/* It has done its work. Whether it has ended as well is a matter of moments, which nothing may depend on. */
static bool has_left(const struct job *job, uint32_t i)
{
    const struct rank *rank = &job->group.ranks[i];
    return rank->ended ? rank->reason == REASON_NONE
                       : rank_alive(rank) && host_board_has_left(board_of(job), i);
}

/* Ranks that can go on without the lost one. */
static uint32_t survivors(const struct job *job, uint32_t lost)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < job->world_size; i++)
        n += i != lost && !heal_knows(job, i) && rank_alive(&job->group.ranks[i]) &&
             !has_left(job, i);
    return n;
}

/* NULL, or why the job can't be healed. */
static const char *obstacle(struct job *job, uint32_t lost)
{
    if (survivors(job, lost) == 0)
        return "no other rank is left";
    if (!job->heal.consented && !all_can_heal(job, lost))
        return "not all ranks have called launch_meet()";
    return NULL;
}

static bool wants_healing(const struct job *job)
{
    return spec_heals(job->config->spec) &&
           (job->life.state == JOB_RUN || job->life.state == JOB_HEAL) && !job->stop_signal;
}

/* What becomes of the rank; LOSS_NONE: the job can't go on. */
static enum loss decide(struct job *job, uint32_t rank)
{
    const struct job_spec *spec = job->config->spec;
    bool started =
        host_board_stage(board_of(job), rank) != STAGE_NONE || job->life.state == JOB_RUN;
    struct heal *h = &job->heal;
    uint64_t best_step = job->after.best_step;
    job->failure.gpu_out = gpu_watch_is_out(&job->gpu_watch, rank);
    bool again = aftermath_heal(&job->after, &job->failure, &board_of(job)->board, started,
                                h->retried[rank]);
    if (job->after.best_step > best_step)
        memset(h->retried, false, job->world_size * sizeof *h->retried);
    if (again)
        return LOSS_PENDING;
    if (spec->on_failure != ON_FAILURE_SHRINK || !job->after.verdict.spent)
        return LOSS_NONE;
    if (board_of(job)->members > spec->min_workers)
        return LOSS_FOR_GOOD;
    log_info("rank %u was lost, and with fewer than %u workers the job does not go on "
             "(--min-workers)",
             rank, spec->min_workers);
    return LOSS_NONE;
}

static void tell_loss(const struct job *job, uint32_t rank, enum loss loss)
{
    const struct failure *f = &job->failure;
    const struct restart_verdict *verdict = &job->after.verdict;
    char next[96];
    if (loss == LOSS_PENDING)
        snprintf(next, sizeof next, "it is replaced (restart %u of %u)", verdict->counted + 1,
                 job->config->spec->max_restarts);
    else
        snprintf(next, sizeof next, "the job goes on with %u rank%s", board_of(job)->members,
                 board_of(job)->members == 1 ? "" : "s");
    log_warn("rank %u of %u %s (pid %d); %s", rank, job->world_size, f->what, (int)f->pid, next);
    for (const char *line = f->evidence; line && *line; line += strcspn(line, "\n") + 1) {
        size_t n = strcspn(line, "\n");
        log_info("  %.*s", (int)n, line);
        if (!line[n])
            break;
    }
}

/* Ranks that had done their work are needed again, too: a generation has all of them. Those that have not ended yet have their
 * time to: what they write at their end shall be whole. */
static void call_back_finished(struct job *job)
{
    for (uint32_t i = 0; i < job->world_size; i++)
        if (!heal_knows(job, i) && has_left(job, i))
            job->heal.loss[i] = LOSS_PENDING;
}

bool heal_calls_back(struct job *job, uint32_t i)
{
    if (job->life.state != JOB_HEAL || job->group.ranks[i].reason != REASON_NONE ||
        !host_board_has_left(board_of(job), i) || survivors(job, i) == 0)
        return false;
    job->heal.loss[i] = LOSS_PENDING;
    return true;
}

bool heal_accept(struct job *job, uint32_t lost)
{
    struct heal *h = &job->heal;
    if (!wants_healing(job))
        return false;
    const char *why_not = obstacle(job, lost);
    if (why_not) {
        log_info("rank %u was lost and the job can't be healed: %s", lost, why_not);
        return false;
    }
    enum loss loss = decide(job, lost);
    if (loss == LOSS_NONE)
        return false;
    uint64_t now = clock_now_ns();
    if (!h->since_ns)
        h->since_ns = now;
    h->consented = h->stale = true;
    h->grows = false;
    h->loss[lost] = (uint8_t)loss;
    h->not_before_ns = now + job->after.verdict.after_ms * NS_PER_MS;
    if (loss == LOSS_FOR_GOOD)
        host_board_drop(&job->attempt.board, lost);
    call_back_finished(job);
    if (!job->group.ranks[lost].suspected)
        rank_signal(&job->group.ranks[lost], SIGKILL); /* it may only hang */
    tell_loss(job, lost, loss);
    job->failure = (struct failure){0};
    if (loss == LOSS_FOR_GOOD)
        regrow_watch(job, lost);
    return true;
}

/* ---- growing ---- */

static bool is_missing(const struct job *job, uint32_t i)
{
    return job->heal.loss[i] == LOSS_FOR_GOOD;
}

/* Whoever has done its work can't meet the others any more. */
static bool someone_left(const struct job *job, uint32_t *ret)
{
    for (*ret = 0; *ret < job->world_size; ++*ret) {
        const struct rank *rank = &job->group.ranks[*ret];
        if (!heal_knows(job, *ret) &&
            (rank->ended || host_board_stage(board_of(job), *ret) >= STAGE_LEFT))
            return true;
    }
    return false;
}

static int refuse_growth(const struct job *job, int rank, struct err *err)
{
    uint32_t i, missing = job->world_size - board_of(job)->members;
    if ((job->life.state != JOB_RUN && job->life.state != JOB_HEAL) || job->stop_signal)
        return err_set(err, -EBUSY, "the job is in state %s: it can't grow now",
                       lifecycle_state_name(job->life.state));
    if (!missing)
        return err_set(err, -EINVAL, "the job has all its %u ranks", job->world_size);
    if (rank >= 0 && !is_missing(job, (uint32_t)rank))
        return err_set(err, -EINVAL, "rank %d is not missing", rank);
    if (someone_left(job, &i))
        return err_set(err, -EBUSY, "rank %u has done its work already: the job is about to end",
                       i);
    return 0;
}

/* Those whose GPU is fit for it. */
static int take_back(struct job *job, int rank, struct err *err)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < job->world_size; i++) {
        struct quarantine q;
        if (!is_missing(job, i) || (rank >= 0 && (uint32_t)rank != i))
            continue;
        if (regrow_is_barred(job, i, &q)) {
            (void)!err_set(
                err, -EBUSY,
                "the GPU of rank %u is in quarantine: %s (launch gpus --clear ends that)", i,
                q.reason);
            continue;
        }
        job->heal.loss[i] = LOSS_PENDING;
        host_board_regain(&job->attempt.board, i);
        n++;
    }
    return n ? 0 : -EBUSY; /* some rank is missing: the line is there */
}

int heal_grow(struct job *job, int rank, struct err *err)
{
    struct heal *h = &job->heal;
    int rc = refuse_growth(job, rank, err);
    if (rc < 0)
        return rc;
    rc = take_back(job, rank, err);
    if (rc < 0)
        return rc;
    if (board_of(job)->members == job->world_size)
        regrow_stop(&h->regrow);
    if (!h->since_ns) {
        h->since_ns = clock_now_ns();
        h->grows = true;
    }
    h->stale = true;
    job_post(job, EVENT_HEAL);
    return 0;
}

/* ---- replacing ---- */

/* 0 also when its process has still to die. */
static int replace(struct job *job, struct rank *rank, struct err *err)
{
    unsigned seat = rank->seat;
    uint32_t generation = rank->generation;
    char line[160];
    if (rank->pid && !rank->suspected)
        return 0;
    if (rank->last_pid)
        snprintf(line, sizeof line, "launch: pid %d is gone; generation %u begins here\n",
                 (int)rank->last_pid, job->generation);
    else
        snprintf(line, sizeof line, "launch: back again; generation %u begins here\n",
                 job->generation);
    if (rank->pid && group_bury(&job->group, rank) < 0)
        return err_set(err, -ENOMEM, "no memory");
    if (job->relay)
        relay_rank_cut(job->relay, rank->index);
    logs_renew(job->config->logs, rank->index, line);
    group_revive(&job->group, rank->index, job->relay != NULL);
    vigil_forget(&job->vigil, rank->index);
    bool warm = reserve_use(&job->reserve, rank->index);
    int rc = warm ? 0 : attempt_start_rank(&job->attempt, &job->start, rank->index, err);
    leftovers_kill_of(&job->group, seat, generation);
    if (rc < 0)
        return rc;
    job->heal.loss[rank->index] = LOSS_NONE;
    job->heal.retried[rank->index] = true;
    job->heal.fresh[rank->index] = warm ? FRESH_WARM : FRESH_COLD;
    return 0;
}

static void fail(struct job *job, uint32_t rank, const char *why)
{
    struct failure *f = &job->failure;
    *f = (struct failure){.happened = true,
                          .has_rank = true,
                          .rank = rank,
                          .reason = REASON_SPAWN,
                          .at = time(NULL),
                          .exit_code = EXIT_CODE_OURS};
    snprintf(f->what, sizeof f->what, "can't be started again: %.400s", why);
    if (job->relay)
        relay_rank_drain(job->relay, rank, 0);
    group_note_exit(&job->group, rank); /* it was counted as alive again */
    job_post(job, EVENT_SPAWN_FAILED);
}

/* ---- deadlines ---- */

static void on_backoff(uv_timer_t *timer)
{
    job_post(timer->data, EVENT_HEAL);
}

/* False: the job can't go on. */
static bool give_up_on(struct job *job, uint32_t i)
{
    struct rank *rank = &job->group.ranks[i];
    bool killed = heal_knows(job, i);
    if (killed && !rank->stopped_by_us && !rank->suspected) {
        log_warn("rank %u had done its work and has not ended within %g s (--heal-timeout); it is "
                 "killed, as it is needed again",
                 i, (double)job->config->spec->heal_timeout_ms / 1000);
        rank_signal(rank, SIGKILL);
        job->heal.stale = true; /* the others have waited for as long */
        return true;
    }
    aftermath_blame(&job->failure, rank, &board_of(job)->board, REASON_HANG, EXIT_CODE_HANG);
    snprintf(job->failure.what, sizeof job->failure.what,
             killed ? "can't be killed (state D?)"
                    : "did not meet the others again within %g s (--heal-timeout)",
             (double)job->config->spec->heal_timeout_ms / 1000);
    return !killed && heal_accept(job, i);
}

/* All have come, and one that was replaced is dying still: what it holds of its GPU is not free. */
static void blame_dying(struct job *job, const struct rank *dying)
{
    aftermath_blame(&job->failure, dying, &board_of(job)->board, REASON_HANG, EXIT_CODE_HANG);
    snprintf(job->failure.what, sizeof job->failure.what,
             "was replaced, but its old process keeps its GPU: it is not gone after %g s "
             "(--heal-timeout; state D?)",
             (double)job->config->spec->heal_timeout_ms / 1000);
}

static void on_deadline(uv_timer_t *timer)
{
    struct job *job = timer->data;
    bool goes_on = true;
    const struct rank *dying = group_dying(&job->group);
    if (dying && job->joined == board_of(job)->members) {
        blame_dying(job, dying);
        job_post(job, EVENT_RANK_LOST);
        return;
    }
    call_back_finished(job);
    for (uint32_t i = 0; goes_on && i < job->world_size; i++) {
        bool awaited = rank_alive(&job->group.ranks[i]) &&
                       !host_board_is_member(board_of(job), i) &&
                       job->heal.loss[i] != LOSS_FOR_GOOD;
        if (awaited)
            goes_on = give_up_on(job, i);
    }
    job_post(job, goes_on ? EVENT_HEAL : EVENT_RANK_LOST);
}

/* ---- the state ---- */

static void open_generation(struct job *job)
{
    job->heal.stale = false;
    job->joined = 0;
    job->start.job.generation = ++job->generation;
    aftermath_note_steps(&job->after, &board_of(job)->board);
    host_board_next(&job->attempt.board, job->generation, job->config->spec->heal_timeout_ms);
}

void heal_enter(struct job *job)
{
    struct heal *h = &job->heal;
    if (h->stale)
        open_generation(job);
    uint64_t now = clock_now_ns();
    uv_update_time(&job->loop);
    if (now < h->not_before_ns) {
        uv_timer_start(&job->timer, on_backoff, (h->not_before_ns - now) / NS_PER_MS + 1, 0);
        return;
    }
    for (uint32_t i = 0; i < job->world_size; i++) {
        struct err err;
        if (h->loss[i] != LOSS_PENDING || replace(job, &job->group.ranks[i], &err) == 0)
            continue;
        fail(job, i, err.text);
        return;
    }
    if (job->config->spec->heal_timeout_ms)
        uv_timer_start(&job->timer, on_deadline, job->config->spec->heal_timeout_ms, 0);
}

/* "rank 3 is pid 12 (a standby), rank 5 is pid 13 and 2 more; " */
static void list_fresh(struct job *job, char *text, size_t size)
{
    uint32_t n = 0;
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < job->world_size; i++) {
        uint8_t fresh = job->heal.fresh[i];
        job->heal.fresh[i] = FRESH_NO;
        if (fresh == FRESH_NO || n++ >= FRESH_SHOWN)
            continue;
        used += (size_t)snprintf(text + used, size - used, "%srank %u is pid %d%s",
                                 n > 1 ? ", " : "", i, (int)job->group.ranks[i].pid,
                                 fresh == FRESH_WARM ? " (a standby)" : "");
    }
    if (n > FRESH_SHOWN)
        used += (size_t)snprintf(text + used, size - used, " and %u more", n - FRESH_SHOWN);
    if (n)
        snprintf(text + used, size - used, "; ");
}

void heal_done(struct job *job)
{
    struct heal *h = &job->heal;
    char who[FRESH_SHOWN * 64 + 32];
    if (!h->since_ns)
        return;
    double ms = (double)(clock_now_ns() - h->since_ns) / NS_PER_MS;
    h->since_ns = 0;
    list_fresh(job, who, sizeof who);
    if (h->grows)
        log_info("grown to %u ranks after %.1f ms: %sgeneration %u", board_of(job)->members, ms,
                 who, job->generation);
    else
        log_info("healed after %.1f ms: %sgeneration %u", ms, who, job->generation);
    job->after.healings += !h->grows;
    h->grows = false;
    reserve_fill(&job->reserve);
}
