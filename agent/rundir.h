/* SPDX-License-Identifier: MIT */
/* Directories of control sockets: $XDG_RUNTIME_DIR/launch, else /dev/shm/launch-<uid>, the owner's only. What is to outlive
 * a login goes to /tmp/launch-<uid>, as logind empties both. Why not always: to remove a socket from a disk takes
 * milliseconds, from memory microseconds.
 * Sockets in them are named <run id>.<8 hex digits>. Knows files; speaks to no socket. */
#ifndef LAUNCH_AGENT_RUNDIR_H
#define LAUNCH_AGENT_RUNDIR_H

#include "../proto/err.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#define RUNDIR_NAME_BYTES 80
#define RUNDIR_STRANGERS_MAX 256 /* files of another user's directory that are looked at */

/* A socket by directory and name. */
struct rundir_place {
    char dir[PATH_MAX]; /* "": there is none */
    char name[RUNDIR_NAME_BYTES];
    uid_t owner; /* whose directory it is; others must not be able to enter it */
};

/* Where the socket of a new run would be; makes nothing. sysroot: before /run, /dev/shm and /tmp.
 * outlives_session: not where a logout removes it. */
void rundir_choose(struct rundir_place *ret, const char *sysroot, const char *run_id,
                   bool outlives_session);

/* Makes the directory unless it is there. -EPERM: what is there is not ours alone. */
MUST_CHECK int rundir_make(const struct rundir_place *place, struct err *err);

/* Removes the socket, and the directory when it was the last one. */
void rundir_remove(const struct rundir_place *place);

/* The address to bind or connect to. Paths too long for one, and other users' directories, which they may replace at any
 * moment, go through *ret_fd (taken by the caller, else -1), which must stay open until then. -EPERM: as above. */
MUST_CHECK int rundir_address(const struct rundir_place *place, struct sockaddr_un *ret,
                              int *ret_fd);

/* Calls visit for every socket of every directory that the caller may look into: root sees everybody's, of each of theirs
 * the first RUNDIR_STRANGERS_MAX files only. An error names the first own directory that is not fit to be used, or else one that
 * holds more than that (-E2BIG); the others are walked all the same. */
MUST_CHECK int rundir_walk(const char *sysroot,
                           void (*visit)(void *user, const struct rundir_place *place), void *user,
                           struct err *err);

/* Nobody listens there any more: removes it, unless it is so young that its job may be about to. */
void rundir_sweep(const struct rundir_place *place);

#endif
