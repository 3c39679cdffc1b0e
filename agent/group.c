/* SPDX-License-Identifier: MIT */
#include "group.h"

#include "log.h"
#include "relay.h"
#include "signals.h"

#include <signal.h>
#include <sys/wait.h>

/* A process that was a rank's. */
struct grave {
    struct rank rank;
    struct grave *next;
};

int group_init(struct group *g, uint32_t n, uint32_t spares,
               void (*on_exit)(void *user, struct rank *rank), void (*on_buried)(void *user),
               void *user)
{
    *g = (struct group){.n = n, .spares_n = spares, .on_buried = on_buried, .user = user};
    g->ranks = calloc(n, sizeof *g->ranks);
    g->drained = calloc(n, sizeof *g->drained);
    g->spares = calloc(spares ? spares : 1, sizeof *g->spares);
    if (!g->ranks || !g->drained || !g->spares) {
        group_finish(g);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++)
        rank_init(&g->ranks[i], i, on_exit, user);
    for (uint32_t i = 0; i < spares; i++)
        rank_init(&g->spares[i], n + i, NULL, NULL);
    return 0;
}

void group_finish(struct group *g)
{
    while (g->dying) {
        struct grave *grave = g->dying;
        g->dying = grave->next;
        rank_forget(&grave->rank);
        free(grave);
    }
    free(g->ranks);
    free(g->drained);
    free(g->spares);
    *g = (struct group){0};
}

static void on_gone(void *user, struct rank *rank)
{
    struct group *g = user;
    struct grave **at = &g->dying;
    while (&(*at)->rank != rank)
        at = &(*at)->next;
    struct grave *grave = *at;
    *at = grave->next;
    free(grave);
    g->on_buried(g->user);
}

int group_bury(struct group *g, struct rank *rank)
{
    struct grave *grave = calloc(1, sizeof *grave);
    if (!grave)
        return -ENOMEM;
    rank_signal(rank, SIGKILL);
    rank_init(&grave->rank, rank->index, on_gone, g);
    rank_move(&grave->rank, rank);
    grave->next = g->dying;
    g->dying = grave;
    return 0;
}

const struct rank *group_dying(const struct group *g)
{
    return g->dying ? &g->dying->rank : NULL;
}

void group_revive(struct group *g, uint32_t rank, bool has_pipes)
{
    if (g->drained[rank] && !rank_alive(&g->ranks[rank]))
        g->unfinished++;
    g->drained[rank] = !has_pipes;
}

void group_begin(struct group *g, bool has_pipes)
{
    g->unfinished = g->n;
    for (uint32_t i = 0; i < g->n; i++) {
        g->drained[i] = !has_pipes;
        rank_forget(&g->ranks[i]);
    }
}

static bool note_finished(struct group *g, uint32_t rank)
{
    return g->drained[rank] && !rank_alive(&g->ranks[rank]) && --g->unfinished == 0;
}

bool group_note_exit(struct group *g, uint32_t rank)
{
    return note_finished(g, rank);
}

bool group_note_drained(struct group *g, uint32_t rank)
{
    g->drained[rank] = true;
    return note_finished(g, rank);
}

bool group_note_unstarted(struct group *g, struct relay *relay)
{
    bool last = false;
    for (uint32_t i = 0; i < g->n; i++) {
        if (g->ranks[i].pid || g->ranks[i].ended)
            continue;
        if (relay)
            relay_rank_drain(relay, i, 0);
        last |= group_note_exit(g, i);
    }
    return last;
}

uint32_t group_alive(const struct group *g)
{
    uint32_t alive = 0;
    for (uint32_t i = 0; i < g->n; i++)
        alive += rank_alive(&g->ranks[i]);
    return alive;
}

uint32_t group_running(const struct group *g)
{
    uint32_t running = 0;
    for (uint32_t i = 0; i < g->n; i++)
        running += rank_alive(&g->ranks[i]) && !g->ranks[i].suspected;
    return running;
}

static struct rank *find(struct group *g, pid_t pid)
{
    for (uint32_t i = 0; i < g->n; i++)
        if (g->ranks[i].pid == pid)
            return &g->ranks[i];
    return NULL;
}

bool group_owns(void *group, pid_t pid)
{
    struct group *g = group;
    for (uint32_t i = 0; i < g->spares_n; i++)
        if (g->spares[i].pid == pid)
            return true;
    for (struct grave *grave = g->dying; grave; grave = grave->next)
        if (grave->rank.pid == pid)
            return true;
    return find(g, pid) != NULL;
}

static void tell_stop(struct rank *rank, const siginfo_t *info)
{
    char name[SIGNALS_NAME_BYTES];
    bool stopped = info->si_code == CLD_STOPPED;
    if (rank->held || rank->stopped_by_us || rank->stopped == stopped)
        return;
    rank->stopped = stopped;
    if (stopped)
        log_warn("rank %u (pid %d) was stopped by %s; it goes on when it gets SIGCONT", rank->index,
                 (int)info->si_pid, signals_name(info->si_status, name));
    else
        log_warn("rank %u (pid %d) goes on", rank->index, (int)info->si_pid);
}

void group_tell_stops(struct group *g)
{
    siginfo_t info = {0};
    while (waitid(P_ALL, 0, &info, WSTOPPED | WCONTINUED | WNOHANG) == 0 && info.si_pid) {
        struct rank *rank = find(g, info.si_pid);
        if (rank)
            tell_stop(rank, &info);
        info.si_pid = 0;
    }
}

void group_signal(struct group *g, int sig)
{
    for (uint32_t i = 0; i < g->n; i++)
        rank_signal(&g->ranks[i], sig);
}

void group_pass_on(struct group *g, int sig)
{
    for (uint32_t i = 0; i < g->n; i++)
        if (g->ranks[i].pid)
            kill(g->ranks[i].pid, sig); /* not reaped: the pid is the worker's */
}
