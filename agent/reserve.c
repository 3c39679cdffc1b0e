/* SPDX-License-Identifier: MIT */
#include "reserve.h"

#include "log.h"
#include "procstate.h"

#include <signal.h>

#define AGAIN_MS 20

static void close_pipes(struct reserve *r, uint32_t i)
{
    for (enum relay_stream_kind kind = 0; kind < RELAY_KINDS_N; kind++)
        close_fd(&r->pipes[i][kind]);
}

static void on_exit_(void *user, struct rank *standby)
{
    struct reserve *r = user;
    char what[512];
    close_pipes(r, standby->index - r->group->n);
    rank_describe_end(standby, what, sizeof what);
    bool killed = standby->signalled && standby->code == SIGKILL && !standby->stopped_by_us;
    if (killed) /* so that the kill is not taken for another's later */
        oom_explain(r->oom, true, what, sizeof what);
    if (!standby->stopped_by_us)
        log_warn("a standby (pid %d) %s before it was needed", (int)standby->last_pid, what);
    r->on_gone(r->user);
}

int reserve_init(struct reserve *r, struct attempt *attempt, struct attempt_config *config,
                 struct group *group, struct oom *oom, uv_loop_t *loop, void (*on_gone)(void *user),
                 void *user)
{
    *r = (struct reserve){.attempt = attempt,
                          .config = config,
                          .group = group,
                          .oom = oom,
                          .on_gone = on_gone,
                          .user = user};
    if (!group->spares_n)
        return 0;
    uv_timer_init(loop, &r->again);
    r->again.data = r;
    r->pipes = calloc(group->spares_n, sizeof *r->pipes);
    if (!r->pipes)
        return -ENOMEM;
    for (uint32_t i = 0; i < group->spares_n; i++) {
        r->pipes[i][RELAY_STDOUT] = r->pipes[i][RELAY_STDERR] = -1;
        rank_init(&group->spares[i], group->n + i, on_exit_, r);
    }
    return 0;
}

void reserve_fill(struct reserve *r)
{
    for (uint32_t i = 0; i < r->group->spares_n; i++) {
        struct err err;
        if (rank_alive(&r->group->spares[i]))
            continue;
        if (attempt_start_spare(r->attempt, r->config, i, r->pipes[i], &err) < 0)
            log_warn("a standby can't be started: %s", err.text);
    }
}

/* ---- priority ---- */

/* False: later. */
static bool raise_priority(struct rank *process)
{
    if (!process->background || !rank_alive(process))
        return true;
    process->background = spawn_foreground(process->pid) == -EAGAIN;
    return !process->background;
}

static void on_again(uv_timer_t *timer)
{
    reserve_look(timer->data);
}

void reserve_look(struct reserve *r)
{
    bool done = true;
    for (uint32_t i = 0; i < r->group->n; i++)
        done &= raise_priority(&r->group->ranks[i]);
    for (uint32_t i = 0; i < r->group->spares_n; i++) {
        if (!host_board_is_warm(&r->attempt->board, i))
            continue;
        done &= raise_priority(&r->group->spares[i]);
        nccl_topo_found(r->config->topo, i, environ_rank_of(&r->config->job, r->group->n + i));
    }
    if (!done)
        uv_timer_start(&r->again, on_again, AGAIN_MS, 0);
}

/* ---- use ---- */

/* One that is dying would cost the rank another restart. */
static bool is_well(const struct rank *standby)
{
    int status;
    return rank_alive(standby) && !standby->stopped_by_us &&
           procstate_of("", standby->pid, &status) != PROC_ENDING;
}

/* near: only if it was made like the rank, with its GPU's context; warm: only if it is. */
static bool fits(const struct reserve *r, uint32_t i, uint32_t rank, bool warm, bool near)
{
    const struct environ_job *job = &r->config->job;
    const struct rank *standby = &r->group->spares[i];
    bool own_words = r->config->program->lists != NULL; /* every rank has arguments of its own */
    return environ_fits(job, standby->seat, rank) &&
           (!(own_words || near) || environ_rank_of(job, standby->seat) == rank) &&
           (!warm || host_board_is_warm(&r->attempt->board, i)) && is_well(standby);
}

static bool use(struct reserve *r, uint32_t rank, bool warm, bool near)
{
    for (uint32_t i = 0; i < r->group->spares_n; i++) {
        struct err err;
        if (!fits(r, i, rank, warm, near))
            continue;
        if (attempt_use_spare(r->attempt, r->config, i, r->pipes[i], rank, &err) == 0)
            return true;
        log_warn("a standby can't be used: %s", err.text);
    }
    return false;
}

/* A warm one of another rank before one of its own that is not: on a GPU that it does not know yet it makes another context, some
 * tenths of a second, while what a program does before launch_join() takes seconds, and nobody knows how many of them are left. */
bool reserve_use(struct reserve *r, uint32_t rank)
{
    bool used = use(r, rank, true, true) || use(r, rank, true, false) ||
                use(r, rank, false, true) || use(r, rank, false, false);
    if (used)
        reserve_look(r);
    return used;
}

void reserve_dismiss(struct reserve *r)
{
    if (r->group->spares_n)
        uv_timer_stop(&r->again);
    for (uint32_t i = 0; i < r->group->spares_n; i++) {
        rank_signal(&r->group->spares[i], SIGKILL);
        close_pipes(r, i);
    }
}

void reserve_finish(struct reserve *r)
{
    free(r->pipes);
    *r = (struct reserve){0};
}
