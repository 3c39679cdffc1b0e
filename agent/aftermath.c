/* SPDX-License-Identifier: MIT */
#include "aftermath.h"

#include "../proto/clock.h"
#include "../proto/env.h"
#include "corefile.h"
#include "culprit.h"
#include "hints.h"
#include "log.h"
#include "logdir.h"
#include "signals.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* A stderr that nobody reads does not keep us from going on. */
#define FLUSH_MS 2000
#define JSON_NAME "failure.json"

void aftermath_init(struct aftermath *a, const struct job_spec *spec, uint32_t world_size)
{
    *a = (struct aftermath){.spec = spec, .world_size = world_size, .logs_fd = -1};
    a->policy = restart_policy_of(spec);
}

void aftermath_finish(struct aftermath *a)
{
    restart_finish(&a->history);
}

void aftermath_begin(struct aftermath *a, const struct failure *failure)
{
    a->last = *failure;
    a->reported = a->started = a->oom = false;
    a->step = 0;
    a->stopped = a->others_n = 0;
}

/* What the process itself reported: one that died before launch_join() has its predecessor's words in its slot. */
static size_t get_error(const struct rank *rank, const struct board *board,
                        char text[BOARD_ERROR_BYTES + 1])
{
    const struct board_slot *slot = board_slot(board, rank->index);
    bool own = atomic_load_explicit(&slot->generation, memory_order_acquire) >= rank->generation;
    text[0] = '\0';
    return own ? board_get_error(slot, text, BOARD_ERROR_BYTES + 1) : 0;
}

void aftermath_blame(struct failure *ret, const struct rank *rank, const struct board *board,
                     enum reason reason, int exit_code)
{
    uint64_t end = rank->ended ? rank->ended_ns : clock_now_ns();
    *ret = (struct failure){.happened = true,
                            .has_rank = true,
                            .rank = rank->index,
                            .pid = rank->last_pid,
                            .reason = reason,
                            .exit_code = exit_code,
                            .signal = rank->ended && rank->signalled ? rank->code : 0,
                            .core = rank->ended && rank->core,
                            .at = time(NULL),
                            .after_s = (double)(end - rank->started_ns) / NS_PER_S};
    if (rank->ended || rank->suspected)
        rank_describe_end(rank, ret->what, sizeof ret->what);
    get_error(rank, board, ret->error);
}

/* ---- who is named ---- */

/* What a rank left behind says that a peer went away. */
static bool is_consequence(const struct aftermath *a, const struct rank *rank,
                           const struct board *board)
{
    if (rank->signalled && rank->code != SIGABRT)
        return rank->code == SIGPIPE;
    char error[BOARD_ERROR_BYTES + 1];
    size_t n = get_error(rank, board, error);
    if (n)
        return culprit_is_consequence(error, n);
    const char *tail = a->relay ? relay_tail(a->relay, rank->index, &n) : NULL;
    return tail && culprit_is_consequence(tail, n);
}

/* It ended by itself: not of a signal of ours, nor in answer to one (unless it had reported an error). */
static bool ended_itself(const struct rank *rank, const struct board *board)
{
    if (rank->reason == REASON_EXIT || rank->reason == REASON_SIGNAL)
        return true;
    if (rank->reason != REASON_STOPPED)
        return false;
    if (rank->signalled)
        return !(rank->sent & (1ull << (rank->code - 1)));
    char error[BOARD_ERROR_BYTES + 1];
    return get_error(rank, board, error) > 0;
}

/* Those that failed within the window around the first failure; returns how many. */
static size_t find_candidates(const struct aftermath *a, const struct group *g,
                              const struct board *board, uint32_t first,
                              struct culprit_candidate *ret)
{
    uint64_t moment = g->ranks[first].ended_ns;
    size_t n = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        const struct rank *rank = &g->ranks[i];
        if (!rank->ended || rank->ended_ns + CULPRIT_WINDOW_NS < moment ||
            rank->ended_ns > moment + CULPRIT_WINDOW_NS || !ended_itself(rank, board))
            continue;
        ret[n++] = (struct culprit_candidate){
            .rank = i, .ended_ns = rank->ended_ns, .consequence = is_consequence(a, rank, board)};
    }
    return n;
}

static void note_others(struct aftermath *a, const struct group *g,
                        const struct culprit_candidate *candidates, size_t n, size_t culprit)
{
    for (size_t i = 0; i < n; i++) {
        if (i == culprit)
            continue;
        const struct rank *rank = &g->ranks[candidates[i].rank];
        a->stopped -= a->stopped > 0 && rank->reason == REASON_STOPPED;
        if (a->others_n++ >= REPORT_OTHERS)
            continue;
        struct report_other *o = &a->others[a->others_n - 1];
        o->rank = rank->index;
        o->later_s =
            ((double)rank->ended_ns - (double)candidates[culprit].ended_ns) / (double)NS_PER_S;
        char what[512];
        rank_describe_end(rank, what, sizeof what);
        snprintf(o->what, sizeof o->what, "%.*s", (int)sizeof o->what - 1, what);
    }
}

/* candidates: room for all ranks. */
static void name_culprit(struct aftermath *a, struct failure *f, const struct group *g,
                         const struct board *board, struct culprit_candidate *candidates)
{
    size_t n = find_candidates(a, g, board, f->rank, candidates), first = 0;
    while (first < n && candidates[first].rank != f->rank)
        first++;
    if (first == n)
        return;
    size_t culprit = culprit_pick(candidates, n, first);
    f->signal = g->ranks[f->rank].signalled ? g->ranks[f->rank].code : 0;
    f->core = g->ranks[f->rank].core;
    if (culprit != first) {
        const struct rank *rank = &g->ranks[candidates[culprit].rank];
        time_t at = f->at;
        a->stopped -= a->stopped > 0 && rank->reason == REASON_STOPPED;
        aftermath_blame(f, rank, board, rank->signalled ? REASON_SIGNAL : REASON_EXIT,
                        rank_exit_code(rank));
        f->at = at; /* the same moments, and not when we came to look */
    }
    note_others(a, g, candidates, n, culprit);
}

/* ---- how far it came ---- */

void aftermath_note_steps(struct aftermath *a, const struct board *board)
{
    for (uint32_t i = 0; i < a->world_size; i++) {
        uint64_t step = atomic_load_explicit(&board_slot(board, i)->step, memory_order_relaxed);
        if (step > a->step)
            a->step = step;
    }
}

static void read_progress(struct aftermath *a, const struct failure *f, const struct board *board,
                          uint32_t joined)
{
    aftermath_note_steps(a, board);
    a->started = joined == a->world_size || (joined == 0 && f->after_s >= RESTART_STARTUP_S);
}

void aftermath_settle(struct aftermath *a, struct failure *f, const struct group *group,
                      const struct board *board, uint32_t joined)
{
    if (!f->happened || !board->head)
        return;
    read_progress(a, f, board, joined);
    a->stopped -= a->stopped > 0 && f->reason == REASON_HANG; /* it was running itself */
    if (!f->has_rank || (f->reason != REASON_EXIT && f->reason != REASON_SIGNAL))
        return;
    struct culprit_candidate *candidates = calloc(group->n, sizeof *candidates);
    if (candidates)
        name_culprit(a, f, group, board, candidates);
    free(candidates);
}

/* ---- whether there is another attempt ---- */

static uint32_t roll_dice(void)
{
    uint32_t dice;
    if (getrandom(&dice, sizeof dice, GRND_NONBLOCK) != (ssize_t)sizeof dice)
        dice = (uint32_t)(clock_now_ns() * 2654435761u);
    return dice;
}

bool aftermath_decide(struct aftermath *a, const struct failure *f, bool stopping)
{
    if (a->spec->restart_refill && a->step > a->best_step)
        restart_refill(&a->history);
    if (a->step > a->best_step)
        a->best_step = a->step;
    a->history.same_in_row = failure_equal(f, &a->last) ? a->history.same_in_row + 1 : 1;
    a->history.stop_requested = stopping;
    struct restart_failure failure = {.reason = f->reason,
                                      .exit_code = f->exit_code,
                                      .signal = f->signal,
                                      .started = a->started,
                                      .gpu_out = f->gpu_out};
    a->verdict =
        restart_decide(&a->policy, &a->history, &failure, clock_now_ns() / NS_PER_MS, roll_dice());
    return a->verdict.again;
}

void aftermath_note_restart(struct aftermath *a)
{
    if (restart_remember(&a->history, &a->policy, a->verdict.class, clock_now_ns() / NS_PER_MS) < 0)
        log_warn("no memory to count this restart");
}

/* The same failure again is that of a rank which has just been replaced. */
bool aftermath_heal(struct aftermath *a, const struct failure *f, const struct board *board,
                    bool started, bool retried)
{
    read_progress(a, f, board, a->world_size);
    a->started = started;
    if (!retried || a->step > a->best_step)
        a->last = (struct failure){0};
    if (!aftermath_decide(a, f, false))
        return false;
    aftermath_note_restart(a);
    a->last = *f;
    return true;
}

/* ---- what is told ---- */

/* The worker's error file, on the heap; NULL with *ret_n 0: there is none. */
static char *read_error_file(const struct aftermath *a, const struct failure *f, size_t *ret_n)
{
    *ret_n = 0;
    char *bytes = a->read_error && f->has_rank ? malloc(ERRORFILE_MAX_BYTES) : NULL;
    if (bytes)
        *ret_n = a->read_error(a->user, f->rank, bytes, ERRORFILE_MAX_BYTES);
    return bytes;
}

static void write_json(const struct aftermath *a, const struct report *r)
{
    size_t n;
    if (a->logs_fd < 0)
        return;
    AUTO_FREE char *text = report_json(r, &n);
    int rc = text ? logdir_write_file(a->logs_fd, JSON_NAME, text, n) : -ENOMEM;
    if (rc < 0)
        log_warn("%s in %s: %s", JSON_NAME, a->logs, strerror(-rc));
}

/* Whoever started us may have asked for the reason in a file, as we ask our workers. NULL: nobody did. */
static const char *parents_path(void)
{
    const char *path = getenv(ENV_ERROR_FILE);
    return path && *path ? path : NULL;
}

static void write_parents_file(const char *path, const char *text, size_t n)
{
    AUTO_FD fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
    int rc = fd < 0 ? -errno : text ? logdir_write_all(fd, text, n) : -ENOMEM;
    if (rc < 0)
        log_warn("%s=%s: %s", ENV_ERROR_FILE, path, strerror(-rc));
}

static void tell_parent(const struct report *r, const char *bytes, size_t bytes_n)
{
    const char *path = parents_path();
    if (!path)
        return;
    size_t n;
    const struct failure *f = r->failure;
    char message[700];
    snprintf(message, sizeof message, f->has_rank ? "rank %2$u of %3$u %1$s%4$s%5$s" : "%1$s",
             f->what, f->rank, r->world_size, f->error[0] ? ": " : "", f->error);
    int code = f->signal ? -f->signal : f->exit_code; /* Python's way to say it */
    AUTO_FREE char *text = bytes_n ? errorfile_with_code(bytes, bytes_n, code, &n)
                                   : errorfile_make(message, "", code, (uint64_t)f->at, &n);
    write_parents_file(path, text, n);
}

void aftermath_tell_stop(const struct aftermath *a, int sig)
{
    const char *path = parents_path();
    if (a->told_parent || !path)
        return;
    size_t n;
    char message[64], name[SIGNALS_NAME_BYTES];
    snprintf(message, sizeof message, "the job was asked to end by %s", signals_name(sig, name));
    AUTO_FREE char *text = errorfile_make(message, "", -sig, (uint64_t)time(NULL), &n);
    write_parents_file(path, text, n);
}

/* In what it said itself, or its traceback, or on stderr; that something failed only if nothing says what. */
static struct known_reason find_reason(const struct report *r)
{
    const char *error = r->failure->error, *message = r->said->message, *trace = r->said->traceback;
    const struct {
        const char *text;
        size_t n;
    } texts[] = {{error, strlen(error)},
                 {message, strlen(message)},
                 {trace, strlen(trace)},
                 {r->tail, r->tail_n}};
    struct known_reason best = {0};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct known_reason reason = {0};
        if (texts[i].n)
            reason = known_of_text(texts[i].text, texts[i].n);
        if (reason.known && (!best.known || best.known->vague))
            best = reason;
    }
    return best;
}

static const char *find_hint(const struct aftermath *a, const struct report *r)
{
    const struct failure *f = r->failure;
    struct hint_facts facts = {.reason = f->reason,
                               .exit_code = f->exit_code,
                               .signal = f->signal,
                               .core = f->core,
                               .state_lost = f->reason == REASON_RENDEZVOUS && !f->has_rank &&
                                             f->exit_code == EXIT_CODE_OURS,
                               .oom = a->oom};
    return r->reason.known && !a->oom ? r->reason.known->fix : hints_find(&facts);
}

static void describe_next(const struct aftermath *a, uint32_t restarts, int exit_code,
                          const char *why, char *text, size_t size)
{
    if (exit_code < 0)
        snprintf(text, size, "starting all %u rank%s again (restart %u of %u) in %g s",
                 a->world_size, a->world_size == 1 ? "" : "s", a->verdict.counted + 1,
                 a->spec->max_restarts, (double)a->verdict.after_ms / 1000);
    else if (a->healings)
        snprintf(text, size, "exit code %d; %s, after %u restart%s and %u healing%s", exit_code,
                 why, restarts, restarts == 1 ? "" : "s", a->healings, a->healings == 1 ? "" : "s");
    else
        snprintf(text, size, "exit code %d; %s", exit_code, why);
}

void aftermath_report(struct aftermath *a, const struct failure *f, uint32_t attempt, int exit_code,
                      const char *why)
{
    char next[160], core[256] = "";
    struct errorfile said;
    size_t bytes_n, n;
    char *bytes = read_error_file(a, f, &bytes_n);
    errorfile_parse(&said, bytes, bytes_n);
    describe_next(a, attempt, exit_code, why, next, sizeof next);
    struct report r = {.failure = f,
                       .program = a->spec->argv[0],
                       .run_id = a->spec->run_id,
                       .world_size = a->world_size,
                       .attempt = attempt,
                       .healings = a->healings,
                       .stopped = a->stopped,
                       .others = a->others,
                       .others_n = a->others_n,
                       .said = &said,
                       .logs = a->logs,
                       .next = exit_code < 0 || f->has_rank ? next : NULL,
                       .exit_code = exit_code,
                       .colour = log_has_colour()};
    if (a->relay && f->has_rank)
        r.tail = relay_tail(a->relay, f->rank, &r.tail_n);
    if (f->core)
        r.core = corefile_find("", f->pid, core, sizeof core);
    r.reason = find_reason(&r);
    r.hint = find_hint(a, &r);
    AUTO_FREE char *text = report_text(&r, &n);
    write_json(a, &r);
    if (exit_code >= 0)
        tell_parent(&r, bytes, bytes_n);
    a->told_parent = exit_code >= 0;
    if (a->relay)
        relay_flush(a->relay, FLUSH_MS);
    if (text)
        log_block(text, n);
    else
        log_error("%s: %s (there is no memory to say more)", r.program, f->what);
    free(bytes);
    a->reported = true;
}
