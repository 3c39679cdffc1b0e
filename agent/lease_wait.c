/* SPDX-License-Identifier: MIT */
#include "lease_wait.h"

#include "../proto/clock.h"
#include "signals.h"

#include <poll.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>

/* The kernel tells of a close just before it gives up the locks: we look at once, and again until it must have. */
#define AGAIN_FIRST_US 100
#define TOGETHER_NS 200000 /* in which a process that ends closes all of its files */
#define AGAIN_LAST_US 15000
#define BLIND_US 1000000

int lease_wait_start(struct lease_wait *w, const char *dir, const struct siglist *ends,
                     uint64_t limit_ms, struct err *err)
{
    sigset_t set;
    unsigned ignored = signals_ignored(); /* as nohup does; blocked ones would come all the same */
    *w = (struct lease_wait){.files = -1, .signals = -1};
    w->deadline_ns = clock_deadline_ns(limit_ms);
    sigemptyset(&set);
    for (unsigned i = 0; i < ends->n; i++)
        if (ends->sig[i] > 31 || !(ignored & 1u << ends->sig[i]))
            sigaddset(&set, ends->sig[i]);
    sigprocmask(SIG_BLOCK, &set, &w->old);
    w->files = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    w->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (w->files >= 0 && w->signals >= 0 && inotify_add_watch(w->files, dir, IN_CLOSE) >= 0)
        return 0;
    int rc = err_set_errno(err, -errno, "--wait: can't watch %s", dir);
    lease_wait_stop(w);
    return rc;
}

static void forget_processes(struct lease_wait *w)
{
    while (w->pids)
        close_fd(&w->pidfd[--w->pids]);
    w->blind = false;
}

void lease_wait_watch(struct lease_wait *w, pid_t pid)
{
    int fd = w->pids < LEASE_WAIT_PIDS ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (fd >= 0)
        w->pidfd[w->pids++] = fd;
    else
        w->blind = true; /* of another PID namespace, or just gone */
}

/* How long to sleep, at most. False: over. */
static bool next_look(const struct lease_wait *w, struct timespec *ret, bool *ret_for_ever)
{
    uint64_t now = clock_now_ns(), us = w->again_us ? w->again_us : w->blind ? BLIND_US : 0;
    uint64_t until = us ? now + us * 1000 : CLOCK_NEVER;
    if (now >= w->deadline_ns)
        return false;
    if (until > w->deadline_ns)
        until = w->deadline_ns;
    *ret_for_ever = until == CLOCK_NEVER;
    ret->tv_sec = (time_t)((until - now) / NS_PER_S);
    ret->tv_nsec = (long)((until - now) % NS_PER_S);
    return true;
}

static void drain(int fd)
{
    char events[4096];
    while (read(fd, events, sizeof events) > 0)
        ;
}

int lease_wait(struct lease_wait *w, bool *ret_process)
{
    struct pollfd p[2 + LEASE_WAIT_PIDS] = {{.fd = w->signals, .events = POLLIN},
                                            {.fd = w->files, .events = POLLIN}};
    struct timespec limit;
    bool for_ever;
    *ret_process = false;
    for (unsigned i = 0; i < w->pids; i++)
        p[2 + i] = (struct pollfd){.fd = w->pidfd[i], .events = POLLIN};
    if (!next_look(w, &limit, &for_ever))
        return LEASE_WAIT_OVER;
    int n = ppoll(p, 2 + w->pids, for_ever ? NULL : &limit, NULL);
    struct signalfd_siginfo info;
    if (n > 0 && read(w->signals, &info, sizeof info) == (ssize_t)sizeof info)
        return (int)info.ssi_signo;
    if (n > 0 && p[1].revents) {
        nanosleep(&(struct timespec){.tv_nsec = TOGETHER_NS}, NULL);
        drain(w->files);
        w->again_us = AGAIN_FIRST_US;
    } else if (n == 0 && w->again_us) {
        w->again_us = w->again_us < AGAIN_LAST_US ? 2 * w->again_us : 0;
    } else if (n == 0) {
        *ret_process = w->blind;
    }
    for (unsigned i = 0; n > 0 && i < w->pids; i++)
        *ret_process |= p[2 + i].revents != 0;
    if (*ret_process)
        forget_processes(w);
    return LEASE_WAIT_LOOK;
}

int lease_wait_detach(struct lease_wait *w)
{
    return w->deadline_ns ? take_fd(&w->files) : -1;
}

void lease_wait_stop(struct lease_wait *w)
{
    if (!w->deadline_ns)
        return;
    forget_processes(w);
    close_fd(&w->files);
    close_fd(&w->signals);
    sigprocmask(SIG_SETMASK, &w->old, NULL);
    w->deadline_ns = 0;
}
