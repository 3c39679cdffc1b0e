/* SPDX-License-Identifier: MIT */
/* The ranks of a job taken together: who is left, and signals to all of them. */
#ifndef LAUNCH_AGENT_GROUP_H
#define LAUNCH_AGENT_GROUP_H

#include "rank.h"

struct relay;

struct group {
    uint32_t n;
    struct rank *ranks;  /* owned */
    bool *drained;       /* owned: the rank's output is read to its end */
    uint32_t unfinished; /* ranks that live, or whose output is not read yet */
};

/* -ENOMEM. on_exit, user: as rank_init(). */
MUST_CHECK int group_init(struct group *g, uint32_t n,
                          void (*on_exit)(void *user, struct rank *rank), void *user);
void group_finish(struct group *g);

/* Before an attempt: nobody has finished; without pipes there is nothing to be read. */
void group_begin(struct group *g, bool has_pipes);

/* Notes that a rank's process was reaped, or that its output was read. True: that was the last thing the
 * whole group was waiting for. */
bool group_note_exit(struct group *g, uint32_t rank);
bool group_note_drained(struct group *g, uint32_t rank);

/* An attempt failed to start: the ranks that never got a process have finished, nobody will write to their pipes.
 * True as above. relay: NULL without pipes. */
bool group_note_unstarted(struct group *g, struct relay *relay);

/* Ranks with a process. */
uint32_t group_alive(const struct group *g);

/* The process is one of ours and not reaped yet. For tree_signal_children(). */
bool group_owns(void *g, pid_t pid);

/* Logs which workers somebody has stopped (SIGSTOP, ...) or continued since the last call; what we do to them
 * ourselves is no news. After a SIGCHLD. */
void group_tell_stops(struct group *g);

/* To every worker and everything below it. */
void group_signal(struct group *g, int sig);

/* To the workers' own processes only. */
void group_pass_on(struct group *g, int sig);

#endif
