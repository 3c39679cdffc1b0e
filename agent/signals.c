/* SPDX-License-Identifier: MIT */
#include "signals.h"

#include "watch.h"

#include <stdio.h>
#include <string.h>

static void on_readable(void *user)
{
    struct signals *s = user;
    struct signalfd_siginfo info;
    while (s->watch && read(s->fd, &info, sizeof info) == (ssize_t)sizeof info)
        s->on_signal(s->user, &info);
}

int signals_start(struct signals *s, uv_loop_t *loop,
                  void (*on_signal)(void *user, const struct signalfd_siginfo *info), void *user,
                  struct err *err)
{
    *s = (struct signals){.fd = -1, .on_signal = on_signal, .user = user};
    sigset_t all;
    sigfillset(&all);
    s->fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->fd < 0)
        return err_set_errno(err, -errno, "signalfd");
    s->watch = watch_start(loop, s->fd, on_readable, s);
    if (!s->watch) {
        close_fd(&s->fd); /* keeps errno */
        return err_set_errno(err, -errno, "signalfd");
    }
    return 0;
}

void signals_stop(struct signals *s)
{
    watch_stop(&s->watch);
    close_fd(&s->fd);
}

static void set_disposition(int sig, void (*handler)(int sig))
{
    struct sigaction action = {.sa_handler = handler};
    sigaction(sig, &action, NULL);
}

void signals_ignore(int sig)
{
    set_disposition(sig, SIG_IGN);
}

void signals_default(int sig)
{
    set_disposition(sig, SIG_DFL);
}

void signals_die_of_interrupt(void)
{
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    signals_default(SIGINT);
    sigprocmask(SIG_UNBLOCK, &interrupt, NULL);
    raise(SIGINT);
}

unsigned signals_ignored(void)
{
    unsigned mask = 0;
    for (int sig = 1; sig < 32; sig++) {
        struct sigaction now;
        if (sigaction(sig, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
            mask |= 1u << sig;
    }
    return mask;
}

const char *signals_name(int sig, char name[SIGNALS_NAME_BYTES])
{
    const char *abbreviation = sigabbrev_np(sig);
    if (abbreviation)
        snprintf(name, SIGNALS_NAME_BYTES, "SIG%s", abbreviation);
    else if (sig >= SIGRTMIN && sig <= SIGRTMAX)
        snprintf(name, SIGNALS_NAME_BYTES, "SIGRTMIN+%d", sig - SIGRTMIN);
    else
        snprintf(name, SIGNALS_NAME_BYTES, "signal %d", sig);
    return name;
}

const char *signals_meaning(int sig)
{
    switch (sig) {
    case SIGSEGV:
        return " (invalid memory access)";
    case SIGBUS:
        return " (memory that is not there: a full /dev/shm or a file cut short)";
    case SIGFPE:
        return " (division by zero or integer overflow)";
    case SIGILL:
        return " (illegal instruction)";
    case SIGABRT:
        return " (it aborted: a failed assertion or an uncaught exception)";
    case SIGTRAP:
        return " (breakpoint)";
    case SIGSYS:
        return " (forbidden system call)";
    case SIGKILL:
        return " (sent by somebody or by the kernel: no proof of either)";
    case SIGPIPE:
        return " (nobody reads what it wrote)";
    case SIGXCPU:
        return " (limit of CPU time)";
    case SIGXFSZ:
        return " (limit of file size)";
    case SIGTERM:
    case SIGINT:
    case SIGHUP:
    case SIGQUIT:
        return " (sent by somebody else than the launcher)";
    default:
        return "";
    }
}
