/* SPDX-License-Identifier: MIT */
#include "news.h"

#include "../proto/clock.h"
#include "leftovers.h"
#include "log.h"
#include "outlet.h"
#include "watch.h"

#include <stdio.h>
#include <unistd.h>

/* After a worker's end its pipes are read for so long; a grandchild may hold them open for ever. */
#define DRAIN_MS 200
/* One Ctrl-C can reach us twice (directly, and forwarded by the guard): that is no second request. */
#define SAME_SIGNAL_NS (200 * NS_PER_MS)

void news_on_rank_drained(void *user, unsigned rank)
{
    struct job *job = user;
    if (group_note_drained(&job->group, rank))
        job_post(job, EVENT_ENDED);
}

/* Writes down the first failure of the attempt; later ones are only its consequences. One that was known early
 * (on_lock_lost) is written again once it is certain. */
static void note_failure(struct job *job, const struct rank *rank, enum reason reason,
                         int exit_code)
{
    struct failure *f = &job->failure;
    bool certain_now = rank->suspected && rank->ended && f->has_rank && f->rank == rank->index;
    if ((f->happened && !certain_now) || job->stop_signal || job->restart_asked)
        return;
    aftermath_blame(f, rank, &job->attempt.board.board, reason, exit_code);
    if (rank->ended)
        job->after.oom = oom_explain(&job->oom, rank->signalled && rank->code == SIGKILL, f->what,
                                     sizeof f->what);
    gpu_watch_explain(&job->gpu_watch, rank, f->what, sizeof f->what);
}

/* No worker is left: what is there still was left behind by one. */
static bool is_tidying(const struct job *job)
{
    return job->life.state == JOB_SWEEP || job->life.state == JOB_PURGE;
}

bool news_never_joined(const struct job *job, uint32_t rank)
{
    return host_board_stage(&job->attempt.board, rank) == STAGE_NONE;
}

/* A rank ended with 0 because it was told to end, and not by us: what the board says is no success. */
static bool was_misled(struct job *job, const struct rank *rank)
{
    uint32_t word = host_board_false_stop(&job->attempt.board, rank->index);
    if (!word)
        return false;
    note_failure(job, rank, REASON_EXIT, EXIT_CODE_OURS);
    snprintf(
        job->failure.what, sizeof job->failure.what,
        "ended with 0 because it was told to (%u), but not by launch: a worker has written over "
        "the memory that all share",
        word);
    return true;
}

/* A rank that ended with 0 and that others will wait for: in launch_join(), or, if it is a member that has not left,
 * in the next collective. */
static bool is_missed(const struct job *job, uint32_t rank)
{
    if (job->life.state == JOB_HEAL)
        return true;
    if (job->life.state != JOB_RUN && job->life.state != JOB_RENDEZVOUS)
        return false;
    return host_board_is_member(&job->attempt.board, rank) ||
           (job->life.state == JOB_RENDEZVOUS && news_never_joined(job, rank));
}

void news_note_early_leaver(struct job *job, const struct rank *rank)
{
    note_failure(job, rank, REASON_RENDEZVOUS, EXIT_CODE_OURS);
    snprintf(job->failure.what, sizeof job->failure.what, "%s",
             job->life.state == JOB_HEAL ? "ended with 0 instead of meeting the others"
             : news_never_joined(job, rank->index)
                 ? "ended with 0 without calling launch_join(), which others wait in"
                 : "ended with 0 after launch_join() and without launch_leave()");
}

/* The failure has been written down. event: when the rank can't be replaced. */
static void lose(struct job *job, uint32_t rank, enum job_event event)
{
    job_post(job, heal_accept(job, rank) ? EVENT_HEAL : event);
}

void news_on_hang(void *user, uint32_t rank, const char *what, const char *evidence)
{
    struct job *job = user;
    note_failure(job, &job->group.ranks[rank], REASON_HANG, EXIT_CODE_HANG);
    snprintf(job->failure.what, sizeof job->failure.what, "%s", what);
    gpu_watch_explain(&job->gpu_watch, &job->group.ranks[rank], job->failure.what,
                      sizeof job->failure.what);
    job->failure.evidence = evidence;
    lose(job, rank, EVENT_HANG);
}

/* Its loss is known; or its work was done and it is needed again, which is no loss, unless it has failed after all. */
static bool is_expected(struct job *job, const struct rank *rank)
{
    bool failed = rank->reason == REASON_EXIT || rank->reason == REASON_SIGNAL;
    return heal_knows(job, rank->index) ? rank->suspected || !failed
                                        : heal_calls_back(job, rank->index);
}

void news_on_rank_exit(void *user, struct rank *rank)
{
    struct job *job = user;
    log_debug("rank %u: pid %d ended (%s %d)", rank->index, (int)rank->last_pid,
              rank->signalled ? "signal" : "code", rank->code);
    host_board_look_at(&job->attempt.board, rank->index);
    bool expected = is_expected(job, rank);
    if (expected) {
        log_debug("rank %u: that was expected", rank->index);
    } else if (!job->relay && rank->signalled && rank->code == SIGPIPE &&
               outlet_reader_gone(STDOUT_FILENO)) {
        news_on_outlet_gone(job, RELAY_STDOUT); /* a single worker sees it before we do */
    } else if (rank->reason != REASON_NONE && rank->reason != REASON_STOPPED) {
        note_failure(job, rank, rank->reason, rank_exit_code(rank));
        lose(job, rank->index, EVENT_RANK_LOST);
    } else if (rank->reason == REASON_NONE && was_misled(job, rank)) {
        job_post(job, EVENT_RANK_LOST);
    } else if (rank->reason == REASON_NONE && is_missed(job, rank->index)) {
        news_note_early_leaver(job, rank);
        lose(job, rank->index, EVENT_RANK_LOST);
    }
    if (rank_alive(rank)) { /* again */
        news_look_after_leftovers(job);
        return;
    }
    if (job->relay)
        relay_rank_drain(job->relay, rank->index, DRAIN_MS);
    if (group_note_exit(&job->group, rank->index))
        job_post(job, EVENT_ENDED);
    if (expected && job->life.state == JOB_HEAL)
        job_post(job, EVENT_HEAL);
    if (job->heal.loss[rank->index] == LOSS_FOR_GOOD) {
        leftovers_kill_of(&job->group, rank->seat, rank->generation);
        rank_forget(rank); /* whatever fails later, this is not why */
    }
    news_look_after_leftovers(job);
}

/* A joined worker is dying: the group is stopped now, and not when the kernel has torn its memory down. */
static void on_lock_lost(void *user, uint32_t index)
{
    struct job *job = user;
    struct rank *rank = &job->group.ranks[index];
    if (!rank_suspect(rank))
        return;
    note_failure(job, rank, rank->reason, rank_exit_code(rank));
    lose(job, index, EVENT_RANK_LOST);
}

/* Lets all go once they have come. On a GPU the dead must have given their memory back before, which takes a tenth of a
 * second: what goes without it can begin. */
static void release(struct job *job)
{
    struct host_board *board = &job->attempt.board;
    if (job->joined < board->members)
        return;
    if (!board->gathered) /* else they may be reading */
        attempt_tell_topology(&job->attempt, &job->start);
    if (group_dying(&job->group) && job->config->plan->gpu_set.n) {
        if (host_board_gather(board))
            return;
    } else if (host_board_release(board)) {
        job_post(job, EVENT_JOINED);
        return;
    }
    job->failure = (struct failure){
        .happened = true, .reason = REASON_RENDEZVOUS, .exit_code = EXIT_CODE_OURS};
    snprintf(job->failure.what, sizeof job->failure.what,
             "no rank has the job's state any more: the last one that had it was lost while it was "
             "copied");
    job_post(job, EVENT_RANK_LOST);
}

void news_on_buried(void *user)
{
    struct job *job = user;
    if (job->life.state == JOB_HEAL)
        release(job);
    news_look_after_leftovers(job);
}

/* Standbys are of use only to a job that can heal: any other would do its work one more time in them. */
void news_on_bell(void *user)
{
    struct job *job = user;
    if (job->life.state != JOB_RUN)
        return;
    if (!job->heal.consented && heal_consented(job))
        reserve_fill(&job->reserve);
    reserve_look(&job->reserve);
}

void news_on_stage(void *user, uint32_t rank, enum stage stage)
{
    struct job *job = user;
    log_debug("rank %u: %s", rank, stage_name(stage));
    if (stage != STAGE_JOINED || is_tidying(job))
        return;
    attempt_watch(&job->attempt, &job->loop, rank, on_lock_lost, job);
    if (++job->joined == 1)
        job_post(job, EVENT_JOINING);
    release(job);
}

static void request_stop(struct job *job, int sig)
{
    uint64_t now = clock_now_ns();
    if (!job->stop_signal) {
        job->stop_signal = sig;
        job->stop_signal_ns = now;
        job_post(job, EVENT_STOP);
    } else if (now - job->stop_signal_ns >= SAME_SIGNAL_NS) {
        job_post(job, EVENT_NOW);
    }
}

void news_on_outlet_gone(void *user, enum relay_stream_kind kind)
{
    struct job *job = user;
    if (kind != RELAY_STDOUT || job->stop_signal)
        return;
    log_error("whoever read our stdout has gone; ending the job");
    request_stop(job, SIGPIPE);
}

void news_look_after_leftovers(struct job *job)
{
    if (leftovers_reap(&job->group) && is_tidying(job))
        job_decide(job);
    else if (job->life.state == JOB_PURGE)
        leftovers_kill(&job->group);
}

/* Workers are sessions of their own, where the kernel ignores a terminal's stop signals: they get SIGSTOP. */
static void suspend(struct job *job)
{
    group_signal(&job->group, SIGSTOP);
    raise(SIGSTOP);
}

void news_on_signal(void *user, const struct signalfd_siginfo *info)
{
    struct job *job = user;
    int sig = (int)info->ssi_signo;
    if (sig < 32 && (job->config->ignored_signals & (1u << sig)))
        return;
    if (sig == SIGCHLD) {
        group_tell_stops(&job->group);
        news_look_after_leftovers(job);
    } else if (sig == SIGTSTP) {
        suspend(job);
    } else if (sig == SIGCONT) {
        vigil_again(&job->vigil);
        group_signal(&job->group, SIGCONT);
    } else if (siglist_has(&job->config->spec->signals_to_handle, sig)) {
        request_stop(job, sig);
    } else if (siglist_has(&job->config->spec->forward_signals, sig) &&
               (info->ssi_code > 0 || (pid_t)info->ssi_pid == getppid())) {
        /* What is sent to our process group comes from the guard as well: once is enough. */
        group_pass_on(&job->group, sig);
    }
}

/* A rank that is named does not get the time of the others: it may hang. */
static int request_restart(struct job *job, int rank, struct err *err)
{
    if (job->life.state != JOB_RUN && job->life.state != JOB_RENDEZVOUS &&
        job->life.state != JOB_HEAL)
        return err_set(
            err, -EBUSY, "the job is in state %s: it is %s", lifecycle_state_name(job->life.state),
            job->life.state == JOB_RESTART || job->restart_asked ? "being started again already"
                                                                 : "ending");
    job->restart_asked = true;
    if (rank != WIRE_ALL_RANKS)
        rank_signal(&job->group.ranks[rank], SIGKILL);
    job_post(job, EVENT_RESTART);
    return 0;
}

static int pass_signal(struct job *job, int rank, int sig, struct err *err)
{
    if (sig < 1 || sig > SIGRTMAX)
        return err_set(err, -EINVAL, "there is no signal %d", sig);
    for (uint32_t i = 0; i < job->world_size; i++)
        if (job->group.ranks[i].pid && (rank == WIRE_ALL_RANKS || rank == (int)i))
            kill(job->group.ranks[i].pid, sig); /* not reaped: the pid is the worker's */
    return 0;
}

int news_on_request(struct job *job, const struct wire_request *request, pid_t who, struct err *err)
{
    static const struct {
        const char *what, *command;
    } asked[WIRE_VERBS_N] = {[WIRE_STOP] = {"to end", "stop"},
                             [WIRE_KILL] = {"to end now", "stop"},
                             [WIRE_RESTART] = {"to start all ranks again", "restart"},
                             [WIRE_GROW] = {"for lost ranks to come back", "grow"}};
    if (asked[request->verb].what)
        log_info("asked %s (launch %s, pid %d)", asked[request->verb].what,
                 asked[request->verb].command, (int)who);
    switch (request->verb) {
    case WIRE_STOP:
        request_stop(job, SIGTERM);
        return 0;
    case WIRE_KILL:
        if (!job->stop_signal)
            job->stop_signal = SIGTERM;
        job_post(job, EVENT_NOW);
        return 0;
    case WIRE_RESTART:
        return request_restart(job, request->rank, err);
    case WIRE_GROW:
        return heal_grow(job, request->rank, err);
    case WIRE_SIGNAL:
        return pass_signal(job, request->rank, request->number, err);
    default:
        return err_set(err, -EINVAL, "request %u asks for nothing to be done", request->verb);
    }
}

/* The whole job's time is over. One that has done its work and is only cleaned up after is let finish. */
void news_on_limit(uv_timer_t *timer)
{
    struct job *job = timer->data;
    if (job->stop_signal || job->life.state == JOB_DONE ||
        (is_tidying(job) && !job->failure.happened))
        return;
    if (job->life.state == JOB_RESTART)
        log_error("the job's time is over (--timeout)");
    if (!job->failure.happened) {
        job->failure =
            (struct failure){.happened = true, .reason = REASON_TIMEOUT, .at = time(NULL)};
        job->failure.exit_code = EXIT_CODE_DEADLINE;
        snprintf(job->failure.what, sizeof job->failure.what,
                 "it had not ended after %g s (--timeout)",
                 (double)job->config->spec->timeout_ms / 1000);
    }
    job->timed_out = true;
    request_stop(job, SIGTERM);
}

void news_on_guard_gone(void *user)
{
    struct job *job = user;
    watch_stop(&job->guard_watch);
    log_error("the guard process was killed; ending the job");
    job->stop_signal = SIGKILL;
    job_post(job, EVENT_NOW);
}
