/* SPDX-License-Identifier: MIT */
/* Tells a kill by the kernel's out-of-memory killer from every other SIGKILL, by the counter of the memory cgroup:
 * memory.events of v2, memory.oom_control of v1. Says nothing without that proof. */
#ifndef LAUNCH_AGENT_OOM_H
#define LAUNCH_AGENT_OOM_H

#include "cgroup.h"

#include <stddef.h>

struct oom {
    int fd;                 /* owned: the counter's file; -1: there is none */
    char path[PATH_MAX];    /* of the cgroup, for messages */
    unsigned long long was; /* kills up to now, as far as they were told */
};

/* Finds the counter that moves when a process of the leaf is killed: the leaf's own, if the memory controller reaches
 * so far, else that of the cgroup we are in. leaf: borrowed; may be one that could not be made. */
void oom_open(struct oom *oom, const char *sysroot, const struct cgroup *leaf);

/* Forgets what happened up to now: the next attempt begins, maybe in a new leaf (cgroup_renew()), whose counter is
 * another file. */
void oom_rebase(struct oom *oom, const char *sysroot, const struct cgroup *leaf);

/* Writes into `what`, how a worker ended, that the out-of-memory killer did it, or ended another process before; if the
 * counter has moved since it was last looked at; then returns true. killed: the worker ended by a SIGKILL that is not ours. */
bool oom_explain(struct oom *oom, bool killed, char *what, size_t size);

/* Takes a closed one too. */
void oom_close(struct oom *oom);

#endif
