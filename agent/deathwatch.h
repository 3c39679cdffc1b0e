/* SPDX-License-Identifier: MIT */
/* Early news of a death: every worker that uses liblaunch holds the robust lock of its slot, and the kernel frees it
 * when the holder's main thread ends, before it tears the memory down (which takes 80 ms a GiB and is what a
 * pidfd waits for). A helper thread sleeps on up to 127 locks; nothing of this exists before deathwatch_start().
 *
 * A freed lock is a hint, not a proof: see procstate.h and the pidfd. What the locks say was perhaps written by
 * a broken worker; the worst it can do is to give no early news. */
#ifndef LAUNCH_AGENT_DEATHWATCH_H
#define LAUNCH_AGENT_DEATHWATCH_H

#include "../proto/board.h"

#include <uv.h>

struct deathwatch;

/* board: borrowed, must stay mapped until deathwatch_stop(). on_lost(user, rank): on the loop, once for every
 * deathwatch_add() whose lock was freed by a death; not when the worker left. All signals should be blocked: the
 * threads inherit the mask. Errors: -ENOMEM, -EMFILE. */
MUST_CHECK int deathwatch_start(struct deathwatch **ret, uv_loop_t *loop, const struct board *board,
                                uint32_t world_size, void (*on_lost)(void *user, uint32_t rank),
                                void *user);

/* Watches the lock of a rank that has joined. Without memory for a thread: no early news, no error. */
void deathwatch_add(struct deathwatch *w, uint32_t rank);

/* Ends the threads; no call comes any more. *w is emptied, its memory goes when the loop lets go of it. NULL is fine. */
void deathwatch_stop(struct deathwatch **w);

/* For tests: as on kernels before 5.16, which have no futex_waitv (a thread a lock, 64 at most). */
extern bool deathwatch_one_by_one;

#endif
