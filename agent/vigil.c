/* SPDX-License-Identifier: MIT */
#include "vigil.h"

#include "hang_report.h"
#include "log.h"

#include <stdatomic.h>
#include <stdio.h>

int vigil_init(struct vigil *v, uv_loop_t *loop, uint64_t timeout_ms, const struct group *group,
               const struct host_board *board,
               void (*on_hang)(void *user, uint32_t rank, const char *what, const char *evidence),
               void *user, struct err *err)
{
    *v = (struct vigil){.timeout_ms = timeout_ms,
                        .loop = loop,
                        .evidence = {.pidfd = -1},
                        .group = group,
                        .board = board,
                        .on_hang = on_hang,
                        .user = user};
    if (!timeout_ms)
        return 0;
    v->ranks = calloc(group->n, sizeof *v->ranks);
    v->stopped = calloc(group->n, sizeof *v->stopped);
    if (!v->ranks || !v->stopped)
        return err_set_errno(err, -ENOMEM, "%u ranks", group->n);
    uv_timer_init(loop, &v->timer);
    uv_timer_init(loop, &v->budget);
    v->timer.data = v;
    return 0;
}

int vigil_prepare(struct vigil *v, const struct relay *relay, struct err *err)
{
    v->relay = relay;
    free(v->text);
    v->text = NULL;
    return v->timeout_ms ? notify_open(&v->notify, v->loop, v->group->n, err) : 0;
}

const struct notify *vigil_notify(const struct vigil *v)
{
    return v->timeout_ms ? &v->notify : NULL;
}

/* ---- a look ---- */

static void gather(const struct vigil *v, uint32_t i, struct hang_facts *ret)
{
    const struct rank *rank = &v->group->ranks[i];
    const struct progress progress = host_board_progress(v->board, i);
    const struct notify_rank *notes = &v->notify.ranks[i];
    *ret = (struct hang_facts){
        .alive = rank_alive(rank),
        .ended_well = rank->ended && !rank->signalled && rank->code == 0,
        .stage = progress.stage,
        .step = progress.step,
        .heartbeat = progress.heartbeat,
        .entered = progress.entered,
        .finished = progress.finished,
        .watchdogs = notes->watchdogs,
        .messages = notes->messages,
        .output = v->relay ? relay_bytes(v->relay, i) : 0,
    };
}

/* Whoever reads our output has taken nothing between two looks, and the workers' output waits for that (a pager, a
 * terminal on hold): ranks may be silent because they can't write. */
static bool held_up(struct vigil *v)
{
    uint64_t output = 0;
    bool waits = v->relay && relay_waits(v->relay);
    for (uint32_t i = 0; v->relay && i < v->group->n; i++)
        output += relay_bytes(v->relay, i);
    bool held = waits && v->reader_waits && output == v->output_seen;
    v->reader_waits = waits;
    v->output_seen = output;
    return held;
}

/* Reads what the ranks are doing; false: one writes a core dump. That one is about to end, the others wait for it. */
static bool glance(struct vigil *v)
{
    bool dumping = false;
    for (uint32_t i = 0; i < v->group->n; i++) {
        struct evidence_proc proc;
        pid_t pid = v->group->ranks[i].pid;
        v->stopped[i] = false;
        if (!pid)
            continue;
        evidence_glance("", evidence_worker("", pid), &proc);
        v->stopped[i] = proc.state == 'T';
        dumping |= proc.core;
    }
    return !dumping;
}

static void tell(struct vigil *v, const char *why)
{
    char what[400];
    hang_describe(&v->hang, &v->verdict, what, sizeof what);
    free(v->text); /* of a hang that was healed */
    v->text = hang_report(&v->hang, &v->verdict, v->evidence.ranks, why, v->notify.ranks);
    v->on_hang(v->user, v->verdict.rank, what, v->text);
}

static void look_on(struct vigil *v);

/* One that was only slow may have come to its end while the others were looked at. */
static void on_evidence(void *user)
{
    struct vigil *v = user;
    if (rank_alive(&v->group->ranks[v->verdict.rank])) {
        tell(v, NULL);
        return;
    }
    log_debug("rank %u: has ended; it did not hang", v->verdict.rank);
    evidence_drop(&v->evidence);
    look_on(v);
}

static void take_evidence(struct vigil *v)
{
    struct err err = {0};
    pid_t *pids = calloc(v->group->n, sizeof *pids);
    for (uint32_t i = 0; pids && i < v->group->n; i++)
        pids[i] = v->group->ranks[i].pid;
    int rc = pids ? evidence_take(&v->evidence, v->loop, &v->budget, pids, v->group->n,
                                  v->verdict.rank, on_evidence, v, &err)
                  : err_set_errno(&err, -ENOMEM, "memory");
    free(pids);
    if (rc < 0)
        tell(v, err.text);
}

static void suspect(struct vigil *v)
{
    if (!glance(v))
        return;
    uv_timer_stop(&v->timer);
    v->verdict = hang_judge(&v->hang, v->stopped);
    log_debug("rank %u: hangs; taking evidence", v->verdict.rank);
    take_evidence(v);
}

static void on_look(uv_timer_t *timer)
{
    struct vigil *v = timer->data;
    uint64_t now = clock_now_ns();
    hang_look(&v->hang, now);
    if (held_up(v))
        hang_again(&v->hang, now);
    for (uint32_t i = 0; i < v->group->n; i++) {
        struct hang_facts facts;
        gather(v, i, &facts);
        hang_note(&v->hang, i, &facts);
    }
    if (hang_any(&v->hang))
        suspect(v);
}

static void look_on(struct vigil *v)
{
    uint64_t period_ms = hang_period_ms(v->timeout_ms);
    uv_update_time(v->loop);
    uv_timer_start(&v->timer, on_look, period_ms, period_ms);
}

/* ---- life ---- */

void vigil_forget(struct vigil *v, uint32_t rank)
{
    if (v->notify.ranks)
        notify_forget(&v->notify.ranks[rank]);
}

void vigil_start(struct vigil *v)
{
    if (!v->timeout_ms || v->looking)
        return;
    v->looking = true;
    v->reader_waits = false;
    hang_begin(&v->hang, v->ranks, v->group->n, v->timeout_ms * NS_PER_MS, clock_now_ns());
    for (uint32_t i = 0; i < v->group->n; i++) {
        struct hang_facts facts;
        gather(v, i, &facts);
        hang_seen(&v->hang, i, &facts);
    }
    look_on(v);
}

void vigil_again(struct vigil *v)
{
    if (v->looking)
        hang_again(&v->hang, clock_now_ns());
}

static void tell_of_strangers(const struct vigil *v)
{
    uint64_t refused = 0;
    for (uint32_t i = 0; v->notify.ranks && i < v->notify.n; i++)
        refused += v->notify.ranks[i].refused;
    if (refused)
        log_warn("%llu messages to NOTIFY_SOCKET were refused: their senders are no processes of "
                 "this job with this user id",
                 (unsigned long long)refused);
}

void vigil_pause(struct vigil *v)
{
    if (!v->timeout_ms)
        return;
    uv_timer_stop(&v->timer);
    v->looking = false;
    evidence_drop(&v->evidence);
}

void vigil_stop(struct vigil *v)
{
    if (!v->timeout_ms)
        return;
    vigil_pause(v);
    tell_of_strangers(v);
    notify_close(&v->notify);
}

void vigil_finish(struct vigil *v)
{
    vigil_stop(v);
    free(v->ranks);
    free(v->stopped);
    free(v->text);
    *v = (struct vigil){0};
}
