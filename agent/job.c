/* SPDX-License-Identifier: MIT */
#include "job.h"

#include "../proto/clock.h"
#include "gpu_wait.h"
#include "log.h"
#include "oom.h"
#include "restart.h"
#include "tree.h"
#include "vigil.h"
#include "watch.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* After a worker's end its pipes are read for so long; a grandchild may hold them open for ever. */
#define DRAIN_MS 200
/* SIGKILL does not end a process in the D state: we go on without it. */
#define KILL_LIMIT_MS 10000
/* What outlives its worker in a job that went well has so long to end by itself once asked. */
#define LEFTOVER_GRACE_MS 2000
/* One Ctrl-C can reach us twice (directly, and forwarded by the guard): that is no second request. */
#define SAME_SIGNAL_NS (200 * NS_PER_MS)
/* A stdout or stderr that nobody reads does not keep us from exiting. */
#define FLUSH_MS 2000
#define LOG_FLUSH_MS 10000 /* a hung disk neither */
#define MAX_EVENTS 16

/* ---- The job ---- */

struct job {
    const struct job_config *config;
    uv_loop_t loop;
    uv_timer_t timer; /* the state's deadline; every change of state stops it */
    struct signals signals;
    struct watch *guard_watch;

    enum job_state state;
    uint64_t state_since_ns;
    enum job_event events[MAX_EVENTS]; /* posted, not yet taken */
    unsigned events_n;
    bool stepping;

    uint32_t world_size;
    struct group group;
    uint32_t joined; /* in this attempt */
    struct environ environ;
    struct relay *relay; /* owned; NULL: one worker, which inherits our streams */
    struct attempt attempt;
    struct vigil vigil; /* for --hang-timeout */
    struct oom oom;

    uint32_t restarts;
    struct failure failure, last_failure; /* first one of this attempt; of the one before */
    uint32_t same_in_row;
    uint32_t stopped; /* ranks that were still running when the group was ended */
    int stop_signal;  /* that asked the job to end; 0: none */
    uint64_t stop_signal_ns;
    struct restart_verdict verdict;
    bool gpus_used;            /* by the group that is being ended, as far as can be seen */
    struct gpu_wait *gpu_wait; /* owned; in RESTART only */
    int exit_code;
};

static void enter_launch(struct job *job);
static void enter_rendezvous(struct job *job);
static void enter_stop(struct job *job);
static void enter_kill(struct job *job);
static void enter_sweep(struct job *job);
static void enter_purge(struct job *job);
static void enter_restart(struct job *job);
static void enter_done(struct job *job);

static void enter_run(struct job *job)
{
    vigil_start(&job->vigil); /* what else happens next comes from the workers */
}

static void (*const enter[JOB_STATES_N])(struct job *job) = {
    [JOB_LAUNCH] = enter_launch, [JOB_RUN] = enter_run,         [JOB_RENDEZVOUS] = enter_rendezvous,
    [JOB_STOP] = enter_stop,     [JOB_KILL] = enter_kill,       [JOB_SWEEP] = enter_sweep,
    [JOB_PURGE] = enter_purge,   [JOB_RESTART] = enter_restart, [JOB_DONE] = enter_done,
};

/* The only place that changes the state. */
static void job_step(struct job *job, enum job_event event)
{
    unsigned next = lifecycle_next(job->state, event);
    if (next == JOB_BUG)
        log_error("bug: event %s in state %s", lifecycle_event_name(event),
                  lifecycle_state_name(job->state));
    if (next >= JOB_STATES_N)
        return;
    uint64_t now = clock_now_ns();
    log_debug("job: %s -> %s (%s) after %.3f ms", lifecycle_state_name(job->state),
              lifecycle_state_name(next), lifecycle_event_name(event),
              (double)(now - job->state_since_ns) / NS_PER_MS);
    uv_timer_stop(&job->timer);
    if (next != JOB_RUN && next != JOB_RENDEZVOUS && next != JOB_LAUNCH)
        vigil_stop(&job->vigil);
    job->state = (enum job_state)next;
    job->state_since_ns = now;
    enter[next](job);
}

/* Posts an event and, unless that is already going on further up the stack, takes all that are posted. */
static void job_post(struct job *job, enum job_event event)
{
    assert(job->events_n < MAX_EVENTS);
    job->events[job->events_n++] = event;
    if (job->stepping)
        return;
    job->stepping = true;
    for (unsigned i = 0; i < job->events_n; i++)
        job_step(job, job->events[i]);
    job->events_n = 0;
    job->stepping = false;
}

static void on_deadline(uv_timer_t *timer)
{
    job_post(timer->data, EVENT_DEADLINE);
}

static void set_deadline(struct job *job, uint64_t ms)
{
    uv_update_time(&job->loop);
    uv_timer_start(&job->timer, on_deadline, ms, 0);
}

/* ---- What happened: callbacks ---- */

static void on_rank_drained(void *user, unsigned rank)
{
    struct job *job = user;
    if (group_note_drained(&job->group, rank))
        job_post(job, EVENT_ENDED);
}

static void reap_adopted(struct job *job);

/* Writes down the first failure of the attempt; later ones are only its consequences. One that was known early
 * (on_lock_lost) is written again once it is certain. */
static void note_failure(struct job *job, const struct rank *rank, enum reason reason,
                         int exit_code)
{
    struct failure *f = &job->failure;
    bool certain_now = rank->suspected && rank->ended && f->has_rank && f->rank == rank->index;
    if ((f->happened && !certain_now) || job->stop_signal)
        return;
    *f = (struct failure){.happened = true,
                          .has_rank = true,
                          .rank = rank->index,
                          .pid = rank->last_pid,
                          .reason = reason,
                          .exit_code = exit_code,
                          .after_s = (double)(clock_now_ns() - rank->started_ns) / NS_PER_S};
    if (rank->ended || rank->suspected)
        rank_describe_end(rank, f->what, sizeof f->what);
    if (rank->ended)
        oom_explain(&job->oom, rank->signalled && rank->code == SIGKILL, f->what, sizeof f->what);
    const struct board_slot *slot = board_slot(&job->attempt.board.board, rank->index);
    board_get_error(slot, f->error, sizeof f->error);
}

/* Others wait in launch_join() for a rank that has ended: it will never come. */
static void note_early_leaver(struct job *job, const struct rank *rank)
{
    note_failure(job, rank, REASON_RENDEZVOUS, EXIT_CODE_OURS);
    snprintf(job->failure.what, sizeof job->failure.what,
             "ended with 0 without calling launch_join(), which others wait in");
}

static void on_hang(void *user, uint32_t rank, const char *what, const char *evidence)
{
    struct job *job = user;
    note_failure(job, &job->group.ranks[rank], REASON_HANG, EXIT_CODE_HANG);
    snprintf(job->failure.what, sizeof job->failure.what, "%s", what);
    job->failure.evidence = evidence;
    job_post(job, EVENT_HANG);
}

static bool never_joined(const struct job *job, uint32_t rank)
{
    return host_board_stage(&job->attempt.board, rank) == STAGE_NONE;
}

static void on_rank_exit(void *user, struct rank *rank)
{
    struct job *job = user;
    log_debug("rank %u: pid %d ended (%s %d)", rank->index, (int)rank->last_pid,
              rank->signalled ? "signal" : "code", rank->code);
    host_board_look(&job->attempt.board);
    if (rank->reason != REASON_NONE && rank->reason != REASON_STOPPED) {
        note_failure(job, rank, rank->reason, rank_exit_code(rank));
        job_post(job, EVENT_RANK_LOST);
    } else if (job->state == JOB_RENDEZVOUS && never_joined(job, rank->index)) {
        note_early_leaver(job, rank);
        job_post(job, EVENT_RANK_LOST);
    }
    if (job->relay)
        relay_rank_drain(job->relay, rank->index, DRAIN_MS);
    if (group_note_exit(&job->group, rank->index))
        job_post(job, EVENT_ENDED);
    reap_adopted(job);
}

/* A joined worker is dying: the group is stopped now, and not when the kernel has torn its memory down. */
static void on_lock_lost(void *user, uint32_t index)
{
    struct job *job = user;
    struct rank *rank = &job->group.ranks[index];
    if (!rank_suspect(rank))
        return;
    note_failure(job, rank, rank->reason, rank_exit_code(rank));
    job_post(job, EVENT_RANK_LOST);
}

static void on_stage(void *user, uint32_t rank, enum stage stage)
{
    struct job *job = user;
    log_debug("rank %u: %s", rank, stage_name(stage));
    if (stage != STAGE_JOINED)
        return;
    attempt_watch(&job->attempt, &job->loop, rank, on_lock_lost, job);
    if (++job->joined == 1)
        job_post(job, EVENT_JOINING);
    if (job->joined == job->world_size) {
        host_board_release(&job->attempt.board);
        job_post(job, EVENT_JOINED);
    }
}

static void on_outlet_gone(void *user, enum relay_stream_kind kind)
{
    struct job *job = user;
    if (kind != RELAY_STDOUT || job->stop_signal)
        return;
    log_error("whoever read our stdout has gone; ending the job");
    job->stop_signal = SIGPIPE;
    job->stop_signal_ns = clock_now_ns();
    job_post(job, EVENT_STOP);
}

static void decide(struct job *job);

/* Reaps processes that re-parented themselves to us. Workers are left to their pidfds, which tell the order of deaths;
 * whoever reaps one calls here again. */
static void reap_adopted(struct job *job)
{
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
            break; /* ECHILD: nothing is left at all */
        if (!info.si_pid || group_owns(&job->group, info.si_pid))
            return;
        waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
    }
    if (job->state == JOB_SWEEP || job->state == JOB_PURGE)
        decide(job);
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

/* Workers are sessions of their own, where the kernel ignores a terminal's stop signals: they get SIGSTOP. */
static void suspend(struct job *job)
{
    group_signal(&job->group, SIGSTOP);
    raise(SIGSTOP);
}

static void on_signal(void *user, const struct signalfd_siginfo *info)
{
    struct job *job = user;
    int sig = (int)info->ssi_signo;
    if (sig < 32 && (job->config->ignored_signals & (1u << sig)))
        return;
    switch (sig) {
    case SIGCHLD:
        group_tell_stops(&job->group);
        reap_adopted(job);
        break;
    case SIGINT:
    case SIGTERM:
    case SIGQUIT:
    case SIGHUP:
        request_stop(job, sig);
        break;
    case SIGUSR1:
    case SIGUSR2:
    case SIGWINCH:
        group_pass_on(&job->group, sig);
        break;
    case SIGTSTP:
        suspend(job);
        break;
    case SIGCONT:
        vigil_again(&job->vigil);
        group_signal(&job->group, SIGCONT);
        break;
    default:
        break;
    }
}

static void on_guard_gone(void *user)
{
    struct job *job = user;
    watch_stop(&job->guard_watch);
    log_error("the guard process was killed; ending the job");
    job->stop_signal = SIGKILL;
    job_post(job, EVENT_NOW);
}

/* ---- What a state does when it is entered, in the order of life ---- */

static void enter_launch(struct job *job)
{
    const struct job_config *c = job->config;
    gpu_wait_stop(&job->gpu_wait);
    job->last_failure = job->failure;
    job->failure = (struct failure){0};
    job->joined = job->stopped = 0;
    group_begin(&job->group, job->relay != NULL);
    oom_rebase(&job->oom);
    struct attempt_config config = {
        .loop = &job->loop,
        .program = c->program,
        .inherited = c->inherited,
        .environ = &job->environ,
        .job = {.spec = c->spec,
                .gpus = &c->plan->gpus,
                .gpu_set = &c->plan->gpu_set,
                .run_id = c->spec->run_id,
                .world_size = job->world_size,
                .generation = job->restarts + 1,
                .restart_count = job->restarts,
                .notify = vigil_notify(&job->vigil),
                .cpus = c->plan->cpus},
        .ranks = job->group.ranks,
        .relay = job->relay,
        .logs = c->logs,
        .cgroup_fd = c->cgroup->fd,
        .on_stage = on_stage,
        .user = job,
    };
    struct err err;
    if (vigil_prepare(&job->vigil, job->relay, &err) == 0 &&
        attempt_start(&job->attempt, &config, &err) == 0) {
        job_post(job, EVENT_SPAWNED);
        return;
    }
    job->failure =
        (struct failure){.happened = true, .reason = REASON_SPAWN, .exit_code = EXIT_CODE_OURS};
    snprintf(job->failure.what, sizeof job->failure.what, "%s", err.text);
    job_post(job, EVENT_SPAWN_FAILED);
}

static void enter_rendezvous(struct job *job)
{
    for (uint32_t i = 0; i < job->world_size; i++) {
        const struct rank *rank = &job->group.ranks[i];
        if (rank->ended && rank->reason == REASON_NONE && never_joined(job, i)) {
            note_early_leaver(job, rank);
            job_post(job, EVENT_RANK_LOST);
            return;
        }
    }
    if (job->config->spec->rendezvous_timeout_ms)
        set_deadline(job, job->config->spec->rendezvous_timeout_ms);
}

static void note_rendezvous_timeout(struct job *job)
{
    struct failure *f = &job->failure;
    *f = (struct failure){
        .happened = true, .reason = REASON_RENDEZVOUS, .exit_code = EXIT_CODE_DEADLINE};
    host_board_describe_missing(&job->attempt.board, job->config->spec->rendezvous_timeout_ms,
                                f->what, sizeof f->what);
}

static void enter_stop(struct job *job)
{
    if (!job->failure.happened && !job->stop_signal)
        note_rendezvous_timeout(job);
    job->stopped = group_alive(&job->group);
    job->gpus_used = gpu_wait_is_due(job->config->sysroot, job->config->plan, &job->group);
    int sig = job->stop_signal && job->stop_signal != SIGPIPE ? job->stop_signal : SIGTERM;
    host_board_stop(&job->attempt.board, (uint32_t)sig);
    set_deadline(job, job->config->spec->shutdown_timeout_ms);
    if (job->failure.happened && !job->failure.has_rank && job->failure.reason == REASON_SPAWN) {
        if (group_note_unstarted(&job->group, job->relay))
            job_post(job, EVENT_ENDED);
        return; /* the others leave by their gate */
    }
    group_signal(&job->group, sig);
    /* A stopped process does not see a signal before it goes on. */
    group_signal(&job->group, SIGCONT);
    tree_signal_children(sig, group_owns, &job->group);
}

static void enter_kill(struct job *job)
{
    host_board_stop(&job->attempt.board, SIGKILL);
    cgroup_kill(job->config->cgroup);
    set_deadline(job, KILL_LIMIT_MS);
    group_signal(&job->group, SIGKILL);
    tree_signal_children(SIGKILL, group_owns, &job->group);
}

static void enter_sweep(struct job *job)
{
    attempt_finish(&job->attempt);
    siginfo_t info = {0};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0) {
        decide(job);
        return;
    }
    char first[48] = "";
    pid_t pid = tree_first_child();
    if (pid)
        tree_describe(pid, first, sizeof first);
    unsigned n = tree_signal_children(SIGTERM, NULL, NULL);
    if (n && !job->failure.happened && !job->stop_signal)
        log_warn("the workers have ended but left %u process%s behind, such as %s; ending %s", n,
                 n == 1 ? "" : "es", first, n == 1 ? "it" : "them");
    set_deadline(job, LEFTOVER_GRACE_MS);
    reap_adopted(job);
}

static void enter_purge(struct job *job)
{
    set_deadline(job, KILL_LIMIT_MS);
    cgroup_kill(job->config->cgroup);
    tree_signal_children(SIGKILL, NULL, NULL);
    reap_adopted(job);
}

static int code_of(const struct job *job)
{
    if (job->stop_signal)
        return 128 + job->stop_signal;
    if (!job->failure.happened)
        return EXIT_CODE_OK;
    return job->config->spec->exit_code == EXIT_STYLE_TORCHRUN ? 1 : job->failure.exit_code;
}

static void report(struct job *job, bool again)
{
    const struct failure *f = &job->failure;
    char next[160];
    if (again)
        snprintf(next, sizeof next, "starting all %u ranks again (restart %u of %u) in %g s",
                 job->world_size, job->restarts + 1, job->config->spec->max_restarts,
                 (double)job->verdict.after_ms / 1000);
    else
        snprintf(next, sizeof next, "exit code %d; %s", job->exit_code, job->verdict.why);
    bool tell_next = again || f->has_rank;
    size_t tail_n = 0, n = 0;
    const char *tail = job->relay && f->has_rank ? relay_tail(job->relay, f->rank, &tail_n) : NULL;
    uint32_t others = job->stopped - (job->stopped && f->reason == REASON_HANG);
    char *text = report_text(f, job->config->spec->argv[0], job->world_size, others, tail, tail_n,
                             tell_next ? next : NULL, &n);
    if (job->relay)
        relay_flush(job->relay, FLUSH_MS);
    if (text)
        log_block(text, n);
    free(text);
}

/* Nothing of the attempt is left: another one, or the end. */
static void decide(struct job *job)
{
    job->same_in_row = failure_equal(&job->failure, &job->last_failure) ? job->same_in_row + 1 : 1;
    struct restart_policy policy = {.max_restarts = job->config->spec->max_restarts};
    struct restart_history history = {.restarts = job->restarts,
                                      .reason = job->failure.reason,
                                      .same_in_row = job->same_in_row,
                                      .stop_requested = job->stop_signal != 0};
    bool failed = job->failure.happened;
    job->verdict = restart_decide(&policy, &history);
    job->exit_code = code_of(job);
    bool again = failed && job->verdict.again;
    if (failed && !job->stop_signal)
        report(job, again);
    job_post(job, again ? EVENT_RETRY : EVENT_GIVE_UP);
}

static void enter_restart(struct job *job)
{
    const struct job_config *c = job->config;
    job->restarts++;
    if (!job->gpus_used ||
        !gpu_wait_start(&job->gpu_wait, &job->loop, c->sysroot, c->plan, c->spec->run_id,
                        &job->group, job->verdict.after_ms, on_deadline, job))
        set_deadline(job, job->verdict.after_ms);
}

static void enter_done(struct job *job)
{
    gpu_wait_stop(&job->gpu_wait);
    job->exit_code = code_of(job);
    for (uint32_t i = 0; i < job->world_size; i++) {
        if (rank_alive(&job->group.ranks[i]))
            log_error("rank %u (pid %d) can't be killed (state D?); going on without it", i,
                      (int)job->group.ranks[i].pid);
    }
    uv_stop(&job->loop);
}

/* ---- Life of a job ---- */

static int job_init(struct job *job, const struct job_config *config, struct err *err)
{
    *job = (struct job){.config = config, .world_size = config->plan->world_size};
    job->attempt.port_fd = -1;
    job->state_since_ns = clock_now_ns();
    cgroup_create(config->cgroup);
    oom_open(&job->oom, config->sysroot, config->cgroup);
    int rc = uv_loop_init(&job->loop);
    if (rc < 0)
        return err_set_errno(err, rc, "event loop");
    uv_timer_init(&job->loop, &job->timer);
    job->timer.data = job;
    rc = group_init(&job->group, job->world_size, on_rank_exit, job);
    if (rc < 0)
        return err_set_errno(err, rc, "%u ranks", job->world_size);
    rc = vigil_init(&job->vigil, &job->loop, config->spec->hang_timeout_ms, &job->group,
                    &job->attempt.board, on_hang, job, err);
    return rc < 0 ? rc : environ_init(&job->environ, environ, err);
}

/* Workers of a group write to pipes; a single one has our streams to itself, unless something is asked of them, such as
 * being a sign of life. */
static int open_streams(struct job *job, struct err *err)
{
    struct logs *logs = job->config->logs;
    struct relay_callbacks callbacks = {
        .on_rank_end = on_rank_drained, .on_outlet_gone = on_outlet_gone, .user = job};
    int rc = 0;
    if (logs_want_relay(logs) || job->config->spec->hang_timeout_ms)
        rc = relay_create(&job->relay, &job->loop, job->world_size, STDOUT_FILENO, STDERR_FILENO,
                          &callbacks, err);
    return rc < 0 ? rc : logs_start(logs, &job->loop, job->relay, err);
}

static int start_listening(struct job *job, int guard_pidfd, struct err *err)
{
    job->guard_watch = watch_start(&job->loop, guard_pidfd, on_guard_gone, job);
    if (!job->guard_watch)
        return err_set_errno(err, -ENOMEM, "guard");
    return signals_start(&job->signals, &job->loop, on_signal, job, err);
}

/* The process exits right after: the loop's handles are not closed one by one, the kernel does it. What must not be
 * lost is output that was read and not yet written. */
static void job_finish(struct job *job)
{
    if (job->relay) {
        relay_flush(job->relay, FLUSH_MS);
        uint64_t dropped = relay_dropped(job->relay);
        if (dropped && job->stop_signal != SIGPIPE)
            log_warn("%" PRIu64 " bytes of the workers' output could not be written", dropped);
    }
    logs_flush(job->config->logs, LOG_FLUSH_MS);
    vigil_finish(&job->vigil);
    attempt_finish(&job->attempt);
    environ_finish(&job->environ);
    group_finish(&job->group);
    oom_close(&job->oom);
    cgroup_remove(job->config->cgroup);
}

int job_run(const struct job_config *config, int guard_pidfd)
{
    struct job job = {0};
    struct err err;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signals_ignore(SIGPIPE);
    int rc = spawn_reserve_descriptors(config->plan->world_size, logs_files_per_rank(config->logs),
                                       &err);
    if (rc == 0)
        rc = job_init(&job, config, &err);
    if (rc == 0)
        rc = open_streams(&job, &err);
    if (rc == 0)
        rc = start_listening(&job, guard_pidfd, &err);
    if (rc) {
        log_error("%s", err.text);
        return EXIT_CODE_OURS;
    }
    job.stepping = true; /* LAUNCH is where a job begins, not a change of state */
    enter_launch(&job);
    job.stepping = false;
    enum job_event first = job.events[0];
    job.events_n = 0;
    job_post(&job, first);
    uv_run(&job.loop, UV_RUN_DEFAULT);
    job_finish(&job);
    return job.exit_code;
}
