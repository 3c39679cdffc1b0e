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
    /* A new generation begins (launch_meet()): gives back what belongs to the old one, whose ranks may be dead, and
     * keeps what this process may use again. NULL: there is nothing. */
    void (*again)(void *device);
};

/* The backend's object in this membership: NULL until set. One backend a membership. */
LAUNCH_API void *launch_device_object(struct launch *l);
LAUNCH_API void launch_device_attach(struct launch *l, const struct device_ops *ops, void *device);

/* The board and this rank's slot, for the unique id, stages and counters. */
LAUNCH_API const struct board *launch_device_board(const struct launch *l);
LAUNCH_API struct board_slot *launch_device_slot(const struct launch *l);

/* The slot of a rank of this generation. */
LAUNCH_API struct board_slot *launch_device_peer(const struct launch *l, uint32_t rank);

/* Stores the stage, and rings the agent's bell for those it acts upon (JOINED, FAILED, LEFT). */
LAUNCH_API void launch_device_set_stage(struct launch *l, enum stage stage);

#endif
