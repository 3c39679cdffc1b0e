/* SPDX-License-Identifier: MIT */
/* Sleeping until a GPU may have become free: a descriptor of a lock file was closed, a process that used one has ended.
 * Between them nothing runs. Knows no GPU and no queue. */
#ifndef LAUNCH_AGENT_LEASE_WAIT_H
#define LAUNCH_AGENT_LEASE_WAIT_H

#include "../config/siglist.h"
#include "../proto/err.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define LEASE_WAIT_PIDS 64

enum { LEASE_WAIT_LOOK = 0, LEASE_WAIT_OVER = -1 };

struct lease_wait {
    int files;                  /* owned: inotify of the directory */
    int signals;                /* owned */
    int pidfd[LEASE_WAIT_PIDS]; /* owned */
    unsigned pids;
    bool blind; /* a process that we can't watch: look once a second */
    sigset_t old;
    uint64_t deadline_ns;
    uint64_t again_us; /* an event came so short a time ago; 0: none */
};

/* Events count from now on. ends: signals that end the wait. limit_ms: of the whole wait, UINT64_MAX: none. */
MUST_CHECK int lease_wait_start(struct lease_wait *w, const char *dir, const struct siglist *ends,
                                uint64_t limit_ms, struct err *err);

/* The end of that process is an event, until the next one of this kind. */
void lease_wait_watch(struct lease_wait *w, pid_t pid);

/* LEASE_WAIT_LOOK: look again; *ret_process: because a watched process has ended, or may have. LEASE_WAIT_OVER: the
 * limit has passed. n: signal n came. */
MUST_CHECK int lease_wait(struct lease_wait *w, bool *ret_process);

/* A descriptor that is to be closed, by the caller, when there is time: the kernel takes some 15 ms to forget a watch.
 * -1: there is none. */
MUST_CHECK int lease_wait_detach(struct lease_wait *w);

/* Takes a zeroed one too. */
void lease_wait_stop(struct lease_wait *w);

#endif
