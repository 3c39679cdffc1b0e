/* SPDX-License-Identifier: MIT */
/* See ras.h. The conversation; what the answer says: ras_read.c. */
#include "ras.h"

#include "../../proto/clock.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define LEG_S 2 /* how long NCCL's processes wait for one another */
#define HOST_BYTES 64

void ras_finish(struct ras *ras)
{
    free(ras->answer);
    ras->answer = NULL;
}

/* ---- the address ---- */

/* Numbers only: to look a name up may take minutes. */
static int find_address(const char *text, struct addrinfo **ret, struct err *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    const char *colon = strrchr(text, ':');
    char host[HOST_BYTES];
    size_t n = colon ? (size_t)(colon - text) : 0;
    bool bracket = n >= 2 && text[0] == '[' && text[n - 1] == ']';
    snprintf(host, sizeof host, "%.*s", (int)(bracket ? n - 2 : n), text + bracket);
    if (strcmp(host, "localhost") == 0)
        snprintf(host, sizeof host, "127.0.0.1");
    if (n == 0 || n >= sizeof host || getaddrinfo(host, colon + 1, &hints, ret) != 0)
        return err_set(err, -EINVAL, "'%.64s' is no numeric address with a port", text);
    return 0;
}

/* ---- the conversation ---- */

static int wait_for(int fd, short events, uint64_t until_ns)
{
    struct pollfd p = {.fd = fd, .events = events};
    for (;;) {
        uint64_t now = clock_now_ns();
        if (now >= until_ns)
            return -ETIMEDOUT;
        int n = poll(&p, 1, (int)((until_ns - now) / NS_PER_MS) + 1);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
    }
}

static int connect_to(const struct addrinfo *to, uint64_t until_ns)
{
    AUTO_FD fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, to->ai_addr, to->ai_addrlen) < 0) {
        int error = errno;
        socklen_t n = sizeof error;
        if (error == EINPROGRESS) {
            int rc = wait_for(fd, POLLOUT, until_ns);
            if (rc < 0)
                return rc;
            if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
                return -errno;
        }
        if (error)
            return -error;
    }
    return take_fd(&fd);
}

/* An old release answers SET FORMAT with an error and goes on in text. */
static int send_request(int fd)
{
    char text[128];
    int n = snprintf(text, sizeof text,
                     "CLIENT PROTOCOL 2\nTIMEOUT %d\nSET FORMAT json\nVERBOSE STATUS\n", LEG_S);
    ssize_t sent = send(fd, text, (size_t)n, MSG_NOSIGNAL);
    return sent == n ? 0 : sent < 0 ? -errno : -EIO;
}

/* Until the other side closes, or is too late, or says too much. */
static int receive(int fd, uint64_t until_ns, char *answer, size_t *ret_n)
{
    size_t n = 0;
    int rc = 0;
    while (n < RAS_ANSWER_MAX && (rc = wait_for(fd, POLLIN, until_ns)) == 0) {
        ssize_t got = recv(fd, answer + n, RAS_ANSWER_MAX - n, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
            rc = got < 0 ? -errno : 0;
            break;
        }
        n += got > 0 ? (size_t)got : 0;
    }
    *ret_n = n;
    answer[n] = '\0';
    return n > 0 ? 0 : rc < 0 ? rc : -EPIPE;
}

int ras_ask(struct ras *ret, const char *address, unsigned ms, struct err *err)
{
    uint64_t until_ns = clock_deadline_ns(ms);
    struct addrinfo *to = NULL;
    size_t n;
    *ret = (struct ras){0};
    int rc = find_address(address, &to, err);
    if (rc < 0 || !to)
        return rc;
    AUTO_FD fd = connect_to(to, until_ns);
    freeaddrinfo(to);
    char *answer = malloc(RAS_ANSWER_MAX + 1);
    rc = fd < 0 ? fd : answer ? send_request(fd) : -ENOMEM;
    if (rc == 0)
        rc = receive(fd, until_ns, answer, &n);
    if (rc == 0) {
        ras_read(ret, answer, n);
        return 0;
    }
    free(answer);
    if (rc == -ETIMEDOUT)
        return err_set(err, rc, "%s: no answer within %.1f s", address, ms / 1000.0);
    return err_set_errno(err, rc, "%s", address);
}

/* ---- words ---- */

void ras_describe(const struct ras_note *note, char *text, size_t size)
{
    char where[64] = "";
    if (note->comm[0])
        snprintf(where, sizeof where, " of communicator %s", note->comm);
    switch (note->kind) {
    case RAS_BEHIND:
        snprintf(text, size, "%s%s: launched %" PRIu64 ", others %" PRIu64, note->operation, where,
                 note->count, note->most);
        break;
    case RAS_STARTING:
        snprintf(text, size, "still inside the initialisation%s", where);
        break;
    case RAS_ERROR:
        snprintf(text, size, "NCCL error %" PRIu64 "%s", note->count, where);
        break;
    case RAS_SILENT:
        snprintf(text, size, "does not answer NCCL%s: stopped, or gone", where);
        break;
    default:
        snprintf(text, size, "has not answered NCCL for a minute and counts as dead%s", where);
        break;
    }
}
