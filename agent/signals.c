/* SPDX-License-Identifier: MIT */
#include "signals.h"

#include <stdio.h>
#include <string.h>

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct signals *s = CONTAINER_OF(poll, struct signals, poll);
    (void)status;
    (void)events;
    struct signalfd_siginfo info;
    while (s->fd >= 0 && read(s->fd, &info, sizeof info) == (ssize_t)sizeof info)
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
    uv_poll_init(loop, &s->poll, s->fd);
    uv_poll_start(&s->poll, UV_READABLE, on_readable);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct signals *s = CONTAINER_OF((uv_poll_t *)handle, struct signals, poll);
    close_fd(&s->fd);
}

void signals_stop(struct signals *s)
{
    if (s->fd >= 0 && !uv_is_closing((uv_handle_t *)&s->poll))
        uv_close((uv_handle_t *)&s->poll, on_closed);
}

void signals_ignore(int sig)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(sig, &ignore, NULL);
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
