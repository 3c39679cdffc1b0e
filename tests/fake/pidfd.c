/* SPDX-License-Identifier: MIT */
/* Preloaded under valgrind, which knows no pidfds (3.19 answers ENOSYS): asks a process outside of it, at the socket that PIDFD_BROKER
 * names, to open one or to signal through one. See tests/e2e/valgrind.sh. */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static int reach_broker(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s", getenv("PIDFD_BROKER"));
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Sends number[] and, unless it is -1, fd; or receives them. What came over, or -1. */
static ssize_t pass(int broker, int number[2], int *fd, int with_fd,
                    ssize_t (*how)(int broker, struct msghdr *m))
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec bytes = {number, 2 * sizeof *number};
    struct msghdr m = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (with_fd) {
        m.msg_control = &control;
        m.msg_controllen = sizeof control;
    }
    memcpy(CMSG_DATA(&control.head), fd, sizeof *fd);
    ssize_t n = how(broker, &m);
    if (with_fd && n >= 0 && m.msg_controllen)
        memcpy(fd, CMSG_DATA(&control.head), sizeof *fd);
    return n;
}

static ssize_t give(int broker, struct msghdr *m)
{
    return sendmsg(broker, m, MSG_NOSIGNAL);
}

static ssize_t take(int broker, struct msghdr *m)
{
    return recvmsg(broker, m, MSG_CMSG_CLOEXEC);
}

/* pidfd_open(pid): {pid, 0}, answered by {0, 0} with a descriptor; pidfd_send_signal(fd, sig): {-1, sig} with the
 * descriptor, answered by {0, 0}; or by {errno, 0}. */
static long ask(int pid, int sig, int pidfd)
{
    int number[2] = {pid, sig}, fd = pidfd, broker = reach_broker();
    if (broker < 0)
        return -1;
    if (pass(broker, number, &fd, pidfd >= 0, give) < 0 ||
        pass(broker, number, &fd, pidfd < 0, take) < 0)
        number[0] = EIO;
    close(broker);
    errno = number[0];
    return number[0] ? -1 : pidfd >= 0 ? 0 : fd;
}

long syscall(long number, ...)
{
    va_list rest;
    long a[6];
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_pidfd_open)
        return ask((int)a[0], 0, -1);
    if (number == SYS_pidfd_send_signal)
        return ask(-1, (int)a[1], (int)a[0]);
    long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
