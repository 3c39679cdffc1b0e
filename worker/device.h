/* SPDX-License-Identifier: MIT */
/* What liblaunch proper and a device backend (worker/nccl.c, worker/rccl.c) need of each other. The backend
 * is a library of its own that depends on liblaunch; liblaunch never knows which backend it is.
 * Not installed. The functions are exported for the backend only. */
#ifndef LAUNCH_WORKER_DEVICE_H
#define LAUNCH_WORKER_DEVICE_H

#include "launch.h"

#include "../proto/board.h"
#include "../proto/err.h"
#include "../proto/status.h"

/* The few things a backend must do when told. */
struct device_ops {
    const char *name; /* "nccl", "rccl" */
    /* Gives everything back; called by launch_leave(). peers_alive: false after a death or in a new
     * generation, when collective clean-up (ncclCommDestroy) would hang. */
    void (*close)(void *device, int peers_alive);
};

/* The backend's object in this membership: NULL until set. One backend a membership. */
LAUNCH_API void *launch_device_object(struct launch *l);
LAUNCH_API void launch_device_attach(struct launch *l, const struct device_ops *ops, void *device);

/* The board and this rank's slot, for the unique id, stages and counters. */
LAUNCH_API const struct board *launch_device_board(const struct launch *l);
LAUNCH_API struct board_slot *launch_device_slot(const struct launch *l);

/* Epoch at the start of this generation, for board_wait(). */
LAUNCH_API uint32_t launch_device_epoch(const struct launch *l);

/* Rings the agent's bell after a change of stage. */
LAUNCH_API void launch_device_set_stage(struct launch *l, enum stage stage);

/* Records an error text: launch_error(), the slot (for the failure report). Returns `result`. */
LAUNCH_API int launch_device_fail(struct launch *l, enum launch_result result, const char *format,
                                  ...) PRINTF_LIKE(3, 4);

#endif
