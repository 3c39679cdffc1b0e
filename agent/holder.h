/* SPDX-License-Identifier: MIT */
/* Who holds a lock file, and how: a lock on its first byte (exclusive or shared), and in its text a page for each holder,
 * guarded by a byte of its own. All are open-file-description locks of the kernel: they go with the last descriptor,
 * however its processes end, and can be looked at without being taken. What a page says is whatever its
 * holder wrote, or anybody else: it is shown and never believed. Knows no GPU and no directory. */
#ifndef LAUNCH_AGENT_HOLDER_H
#define LAUNCH_AGENT_HOLDER_H

#include "../proto/base.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HOLDER_PAGES 64 /* of one file: who comes later is not told of */
#define HOLDER_PAGE_BYTES 2048
#define HOLDER_UNITS_BYTES 1400

struct holder {
    char run[64]; /* run id */
    char program[64];
    unsigned uid;
    pid_t pid;       /* as its own PID namespace counts */
    int64_t started; /* seconds since 1970 */
    /* Of one that waits: */
    uint64_t ticket; /* lower ones go first */
    unsigned wants;  /* how many */
    char units
        [HOLDER_UNITS_BYTES]; /* of which: names with commas between; also all that a holder has */
};

enum holder_state { HOLDER_FREE, HOLDER_SHARED, HOLDER_EXCLUSIVE };

/* Whether somebody else holds the file, seen from this descriptor. A negative errno: not to be had. */
int holder_state(int fd);

/* 0; -EAGAIN: somebody else has it; -errno. Held until all copies of the descriptor are closed, or holder_unlock(). */
MUST_CHECK int holder_lock(int fd, bool exclusive);
void holder_unlock(int fd);

/* Writes down who holds it on the first page that is free. -ENOSPC: all are taken; -errno. */
MUST_CHECK int holder_sign(int fd, const struct holder *who);

/* Gives up what was signed with this descriptor. */
void holder_unsign(int fd);

/* The page, if somebody holds it now; control characters have become '?'. *page: where to look, moved on; begins at 0.
 * False: nobody is left. */
bool holder_next(int fd, unsigned *page, struct holder *ret);

/* Both pages are of one job. */
bool holder_same(const struct holder *a, const struct holder *b);

#endif
