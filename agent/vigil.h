/* SPDX-License-Identifier: MIT */
/* Watches over the ranks of an attempt for --hang-timeout: gathers their signs of life on a timer (board, messages,
 * output), asks hang.c, has evidence taken and tells the job, once. Without a timeout it does nothing at all: no timer, no
 * socket. Decides nothing about what happens then. */
#ifndef LAUNCH_AGENT_VIGIL_H
#define LAUNCH_AGENT_VIGIL_H

#include "evidence.h"
#include "group.h"
#include "hang.h"
#include "host_board.h"
#include "notify.h"
#include "relay.h"

struct vigil {
    uint64_t timeout_ms; /* 0: off */
    uv_loop_t *loop;
    uv_timer_t timer, budget; /* a look every period; evidence */
    bool looking;
    struct notify notify;
    struct hang hang;
    struct hang_rank *ranks; /* owned */
    bool *stopped;           /* owned: by a signal, as of the verdict */
    struct hang_verdict verdict;
    struct evidence evidence;
    uint64_t output_seen; /* of all ranks; see held_up() */
    bool reader_waits;
    char *text; /* owned: the evidence in words, until the next attempt */

    const struct group *group;
    const struct host_board *board;
    const struct relay *relay; /* NULL: output is not seen */
    void (*on_hang)(void *user, uint32_t rank, const char *what, const char *evidence);
    void *user;
};

/* v: zeroed. Everything is borrowed. on_hang: which rank holds up the others, what is to be said of it ("hangs at step 3
 * ..."), and evidence: lines for the report, NULL if there is no memory. */
MUST_CHECK int vigil_init(struct vigil *v, uv_loop_t *loop, uint64_t timeout_ms,
                          const struct group *group, const struct host_board *board,
                          void (*on_hang)(void *user, uint32_t rank, const char *what,
                                          const char *evidence),
                          void *user, struct err *err);

/* Before the workers of an attempt exist: opens what they can send to. */
MUST_CHECK int vigil_prepare(struct vigil *v, const struct relay *relay, struct err *err);

/* What workers can send to; NULL: off. */
const struct notify *vigil_notify(const struct vigil *v);

/* They run. Does nothing when it is on already. */
void vigil_start(struct vigil *v);

/* The rank gets a new process, while nobody looks. */
void vigil_forget(struct vigil *v, uint32_t rank);

/* The group was stopped and goes on: everybody's time begins anew. */
void vigil_again(struct vigil *v);

/* Does not look before vigil_start() comes again: what workers can send to stays open. */
void vigil_pause(struct vigil *v);

/* Ends watching; also in the midst of taking evidence. Does nothing when it is off already. */
void vigil_stop(struct vigil *v);

void vigil_finish(struct vigil *v);

#endif
