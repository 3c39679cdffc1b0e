/* SPDX-License-Identifier: MIT */
/* A descriptor watched by the loop for readability. Heap memory of its own, which goes when libuv lets go of the
 * handle: so the owner may forget it, or make a new one, at any moment. */
#ifndef LAUNCH_AGENT_WATCH_H
#define LAUNCH_AGENT_WATCH_H

#include "../proto/err.h"

#include <uv.h>

struct watch;

/* Calls on_readable(user) on the loop whenever fd is readable (level-triggered). fd: borrowed; may be closed as soon as
 * watch_stop() has returned. NULL: no memory, or a descriptor that can't be watched. */
struct watch *watch_start(uv_loop_t *loop, int fd, void (*on_readable)(void *user), void *user);

/* From now on on_readable() is called with this. */
void watch_give(struct watch *watch, void *user);

/* Stops at once (no call comes any more; the descriptor has left epoll) and empties *watch. Takes NULL too. */
void watch_stop(struct watch **watch);

#endif
