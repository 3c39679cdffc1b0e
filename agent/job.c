/* SPDX-License-Identifier: MIT */
#include "job.h"

#include "../proto/clock.h"
#include "../proto/ranklist.h"
#include "answers.h"
#include "job_inside.h"
#include "leftovers.h"
#include "log.h"
#include "news.h"
#include "tree.h"
#include "watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* SIGKILL does not end a process in the D state: we go on without it. */
#define KILL_LIMIT_MS 10000
/* What outlives its worker in a job that went well has so long to end by itself once asked. */
#define LEFTOVER_GRACE_MS 2000
/* A stdout or stderr that nobody reads does not keep us from exiting. */
#define FLUSH_MS 2000
/* Whoever waits for the end of ranks that take their time is told after so long. */
#define PATIENCE_MS 2000
#define UNENDED_SHOWN 8
#define LOG_FLUSH_MS 10000
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
    heal_done(job);
    gpu_watch_start(&job->gpu_watch);
    vigil_start(&job->vigil); /* what else happens next comes from the workers */
}

static void (*const enter[JOB_STATES_N])(struct job *job) = {
    [JOB_LAUNCH] = enter_launch, [JOB_RUN] = enter_run,     [JOB_RENDEZVOUS] = enter_rendezvous,
    [JOB_HEAL] = heal_enter,     [JOB_STOP] = enter_stop,   [JOB_KILL] = enter_kill,
    [JOB_SWEEP] = enter_sweep,   [JOB_PURGE] = enter_purge, [JOB_RESTART] = enter_restart,
    [JOB_DONE] = enter_done,
};

static void on_bug(void *user, enum job_event event)
{
    const struct job *job = user;
    log_error("bug: event %s in state %s", lifecycle_event_name(event),
              lifecycle_state_name(job->life.state));
}

static void on_leave(void *user, enum job_state next, enum job_event why)
{
    struct job *job = user;
    uint64_t now = clock_now_ns();
    log_debug("job: %s -> %s (%s) after %.3f ms", lifecycle_state_name(job->life.state),
              lifecycle_state_name(next), lifecycle_event_name(why),
              (double)(now - job->state_since_ns) / NS_PER_MS);
    uv_timer_stop(&job->timer);
    if (next == JOB_HEAL) {
        vigil_pause(&job->vigil);
    } else if (next != JOB_RUN && next != JOB_RENDEZVOUS && next != JOB_LAUNCH) {
        vigil_stop(&job->vigil);
        reserve_dismiss(&job->reserve);
        gpu_watch_stop(&job->gpu_watch);
    }
    job->state_since_ns = now;
}

static void on_enter(void *user)
{
    struct job *job = user;
    enter[job->life.state](job);
}

void job_post(struct job *job, enum job_event event)
{
    lifecycle_post(&job->life, event);
}

static void on_deadline(uv_timer_t *timer)
{
    job_post(timer->data, EVENT_DEADLINE);
}

static void start_timer(struct job *job, uv_timer_cb then, uint64_t ms)
{
    uv_update_time(&job->loop);
    uv_timer_start(&job->timer, then, ms, 0);
}

static void set_deadline(struct job *job, uint64_t ms)
{
    start_timer(job, on_deadline, ms);
}

/* Ranks were asked to end, and some have not: what is waited for, and how long it may take. */
static void on_impatient(uv_timer_t *timer)
{
    struct job *job = timer->data;
    uint64_t left_ms = job->config->spec->shutdown_timeout_ms - PATIENCE_MS;
    const struct failure *f = &job->failure;
    char ranks[128], why[600] = "";
    struct ranklist list;
    ranklist_begin(&list, ranks, sizeof ranks, UNENDED_SHOWN);
    for (uint32_t i = 0; i < job->world_size; i++)
        if (rank_alive(&job->group.ranks[i]))
            ranklist_add(&list, i);
    uint32_t n = ranklist_end(&list);
    if (f->has_rank)
        snprintf(why, sizeof why, "rank %u %s; ", f->rank, f->what);
    if (n)
        log_info("%srank%s %s ha%s been asked to end and ha%s not: SIGKILL in %g s%s", why,
                 n == 1 ? "" : "s", ranks, n == 1 ? "s" : "ve", n == 1 ? "s" : "ve",
                 (double)left_ms / 1000, job->stop_signal ? ", or when asked again" : "");
    set_deadline(job, left_ms);
}

/* ---- What a state does when it is entered, in the order of life ---- */

static void enter_launch(struct job *job)
{
    const struct job_config *c = job->config;
    gpu_wait_stop(&job->gpu_wait);
    aftermath_begin(&job->after, &job->failure);
    if (job->leaf_killed)
        cgroup_renew(c->cgroup);
    job->leaf_killed = false;
    job->failure = (struct failure){0};
    job->joined = 0;
    job->stop_since_ns = 0;
    job->killed = job->restart_asked = false;
    group_begin(&job->group, job->relay != NULL);
    heal_begin(&job->heal, job->world_size);
    gpu_watch_open(&job->gpu_watch);
    job->generation++;
    oom_rebase(&job->oom, c->sysroot, c->cgroup);
    job->start = (struct attempt_config){
        .loop = &job->loop,
        .program = c->program,
        .inherited = c->inherited,
        .environ = &job->environ,
        .job = {.spec = c->spec,
                .gpus = &c->plan->gpus,
                .gpu_set = &c->plan->gpu_set,
                .run_id = c->spec->run_id,
                .world_size = job->world_size,
                .generation = job->generation,
                .restart_count = job->restarts,
                .notify = vigil_notify(&job->vigil),
                .cpus = c->plan->cpus,
                .placement = c->placement},
        .ranks = job->group.ranks,
        .spares = job->group.spares,
        .spares_n = job->group.spares_n,
        .relay = job->relay,
        .logs = c->logs,
        .topo = &job->topo,
        .cgroup_fd = c->cgroup->fd,
        .on_stage = news_on_stage,
        .on_bell = job->group.spares_n ? news_on_bell : NULL,
        .user = job,
    };
    struct err err;
    if (vigil_prepare(&job->vigil, job->relay, &err) == 0 &&
        attempt_start(&job->attempt, &job->start, &err) == 0) {
        job_post(job, EVENT_SPAWNED);
        return;
    }
    job->failure = (struct failure){.happened = true,
                                    .reason = REASON_SPAWN,
                                    .exit_code = err.code == -EADDRNOTAVAIL ? EXIT_CODE_USAGE
                                                                            : EXIT_CODE_OURS};
    snprintf(job->failure.what, sizeof job->failure.what, "%s", err.text);
    job_post(job, EVENT_SPAWN_FAILED);
}

static void enter_rendezvous(struct job *job)
{
    for (uint32_t i = 0; i < job->world_size; i++) {
        const struct rank *rank = &job->group.ranks[i];
        if (rank->ended && rank->reason == REASON_NONE && news_never_joined(job, i)) {
            news_note_early_leaver(job, rank);
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
    bool asked = job->stop_signal || job->restart_asked;
    if (!job->failure.happened && !asked)
        note_rendezvous_timeout(job);
    job->after.stopped = group_running(&job->group);
    job->gpus_used = gpu_wait_is_due(job->config->sysroot, job->config->plan, &job->group);
    int sig = job->stop_signal && job->stop_signal != SIGPIPE ? job->stop_signal : SIGTERM;
    host_board_stop(&job->attempt.board, (uint32_t)sig);
    if (job->config->spec->shutdown_timeout_ms > 2 * PATIENCE_MS)
        start_timer(job, on_impatient, PATIENCE_MS);
    else
        set_deadline(job, job->config->spec->shutdown_timeout_ms);
    if (job->failure.happened && !job->failure.has_rank && job->failure.reason == REASON_SPAWN) {
        if (group_note_unstarted(&job->group, job->relay))
            job_post(job, EVENT_ENDED);
        return; /* the others leave by their gate */
    }
    job->stop_since_ns = clock_now_ns();
    for (uint32_t i = 0; i < job->world_size; i++) {
        /* Who asks launch_check() has its word there; of another rank's failure nobody can save anything. */
        struct rank *rank = &job->group.ranks[i];
        if (!asked || !host_board_catches_stop(&job->attempt.board, i))
            rank_signal(rank, sig);
    }
    /* A stopped process does not see a signal before it goes on. */
    group_signal(&job->group, SIGCONT);
    tree_signal_children(sig, group_owns, &job->group);
}

static void enter_kill(struct job *job)
{
    job->killed = true;
    host_board_stop(&job->attempt.board, SIGKILL);
    job->leaf_killed |= cgroup_kill(job->config->cgroup);
    set_deadline(job, KILL_LIMIT_MS);
    group_signal(&job->group, SIGKILL);
    leftovers_kill(&job->group);
}

static void enter_sweep(struct job *job)
{
    aftermath_settle(&job->after, &job->failure, &job->group, &job->attempt.board.board,
                     job->heal.consented ? job->world_size : job->joined);
    if (leftovers_reap(&job->group)) {
        job_decide(job);
        return;
    }
    uint64_t grace_ms = LEFTOVER_GRACE_MS;
    if (job->stop_since_ns) {
        /* Asked with the workers: a program behind a shell that died at once still has the rest of its time. */
        uint64_t limit_ms = job->config->spec->shutdown_timeout_ms;
        uint64_t past_ms = (clock_now_ns() - job->stop_since_ns) / NS_PER_MS;
        grace_ms = job->killed || past_ms >= limit_ms ? 0 : limit_ms - past_ms;
    } else {
        leftovers_ask(&job->group, !job->failure.happened && !job->stop_signal);
    }
    set_deadline(job, grace_ms);
    news_look_after_leftovers(job);
}

static void enter_purge(struct job *job)
{
    set_deadline(job, KILL_LIMIT_MS);
    job->leaf_killed |= cgroup_kill(job->config->cgroup);
    leftovers_kill(&job->group);
    news_look_after_leftovers(job);
}

static int code_of(const struct job *job)
{
    int code = job->timed_out ? EXIT_CODE_DEADLINE : job->failure.exit_code;
    if (job->stop_signal && !job->timed_out)
        return 128 + job->stop_signal;
    if (!job->failure.happened)
        return EXIT_CODE_OK;
    return job->config->spec->exit_code == EXIT_STYLE_TORCHRUN ? 1 : code;
}

/* A job that was asked to end from outside needs no explanation, unless it had failed before: a failure is not written
 * down once it is asked. Whoever asks the launcher may have sent the same to the workers, and they were faster. */
static void report(struct job *job, bool again)
{
    bool same = job->stop_signal && !job->timed_out && job->failure.signal == job->stop_signal;
    if (!job->failure.happened || same || job->after.reported)
        return;
    aftermath_report(&job->after, &job->failure, job->restarts, again ? -1 : job->exit_code,
                     job->timed_out ? "the job's time is over (--timeout)"
                                    : job->after.verdict.why);
}

/* Nothing of the attempt is left: another one, or the end. */
void job_decide(struct job *job)
{
    attempt_finish(&job->attempt); /* a standby may have been the last to go */
    bool again = job->restart_asked && !job->stop_signal;
    job->failure.gpu_out =
        job->failure.happened && gpu_watch_any_out(&job->gpu_watch, job->world_size);
    if (!again && job->failure.happened)
        again = aftermath_decide(&job->after, &job->failure, job->stop_signal != 0);
    job->exit_code = code_of(job);
    report(job, again);
    job_post(job, again ? EVENT_RETRY : EVENT_GIVE_UP);
}

static void enter_restart(struct job *job)
{
    const struct job_config *c = job->config;
    job->restarts++;
    uint64_t after_ms = job->restart_asked ? 0 : job->after.verdict.after_ms;
    if (!job->restart_asked) /* what was asked for does not count */
        aftermath_note_restart(&job->after);
    if (!job->gpus_used ||
        !gpu_wait_start(&job->gpu_wait, &job->loop, c->sysroot, c->plan, c->spec->run_id,
                        &job->group, after_ms, on_deadline, job))
        set_deadline(job, after_ms);
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
    job->after.verdict.why = "the end was not waited for";
    report(job, false);
    if (job->stop_signal)
        aftermath_tell_stop(&job->after, job->stop_signal);
    uv_stop(&job->loop);
}

/* ---- Life of a job ---- */

static int job_init(struct job *job, const struct job_config *config, struct err *err)
{
    *job = (struct job){.config = config, .world_size = config->plan->world_size};
    job->life = (struct lifecycle){
        .on_leave = on_leave, .on_enter = on_enter, .on_bug = on_bug, .user = job};
    job->attempt.port_fd = job->attempt.ras_fd = job->attempt.null_fd = -1;
    job->state_since_ns = job->since_ns = clock_now_ns();
    job->oom.fd = -1; /* opened with every attempt */
    cgroup_create(config->cgroup);
    int rc = uv_loop_init(&job->loop);
    if (rc < 0)
        return err_set_errno(err, rc, "event loop");
    uv_timer_init(&job->loop, &job->timer);
    job->timer.data = job;
    gpu_watch_init(&job->gpu_watch, &job->loop, config->spec, config->plan, config->sysroot);
    uv_timer_init(&job->loop, &job->limit);
    job->limit.data = job;
    if (config->spec->timeout_ms)
        uv_timer_start(&job->limit, news_on_limit, config->spec->timeout_ms, 0);
    aftermath_init(&job->after, config->spec, job->world_size);
    rc = group_init(&job->group, job->world_size, spec_standbys(config->spec), news_on_rank_exit,
                    news_on_buried, job);
    if (rc == 0)
        rc = heal_init(&job->heal, job->world_size);
    if (rc == 0)
        rc = reserve_init(&job->reserve, &job->attempt, &job->start, &job->group, &job->oom,
                          &job->loop, news_on_buried, job);
    if (rc < 0)
        return err_set_errno(err, rc, "%u ranks", job->world_size);
    uint32_t spares = job->group.spares_n, files = logs_files_per_rank(config->logs);
    bool room = spares && spawn_may_open(job->world_size + spares, files + NCCL_TOPO_FILES);
    nccl_topo_init(&job->topo, config->spec, &config->plan->gpus, &config->plan->gpu_set,
                   room ? spares : 0, config->sysroot, environ);
    rc = vigil_init(&job->vigil, &job->loop, config->spec->hang_timeout_ms, &job->group,
                    &job->attempt.board, news_on_hang, job, err);
    return rc < 0
               ? rc
               : environ_init(&job->environ, job->world_size + job->group.spares_n, environ, err);
}

static size_t read_error(void *user, uint32_t rank, char *bytes, size_t size)
{
    ssize_t n = logs_read_error(user, rank, bytes, size);
    return n > 0 ? (size_t)n : 0;
}

/* Workers of a group write to pipes; a single one has our streams to itself, unless something is asked of them, such as
 * being a sign of life. */
static int open_streams(struct job *job, struct err *err)
{
    struct logs *logs = job->config->logs;
    struct relay_callbacks callbacks = {
        .on_rank_end = news_on_rank_drained, .on_outlet_gone = news_on_outlet_gone, .user = job};
    int rc = 0;
    if (logs_want_relay(logs) || job->config->spec->hang_timeout_ms)
        rc = relay_create(&job->relay, &job->loop, job->world_size, STDOUT_FILENO, STDERR_FILENO,
                          &callbacks, err);
    log_call_before(job->relay ? relay_end_line : NULL, job->relay);
    job->after.relay = job->relay;
    job->after.logs = logs->dir;
    job->after.logs_fd = logs->dir_fd;
    job->after.read_error = read_error;
    job->after.user = logs;
    return rc < 0 ? rc : logs_start(logs, &job->loop, job->relay, err);
}

static int start_listening(struct job *job, int guard_pidfd, struct err *err)
{
    job->guard_watch = watch_start(&job->loop, guard_pidfd, news_on_guard_gone, job);
    if (!job->guard_watch)
        return err_set_errno(err, -errno, "guard");
    return signals_start(&job->signals, &job->loop, news_on_signal, job, err);
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
    gpu_watch_finish(&job->gpu_watch);
    attempt_finish(&job->attempt);
    aftermath_finish(&job->after);
    environ_finish(&job->environ);
    reserve_finish(&job->reserve);
    nccl_topo_finish(&job->topo);
    heal_finish(&job->heal);
    group_finish(&job->group);
    oom_close(&job->oom);
    cgroup_remove(job->config->cgroup);
    control_stop(job->control, job->exit_code);
}

/* When the workers run already: they do not wait for it. A job that can't be asked is a job all the same. */
static void open_control(struct job *job)
{
    const struct job_config *c = job->config;
    struct control_source source = answers_of(job);
    struct err err;
    if (control_start(&job->control, &job->loop, c->place, &source, &err) < 0)
        log_debug("no control socket: %s", err.text);
    if (c->started_fd >= 0)
        (void)!write(c->started_fd, "", 1);
}

int job_run(const struct job_config *config, int guard_pidfd)
{
    struct job job = {0};
    struct err err;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signals_ignore(SIGPIPE);
    uint32_t processes = config->plan->world_size + spec_standbys(config->spec);
    int rc = spawn_reserve_descriptors(processes, logs_files_per_rank(config->logs), &err);
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
    lifecycle_hold(&job.life); /* LAUNCH is where a job begins, not a change of state */
    enter_launch(&job);
    open_control(&job);
    lifecycle_release(&job.life);
    uv_run(&job.loop, UV_RUN_DEFAULT);
    job_finish(&job);
    return job.exit_code;
}
