/* SPDX-License-Identifier: MIT */
/* See outlet.h. Must never know ranks or lines. */
#include "outlet.h"

#include "pipe.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* An open file description of our own for the same pipe or terminal. Negative: there is none. */
static int reopen(int fd)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static bool may_block(const struct stat *st, int fd)
{
    return S_ISFIFO(st->st_mode) || (S_ISCHR(st->st_mode) && isatty(fd));
}

int outlet_init(struct outlet *o, uv_loop_t *loop, int fd, void (*on_writable)(struct outlet *o),
                struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "output: descriptor %d", fd);
    *o = (struct outlet){.fd = fd, .own_fd = -1, .epoll_fd = -1, .loop = loop};
    o->on_writable = on_writable;
    if (S_ISSOCK(st.st_mode)) {
        o->way = OUTLET_SOCKET;
    } else if (may_block(&st, fd)) {
        o->own_fd = reopen(fd);
        o->way = o->own_fd >= 0 ? OUTLET_PLAIN : OUTLET_TIMID;
        o->fd = o->own_fd >= 0 ? o->own_fd : fd;
    }
    return 0;
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct outlet *o = CONTAINER_OF(handle, struct outlet, poll);
    o->on_closed(o);
}

void outlet_finish(struct outlet *o, void (*on_closed)(struct outlet *o))
{
    bool has_handle = o->epoll_fd >= 0;
    o->on_closed = on_closed;
    if (has_handle)
        uv_close((uv_handle_t *)&o->poll, on_poll_closed);
    close_fd(&o->epoll_fd);
    close_fd(&o->own_fd);
    if (!has_handle)
        on_closed(o);
}

static ssize_t write_timidly(int fd, const struct iovec *iov)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int rc = poll(&p, 1, 0);
    if (rc <= 0) {
        errno = rc == 0 ? EAGAIN : errno;
        return -1;
    }
    return write(fd, iov->iov_base, iov->iov_len < PIPE_BUF ? iov->iov_len : PIPE_BUF);
}

static ssize_t write_once(const struct outlet *o, const struct iovec *iov, int n)
{
    struct msghdr message = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n};
    switch (o->way) {
    case OUTLET_SOCKET:
        return sendmsg(o->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    case OUTLET_TIMID:
        return write_timidly(o->fd, iov);
    case OUTLET_PLAIN:
        break;
    }
    return writev(o->fd, iov, n);
}

static bool is_full_disk(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

#define OUTLET_IOV_MAX 3

size_t outlet_write(struct outlet *o, const struct iovec *iov, int n)
{
    struct iovec rest[OUTLET_IOV_MAX];
    memcpy(rest, iov, (size_t)n * sizeof *iov);
    struct iovec *v = rest, *end = rest + n;
    size_t done = 0;
    for (;;) {
        while (v < end && v->iov_len == 0)
            v++;
        if (v == end)
            return done;
        ssize_t w = o->error ? -1 : write_once(o, v, (int)(end - v));
        if (w < 0 && !o->error && errno == EINTR)
            continue;
        if (w < 0 && !o->error && (errno == EAGAIN || errno == EWOULDBLOCK))
            return done;
        if (w < 0) {
            o->error = o->error || is_full_disk(errno) ? o->error : errno;
            for (; v < end; v++) {
                o->dropped += v->iov_len;
                done += v->iov_len;
            }
            return done;
        }
        done += (size_t)w;
        for (; v < end && (size_t)w >= v->iov_len; v++)
            w -= (ssize_t)v->iov_len;
        if (v < end) {
            v->iov_base = (char *)v->iov_base + w;
            v->iov_len -= (size_t)w;
        }
    }
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status; /* an error here is an error of the next write as well */
    (void)events;
    struct outlet *o = CONTAINER_OF(poll, struct outlet, poll);
    uv_poll_stop(poll);
    o->waiting = false;
    o->on_writable(o);
}

/* libuv would set O_NONBLOCK on any descriptor that it polls, so it gets an epoll descriptor of
 * ours that watches the outlet. */
static int watch(struct outlet *o)
{
    pipe_widen(o->fd);
    AUTO_FD epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0)
        return -errno;
    struct epoll_event event = {.events = EPOLLOUT};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, o->fd, &event) < 0)
        return -errno;
    int rc = uv_poll_init(o->loop, &o->poll, epoll_fd);
    if (rc == 0)
        o->epoll_fd = take_fd(&epoll_fd);
    return rc;
}

void outlet_wait(struct outlet *o)
{
    if (o->waiting || o->error)
        return;
    int rc = o->epoll_fd >= 0 ? 0 : watch(o);
    if (rc == 0)
        rc = uv_poll_start(&o->poll, UV_READABLE, on_poll);
    if (rc < 0)
        o->error = -rc;
    else
        o->waiting = true;
}

void outlet_wait_blocking(struct outlet *const outlets[], unsigned n, int ms)
{
    struct pollfd p[OUTLETS_MAX];
    for (unsigned i = 0; i < n; i++)
        p[i] = (struct pollfd){.fd = outlets[i]->waiting ? outlets[i]->fd : -1, .events = POLLOUT};
    if (poll(p, n, ms) <= 0)
        return;
    for (unsigned i = 0; i < n; i++) {
        if (!p[i].revents)
            continue;
        uv_poll_stop(&outlets[i]->poll);
        outlets[i]->waiting = false;
    }
}

bool outlet_reader_gone(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    return poll(&p, 1, 0) == 1 && (p.revents & (POLLERR | POLLHUP));
}
