/* SPDX-License-Identifier: MIT */
/* The few macros every part shares: descriptors that close themselves, ownership, must-check.
 * Must never grow a dependency: everything includes this. */
#ifndef LAUNCH_PROTO_BASE_H
#define LAUNCH_PROTO_BASE_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define LAUNCH_RELEASE "0.1.0"
#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define CACHE_LINE 64

/* Closes *fd if it is open and marks it closed. Keeps errno. */
static inline void close_fd(int *fd)
{
    if (*fd >= 0) {
        int saved = errno;
        close(*fd);
        errno = saved;
    }
    *fd = -1;
}

/* A local descriptor that is closed when it goes out of scope, unless it was taken. */
#define AUTO_FD __attribute__((cleanup(close_fd))) int

/* Moves the descriptor out of *fd: the caller owns the result, *fd is empty. */
static inline int take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

static inline void free_ptr(void *pp)
{
    free(*(void **)pp);
}

/* A local heap pointer that is freed when it goes out of scope. */
#define AUTO_FREE __attribute__((cleanup(free_ptr)))

#endif
