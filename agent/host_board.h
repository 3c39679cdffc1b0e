/* SPDX-License-Identifier: MIT */
/* The agent's side of the board: makes one for an attempt, hears the bell, reads the workers' stages (as
 * untrusted input) and tells the job who came, reported an error, or left. */
#ifndef LAUNCH_AGENT_HOST_BOARD_H
#define LAUNCH_AGENT_HOST_BOARD_H

#include "../proto/board.h"
#include "../proto/status.h"

#include <uv.h>

struct watch;

struct host_board {
    struct board board;
    int bell;            /* owned eventfd; workers write it when their stage changes */
    struct watch *watch; /* owned; of the bell */
    uint32_t world_size, generation;
    uint32_t members; /* ranks of the generation: world_size less those that were dropped */
    bool stopped;     /* host_board_stop() was called */
    bool gathered;    /* the generation is; this and `dropped`: the board's own word is anybody's */
    uint8_t *seen;    /* owned: enum stage last told to on_stage, one per rank */
    bool *dropped;    /* owned: places without a rank */
    uint32_t *since;  /* owned: generation in which the process of each place got it */
    void (*on_stage)(void *user, uint32_t rank, enum stage stage);
    void (*on_bell)(void *user); /* after each ring; NULL: nobody wants to know */
    void *user;
};

/* Makes board and bell and listens. hb: zeroed or closed.
 * on_stage: once per rank and stage of this generation that was seen. Errors: as board_create(). */
MUST_CHECK int host_board_open(struct host_board *hb, uv_loop_t *loop,
                               const struct board_config *config,
                               void (*on_stage)(void *user, uint32_t rank, enum stage stage),
                               void *user, struct err *err);

/* Opens the next generation: ends all waits of the present one, and nobody has joined. timeout_ms: ranks that join later
 * wait no shorter than this for the others (0: for ever). */
void host_board_next(struct host_board *hb, uint32_t generation, uint64_t timeout_ms);

/* From the next generation on the place has no rank, and those behind it move up. */
void host_board_drop(struct host_board *hb, uint32_t place);

/* From the next generation on a place that was dropped has a rank again, and those behind it move down. */
void host_board_regain(struct host_board *hb, uint32_t place);

/* The place is about to get a process: what its slot told before is another's. */
void host_board_occupy(struct host_board *hb, uint32_t place);

/* Before a standby is started in a spare slot, and when it gets its place. */
void host_board_vacate(struct host_board *hb, uint32_t spare);
/* It waits for a place, with everything that it does before. */
bool host_board_is_warm(const struct host_board *hb, uint32_t spare);
void host_board_assign(struct host_board *hb, uint32_t spare, uint32_t place);

/* All ranks of the generation have joined: chooses whose state they take. gather tells them, so that they can begin with what
 * the dead are not in the way of, and may be called again; release lets them go. False: none has any state, though some
 * were there before this generation: the state is lost, and they go on waiting. */
bool host_board_gather(struct host_board *hb);
bool host_board_release(struct host_board *hb);

/* Asks the workers to end (launch_check() says LAUNCH_STOP) and wakes those that wait. why: a signal number or any
 * number but 0. */
void host_board_stop(struct host_board *hb, uint32_t why);

/* Reads the stage of a rank now; for a look after its death, when the bell may not have been heard yet. */
void host_board_look_at(struct host_board *hb, uint32_t rank);

enum stage host_board_stage(const struct host_board *hb, uint32_t rank);

/* How far a rank has come in this generation; all 0 as long as it has not joined that. */
struct progress {
    enum stage stage;
    uint64_t step, heartbeat, entered, finished;
};
struct progress host_board_progress(const struct host_board *hb, uint32_t rank);

/* It has joined and not left (nor reported an error). */
bool host_board_is_member(const struct host_board *hb, uint32_t rank);

/* It called launch_meet(). */
bool host_board_can_heal(const struct host_board *hb, uint32_t rank);

/* It is a member, if only of an earlier generation, that wants to hear of a requested end from launch_check() only. */
bool host_board_catches_stop(const struct host_board *hb, uint32_t rank);

/* It has left, in this generation or in an earlier one. */
bool host_board_has_left(const struct host_board *hb, uint32_t rank);

/* The word for which the rank's job got LAUNCH_STOP, if host_board_stop() was not called: some worker has written over the
 * board. 0: all is well. */
uint32_t host_board_false_stop(const struct host_board *hb, uint32_t rank);

/* Which ranks have not joined within the rendezvous timeout, as a sentence for the report. */
void host_board_describe_missing(const struct host_board *hb, uint64_t timeout_ms, char *text,
                                 size_t size);

/* Takes a closed or zeroed one too. */
void host_board_close(struct host_board *hb);

#endif
