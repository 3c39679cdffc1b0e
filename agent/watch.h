/* SPDX-License-Identifier: MIT */
/* A descriptor watched by the loop for readability. Heap memory of its own, so that the owner may forget it, or make a new
 * one, at any moment. Of the thread that runs the loop. */
#ifndef LAUNCH_AGENT_WATCH_H
#define LAUNCH_AGENT_WATCH_H

#include "../proto/err.h"

#include <stdbool.h>
#include <uv.h>

struct watch;

/* Calls on_readable(user) on the loop whenever fd is readable or at its end (level-triggered). fd: borrowed, made
 * non-blocking; may be closed as soon as watch_stop() has returned. NULL and errno: no memory, or a descriptor that can't be
 * watched; the loop then has a handle to close. */
struct watch *watch_start(uv_loop_t *loop, int fd, void (*on_readable)(void *user), void *user);

/* From now on on_readable() is called with this. */
void watch_give(struct watch *watch, void *user);

/* Until it is undone, no call comes. Cannot fail. */
void watch_pause(struct watch *watch, bool paused);

/* Stops at once (no call comes any more; the descriptor has left epoll) and empties *watch. Takes NULL too. */
void watch_stop(struct watch **watch);

#endif
