/* SPDX-License-Identifier: MIT */
/* The processes of a job taken together: its ranks, standbys, and what is left of ranks that were replaced. Who is left, and
 * signals to all of them. */
#ifndef LAUNCH_AGENT_GROUP_H
#define LAUNCH_AGENT_GROUP_H

#include "rank.h"

struct relay;

struct group {
    uint32_t n;
    struct rank *ranks;  /* owned */
    bool *drained;       /* owned: the rank's output is read to its end */
    uint32_t unfinished; /* ranks that live, or whose output is not read yet */
    uint32_t spares_n;
    struct rank *spares; /* owned: standbys; index and seat n + i */
    struct grave *dying; /* owned list: processes that are no rank's any more and not reaped yet */
    void (*on_buried)(void *user);
    void *user;
};

/* -ENOMEM. on_exit, user: as rank_init(), for ranks; standbys have none yet. on_buried(user): after group_bury(), when the
 * process is gone. */
MUST_CHECK int group_init(struct group *g, uint32_t n, uint32_t spares,
                          void (*on_exit)(void *user, struct rank *rank),
                          void (*on_buried)(void *user), void *user);
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

/* The rank's process is dying and the rank gets another one: kills what is below it and lets go of it. It stays ours until
 * it is reaped. -ENOMEM: nothing has changed. */
MUST_CHECK int group_bury(struct group *g, struct rank *rank);

/* A process that was buried and is not gone yet; its index is that of the rank that it was. NULL: there is none. */
const struct rank *group_dying(const struct group *g);

/* A rank that may have finished is about to get a process again. */
void group_revive(struct group *g, uint32_t rank, bool has_pipes);

/* Ranks with a process. */
uint32_t group_alive(const struct group *g);

/* Those of them that are not known to be dying. */
uint32_t group_running(const struct group *g);

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
