/* SPDX-License-Identifier: MIT */
/* The inside of a membership, shared by worker.c (which owns it), process.c, collective.c and heal.c. Nobody else may
 * include this: main.c, runner.c and the device backends use launch.h and device.h. */
#ifndef LAUNCH_WORKER_WORKER_H
#define LAUNCH_WORKER_WORKER_H

#include "device.h"
#include "launch.h"

#include <stdbool.h>
#include <sys/types.h>

/* What comes from the board is copied here once, at launch_join(), after it was checked: a peer
 * that scribbles over the head later changes nothing. */
struct launch {
    struct board board;
    struct board_slot *slot; /* ours, in board */
    int bell_fd;        /* the process's own inheritance, not closed here; -1: nobody listens */
    pid_t pid;          /* a forked child holds a copy of us that it must not use up */
    bool locked;        /* slot->lock is ours */
    uint32_t places;    /* of ranks in the board, dead ones too */
    uint32_t *place_of; /* owned: of each rank of this generation; twice the room: read_table() */
    uint32_t rank, world_size, local_rank;
    int32_t device;
    _Atomic uint32_t generation; /* launch_check() may be called by any thread; 0: of none */
    uint32_t restart_count, spin_ns;
    uint32_t epoch;

    pthread_mutex_t held; /* slot->lock as we took it: peers can write to it */

    /* collective.c's; all ranks count alike. */
    uint32_t steps;    /* exchanges begun: the parity chooses the half of the data area */
    uint32_t barriers; /* value of arrive[] that ends the present barrier */
    bool disagreed; /* ranks made different calls: the counters may differ, nothing goes any more */

    /* heal.c's. */
    int root;           /* launch_state_root() */
    uint64_t state;     /* root's state number */
    bool restore;       /* somebody needs it */
    uint32_t met;       /* last generation in which launch_meet() was through */
    struct piece *kept; /* owned */
    size_t kept_n;
    int32_t warm; /* 1 + the device that a standby has made ready; 0: none */
    bool early;   /* in heal_begin_early(): what fails there fails again, and for good, later */

    const struct device_ops *ops;
    void *backend;
    char error[ERR_TEXT_BYTES];
};

/* What launch_check() says, with a text for launch_error(). */
MUST_CHECK int worker_verdict(struct launch *l);

/* board_wait() for a member: LAUNCH_OK when *word is no longer `seen`, or when the agent had news that
 * do not end the generation (look again, at the peer as well), LAUNCH_TIMEOUT (without a text),
 * LAUNCH_AGAIN or LAUNCH_STOP. */
MUST_CHECK int worker_wait(struct launch *l, _Atomic uint32_t *word, uint32_t seen,
                           uint64_t deadline_ns);

/* The agent looks at the slots. Every ring wakes it: only for what it acts upon. */
void worker_ring(const struct launch *l);

/* Lists the ranks that have not joined l's generation: "3, 5", or the first eight "and 9 more".
 * Returns how many there are; text is "" if none. */
unsigned worker_missing(const struct launch *l, char *text, size_t size);

/* Gives everything of the old generation back and meets the others in the next one. */
MUST_CHECK int worker_rejoin(struct launch *l);

/* Of a rank of this generation. */
struct board_slot *worker_peer(const struct launch *l, uint32_t rank);

/* launch_broadcast() of checked arguments; data NULL: takes part, but has no use for what comes. */
MUST_CHECK int collective_broadcast(struct launch *l, void *data, size_t bytes, uint32_t root);

/* The generation is gathered, and its table was read: the word to wait for, or NULL, as device_offer.begin(). */
_Atomic uint32_t *heal_begin_early(struct launch *l, uint32_t *seen);

/* A standby in a spare slot waits for its place. *ret: the place. LAUNCH_STOP. */
MUST_CHECK int heal_await_place(struct launch *l, uint32_t spare, uint32_t *ret);

/* Whose exit() leaves the group, and whose forked children are told that they are no rank. NULL: nobody's. */
void process_set_member(struct launch *l);
struct launch *process_member(void);

/* LAUNCH_INVALID, with what a forked child can do instead. */
int process_refuse(struct launch *l);

/* Zeroes what collective.c keeps in l and in l's slot; before the other ranks can look. */
void collective_reset(struct launch *l);

#endif
