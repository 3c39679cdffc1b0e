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

/* What launch_meet() does with memory of the device that is kept. device: the backend's object. */
struct device_memory {
    void *(*alloc)(void *device, size_t bytes); /* NULL: there is none left */
    void (*free)(void *device, void *data);     /* NULL is fine */
    int (*move)(void *device, void *to, const void *from, size_t bytes);
    /* All ranks call it with the same bytes; data NULL: takes part, but has no use for what comes. */
    int (*broadcast)(void *device, void *data, size_t bytes, int root);
};

/* The few things a backend must do when told. */
struct device_ops {
    const char *name; /* "nccl", "rccl" */
    /* Gives everything back; called by launch_leave(). peers_alive: false after a death or in a new
     * generation, when collective clean-up (ncclCommDestroy) would hang. */
    void (*close)(void *device, int peers_alive);
    /* A new generation begins (launch_meet()): gives back what belongs to the old one, whose ranks may be dead, and
     * keeps what this process may use again. NULL: there is nothing. */
    void (*again)(void *device);
    const struct device_memory *memory; /* NULL: none is kept there */
};

/* launch_keep() of memory that ops->memory knows how to copy. */
LAUNCH_API int launch_device_keep(struct launch *l, void *data, size_t bytes);

/* What --standby=cuda (driver) and nccl (all) do before a standby waits: makes the device `device` and the libraries ready.
 * A failure shows later, when it counts. */
enum warmth { WARM_DRIVER, WARM_ALL };

/* What a backend does for a process that may never have called it. */
struct device_offer {
    void (*warm)(const struct launch *l, int device, enum warmth warmth);
    /* The ranks of the new generation have met, and the dead are still dying: starts what all ranks take part in and will
     * want next (BOARD_JOIN_USES_DEVICE), and never waits. NULL: done, or better left for later. Else the word that has to
     * be something else than *seen before. */
    _Atomic uint32_t *(*begin)(struct launch *l, uint32_t *seen);
};

/* From a constructor of the backend, which is there before launch_join(). */
LAUNCH_API void launch_device_offer(const struct device_offer *offer);

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
