/* SPDX-License-Identifier: MIT */
/* Writing to our own stdout or stderr without ever blocking, and without changing the open file
 * description that we share with the shell and with whoever started us: O_NONBLOCK set there would
 * break their programs. Knows bytes, not lines. */
#ifndef LAUNCH_AGENT_OUTLET_H
#define LAUNCH_AGENT_OUTLET_H

#include "../proto/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include <uv.h>

#define OUTLETS_MAX 2

enum outlet_way {
    OUTLET_PLAIN,  /* regular files, /dev/null, an own non-blocking description: just write */
    OUTLET_SOCKET, /* send with MSG_DONTWAIT */
    OUTLET_TIMID,  /* a foreign description that may block: ask poll, then write at most PIPE_BUF */
};

struct outlet {
    int fd;       /* what is written to */
    int own_fd;   /* the same when we opened it, else -1 */
    int error;    /* 0, or the errno that ended it */
    int epoll_fd; /* watches fd; -1 until the first wait */
    enum outlet_way way;
    bool waiting;
    uint64_t dropped; /* bytes that could not be written */
    uv_loop_t *loop;
    uv_poll_t poll; /* on epoll_fd */
    void (*on_writable)(struct outlet *o);
    void (*on_closed)(struct outlet *o);
};

/* fd: borrowed. on_writable: writing may go on; comes once for each outlet_wait. */
MUST_CHECK int outlet_init(struct outlet *o, uv_loop_t *loop, int fd,
                           void (*on_writable)(struct outlet *o), struct err *err);

/* Starts closing; the memory must stay until on_closed, which may come at once. */
void outlet_finish(struct outlet *o, void (*on_closed)(struct outlet *o));

/* Writes what the receiver takes now. Returns the bytes that are off the caller's hands: written
 * or, when the receiver is gone or has no room on its disk, dropped and counted. Less than all:
 * outlet_wait. */
size_t outlet_write(struct outlet *o, const struct iovec *iov, int n);

/* Calls on_writable when the receiver takes bytes again (or is gone, which the next write will
 * find). A failure ends the outlet: it could never be served again. */
void outlet_wait(struct outlet *o);

/* Without the loop: blocks until one of the outlets that wait takes bytes, at most ms, and ends
 * the waiting of those that do. on_writable is not called. */
void outlet_wait_blocking(struct outlet *const outlets[], unsigned n, int ms);

/* Nobody will ever read what is written to the descriptor. */
bool outlet_reader_gone(int fd);

#endif
