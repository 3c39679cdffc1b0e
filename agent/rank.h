/* SPDX-License-Identifier: MIT */
/* One worker: its process from start to reaping, and how it ended. Knows nothing of the other ranks, of
 * policy or of output. */
#ifndef LAUNCH_AGENT_RANK_H
#define LAUNCH_AGENT_RANK_H

#include "../proto/err.h"
#include "../proto/status.h"
#include "spawn.h"

#include <stdbool.h>
#include <uv.h>

struct watch;

struct rank {
    uint32_t index;
    pid_t pid;                 /* 0: no process, or reaped */
    pid_t last_pid;            /* of this attempt, for messages */
    int pidfd;                 /* owned; -1 without a process */
    struct spawn_group *group; /* borrowed: the attempt it belongs to */
    unsigned seat;             /* of its process in the group: LAUNCH_SLOT */
    bool background;           /* it is of low priority still */
    uint32_t generation;       /* in which its process was started: LAUNCH_GENERATION */
    struct watch *watch;       /* owned; of the pidfd */

    /* How it ended; valid once `ended`. */
    bool ended;
    bool signalled; /* by a signal: `code` is its number, else the exit code */
    int code;
    bool core; /* it left a core dump */
    enum reason reason;
    struct spawn_record spawn; /* with REASON_SPAWN: what could not be done */
    uint64_t sent;             /* bit n - 1: we sent signal n to its tree */
    bool stopped_by_us;        /* we had sent SIGTERM or SIGKILL before it ended */
    bool held;                 /* stopped by us, until we continue it */
    bool stopped;              /* by somebody else, and that was told */
    bool suspected;            /* rank_suspect() said so: what we sent later is not why it ended */
    bool headless;             /* told once that its main thread has ended alone */
    uint64_t started_ns, ended_ns;

    void (*on_exit)(void *user, struct rank *rank); /* once, after reaping; `ended` is set */
    void *user;
};

void rank_init(struct rank *rank, uint32_t index, void (*on_exit)(void *user, struct rank *rank),
               void *user);

/* Forgets how an earlier attempt ended. The rank must have no process. */
void rank_forget(struct rank *rank);

/* `to`, without a process, takes over that of `from`, which is forgotten. Each keeps its own on_exit. */
void rank_move(struct rank *to, struct rank *from);

/* Starts a process for it, held at the group's gate. The rank must have none. As spawn_start(). */
MUST_CHECK int rank_start(struct rank *rank, uv_loop_t *loop, struct spawn_group *group,
                          const struct spawn_request *request, struct err *err);

/* Sends sig to the worker's whole tree, if it still has a process. TERM and KILL count as ours. */
void rank_signal(struct rank *rank, int sig);

/* The lock it held in the board is free, although it did not leave: looks whether it is really ending. True: it is, by
 * a failure of its own; `signalled`, `code` and `reason` say which and on_exit will confirm them. */
bool rank_suspect(struct rank *rank);

/* True until its process has been reaped. */
bool rank_alive(const struct rank *rank);

/* Exit code that the launcher should give for it: its own, 128+n for a signal. */
int rank_exit_code(const struct rank *rank);

/* "exited with code 3", "was killed by SIGSEGV (core dumped)", "could not be started: ...". */
void rank_describe_end(const struct rank *rank, char *text, size_t size);

#endif
