/* SPDX-License-Identifier: MIT */
#include "group.h"

#include "relay.h"

#include <signal.h>

int group_init(struct group *g, uint32_t n, void (*on_exit)(void *user, struct rank *rank),
               void *user)
{
    *g = (struct group){.n = n};
    g->ranks = calloc(n, sizeof *g->ranks);
    g->drained = calloc(n, sizeof *g->drained);
    if (!g->ranks || !g->drained) {
        group_finish(g);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++)
        rank_init(&g->ranks[i], i, on_exit, user);
    return 0;
}

void group_finish(struct group *g)
{
    free(g->ranks);
    free(g->drained);
    *g = (struct group){0};
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

bool group_owns(void *group, pid_t pid)
{
    const struct group *g = group;
    for (uint32_t i = 0; i < g->n; i++)
        if (g->ranks[i].pid == pid)
            return true;
    return false;
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
