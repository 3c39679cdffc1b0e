/* SPDX-License-Identifier: MIT */
/* See notify.h. Must never know what a sign of life means. */
#include "notify.h"

#include "procstate.h"
#include "watch.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#define MESSAGE_BYTES 4096   /* what is longer is cut */
#define MESSAGES_PER_WAKE 64 /* of one rank before the others' turn */
#define DEPTH_MAX 64         /* of processes below a worker */

/* ---- messages ---- */

static void keep_status(struct notify_rank *r, const char *text, size_t n)
{
    n = n < sizeof r->status ? n : sizeof r->status - 1;
    for (size_t i = 0; i < n; i++)
        r->status[i] = text[i] >= ' ' && text[i] < 127 ? text[i] : '?';
    r->status[n] = '\0';
}

static bool is_line(const char *line, size_t n, const char *text)
{
    return n == strlen(text) && memcmp(line, text, n) == 0;
}

static void parse_line(struct notify_rank *r, const char *line, size_t n)
{
    static const char STATUS[] = "STATUS=";
    const size_t status_n = sizeof STATUS - 1;
    if (is_line(line, n, "WATCHDOG=1")) {
        r->watchdogs++;
        return;
    }
    if (is_line(line, n, "READY=1"))
        r->ready = true;
    else if (is_line(line, n, "STOPPING=1"))
        r->stopping = true;
    else if (n >= status_n && memcmp(line, STATUS, status_n) == 0)
        keep_status(r, line + status_n, n - status_n);
    else
        return; /* sd_notify has more words than we have use for */
    r->messages++;
}

void notify_parse(struct notify_rank *r, const char *text, size_t bytes)
{
    const char *end = text + bytes;
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        parse_line(r, line, (size_t)(stop - line));
        line = stop + 1;
    }
}

/* ---- senders ---- */

/* Below this process, or gone already. */
static bool is_ours(pid_t pid)
{
    pid_t self = getpid();
    for (unsigned depth = 0; depth < DEPTH_MAX && pid > 1; depth++) {
        pid_t parent = procstate_parent(pid);
        if (parent == self)
            return true;
        if (parent == 0)
            return depth == 0;
        pid = parent;
    }
    return false;
}

static bool may_speak(struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
            continue;
        struct ucred who;
        memcpy(&who, CMSG_DATA(c), sizeof who);
        return who.uid == geteuid() && is_ours(who.pid);
    }
    return false;
}

/* False: nothing more is there. The control buffer has room for the credentials only: descriptors that come
 * along are closed by the kernel, which is also the answer that BARRIER=1 waits for. */
static bool receive(struct notify_rank *r)
{
    char text[MESSAGE_BYTES];
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct ucred))];
    struct iovec iov = {.iov_base = text, .iov_len = sizeof text};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(r->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return errno == EINTR;
    if (may_speak(&message))
        notify_parse(r, text, (size_t)n);
    else
        r->refused++;
    return true;
}

static void on_readable(void *user)
{
    struct notify_rank *r = user;
    for (unsigned i = 0; i < MESSAGES_PER_WAKE && receive(r); i++)
        ;
}

/* ---- life ---- */

static int bind_random(struct notify_rank *r, struct err *err)
{
    uint64_t id[2];
    if (getrandom(id, sizeof id, 0) != (ssize_t)sizeof id)
        return err_set_errno(err, -errno, "random name");
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int n = snprintf(r->address, sizeof r->address, "@launch-%016llx%016llx",
                     (unsigned long long)id[0], (unsigned long long)id[1]);
    memcpy(at.sun_path + 1, r->address + 1, (size_t)n - 1);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n);
    if (bind(r->fd, (struct sockaddr *)&at, bytes) < 0)
        return err_set_errno(err, -errno, "bind");
    return 0;
}

static int open_rank(struct notify_rank *r, uv_loop_t *loop, struct err *err)
{
    const int yes = 1;
    r->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* Before the name exists: no message without credentials is ever queued. */
    if (r->fd < 0 || setsockopt(r->fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) < 0)
        return err_set_errno(err, -errno, "socket");
    int rc = bind_random(r, err);
    if (rc < 0)
        return rc;
    r->watch = watch_start(loop, r->fd, on_readable, r);
    return r->watch ? 0 : err_set_errno(err, -errno, "watch");
}

/* One descriptor a rank more than a job without these sockets needs. */
static void reserve_descriptors(uint32_t n)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    rlim_t want = limit.rlim_cur + n;
    limit.rlim_cur = want < limit.rlim_max ? want : limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit); /* when that fails, socket() says so */
}

int notify_open(struct notify *n, uv_loop_t *loop, uint32_t ranks, struct err *err)
{
    *n = (struct notify){.n = ranks};
    n->ranks = calloc(ranks, sizeof *n->ranks);
    if (!n->ranks)
        return err_set_errno(err, -ENOMEM, "%u ranks", ranks);
    for (uint32_t i = 0; i < ranks; i++)
        n->ranks[i].fd = -1;
    reserve_descriptors(ranks);
    for (uint32_t i = 0; i < ranks; i++) {
        int rc = open_rank(&n->ranks[i], loop, err);
        if (rc < 0) {
            notify_close(n);
            return err_wrap(err, rc, "NOTIFY_SOCKET of rank %u", i);
        }
    }
    return 0;
}

void notify_close(struct notify *n)
{
    for (uint32_t i = 0; n->ranks && i < n->n; i++) {
        watch_stop(&n->ranks[i].watch);
        close_fd(&n->ranks[i].fd);
    }
    free(n->ranks);
    *n = (struct notify){0};
}

void notify_forget(struct notify_rank *r)
{
    r->ready = r->stopping = false;
    r->status[0] = '\0';
}

const char *notify_address(const struct notify *n, uint32_t rank)
{
    return n->ranks[rank].address;
}
