/* SPDX-License-Identifier: MIT */
/* The directory of lock files that all jobs of a server share, across users and containers. Whoever may write to it
 * may also have put something there for us to stumble over, so it is never trusted: only directories in which nobody
 * else can replace our files are taken, and only plain files with one name are opened. Knows no GPU. */
#ifndef LAUNCH_AGENT_LOCKDIR_H
#define LAUNCH_AGENT_LOCKDIR_H

#include "../proto/err.h"

#include <limits.h>
#include <stdbool.h>

struct lockdir {
    int fd;              /* owned; -1: closed */
    char path[PATH_MAX]; /* empty: closed */
};

/* chosen: the user's choice, must be there; NULL: below sysroot the first of /run/launch, /run/lock and /tmp that will
 * do, which is the same one for every user. A directory will do if it belongs to root (or, a chosen one, to us) and only
 * its owner can remove the files of others: the sticky bit, or nobody else may write.
 * -EPERM: it will not do; -ENOENT: there is none; -errno. */
MUST_CHECK int lockdir_open(struct lockdir *dir, const char *chosen, const char *sysroot,
                            struct err *err);

/* Takes a closed one too. */
void lockdir_close(struct lockdir *dir);

/* Opens the lock file of that name, which is made if it is not there: mode 0666, as every user's job must be able to
 * write down that it holds it. *ret_fd: owned by the caller, close-on-exec. -EPERM: what has that name is no lock file;
 * -EACCES: it, or the directory, can't be written. */
MUST_CHECK int lockdir_file(const struct lockdir *dir, const char *name, int *ret_fd,
                            struct err *err);

/* Whether the name still leads to the open file: its owner can remove it. */
bool lockdir_is_current(const struct lockdir *dir, const char *name, int fd);

#endif
