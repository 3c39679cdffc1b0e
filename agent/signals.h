/* SPDX-License-Identifier: MIT */
/* Signals as events of the loop: all are blocked, a signalfd delivers them with their sender. */
#ifndef LAUNCH_AGENT_SIGNALS_H
#define LAUNCH_AGENT_SIGNALS_H

#include "../proto/err.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <uv.h>

struct watch;

struct signals {
    int fd;              /* owned */
    struct watch *watch; /* owned */
    void (*on_signal)(void *user, const struct signalfd_siginfo *info);
    void *user;
};

/* Starts delivering. Every signal must already be blocked in this process. */
MUST_CHECK int signals_start(struct signals *s, uv_loop_t *loop,
                             void (*on_signal)(void *user, const struct signalfd_siginfo *info),
                             void *user, struct err *err);
void signals_stop(struct signals *s);

/* Sets the disposition to "ignored". */
void signals_ignore(int sig);

/* Sets the disposition to the default. */
void signals_default(int sig);

/* Ends the process by SIGINT: a shell goes on with its loop if a program that Ctrl-C was meant for merely returns 130.
 * PID 1 is not ended by it: then it returns. */
void signals_die_of_interrupt(void);

/* Bit n is set: signal n (1..31) is ignored now. */
unsigned signals_ignored(void);

/* "SIGSEGV", "SIGRTMIN+3", "signal 99". Returns name. */
#define SIGNALS_NAME_BYTES 24
const char *signals_name(int sig, char name[SIGNALS_NAME_BYTES]);

/* " (invalid memory access)", to be put behind the name; "" for signals that say nothing about the cause. */
const char *signals_meaning(int sig);

#endif
