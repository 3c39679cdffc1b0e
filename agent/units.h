/* SPDX-License-Identifier: MIT */
/* What can be leased on this server: its GPUs and the MIG instances that somebody named, each with its lock file, and the
 * queue. Knows who has what, and decides nothing. */
#ifndef LAUNCH_AGENT_UNITS_H
#define LAUNCH_AGENT_UNITS_H

#include "holder.h"
#include "lockdir.h"
#include "turn.h"

#define UNITS_NAME_BYTES 96

struct units {
    struct lockdir dir;
    const char *sysroot;                  /* borrowed */
    unsigned n;                           /* GPUs first, by their place in the list */
    char name[GPU_MAX][UNITS_NAME_BYTES]; /* of the lock file */
    int fd[GPU_MAX];                      /* owned; -1: not open */
    int parent[GPU_MAX]; /* the GPU that a MIG instance is part of; -1: none, or not known */
    int queue;           /* owned; -1: not open */
    int of_set[GPU_MAX]; /* unit of an entry of the set; -1: can't be told */
};

/* Opens the directory and names the units: the GPUs of the list and what else is in the set, which may be NULL. Opens no
 * lock file. Errors of lockdir_open(); -E2BIG: more than GPU_MAX units. */
MUST_CHECK int units_open(struct units *u, const char *dir, const char *sysroot,
                          const struct gpu_list *gpus, const struct gpu_set *set, struct err *err);

/* Takes one that is zeroed, half open or closed, too. */
void units_close(struct units *u);

/* Opens the lock file of a unit, and that of its GPU, unless they are open; of all units and the queue. Errors of lockdir_file(). */
MUST_CHECK int units_open_one(struct units *u, unsigned unit, struct err *err);
MUST_CHECK int units_open_all(struct units *u, struct err *err);

/* Looks at all locks (all must be open): what is free, who holds the rest, who waits. Leaves table->near alone. */
void units_look(const struct units *u, struct turn_table *table);

/* The names of some units as a page of a holder has them; cut if there are too many. */
void units_list(const struct units *u, uint64_t which, char ret[HOLDER_UNITS_BYTES]);

#endif
