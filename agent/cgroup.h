/* SPDX-License-Identifier: MIT */
/* A cgroup v2 leaf of the job's own, below the cgroup we are in, when that is ours to divide: everything in it can be
 * killed at once, however fast it forks. Never required: without one, process trees do (tree.c). Knows no process.
 *
 * The guard looks for the place, the agent makes the leaf; each of them can kill and remove it by name alone, so
 * that it goes whichever of the two is killed. */
#ifndef LAUNCH_AGENT_CGROUP_H
#define LAUNCH_AGENT_CGROUP_H

#include "../proto/base.h"

#include <limits.h>
#include <stdbool.h>

#define CGROUP_NAME_BYTES 96

struct cgroup {
    int parent_fd; /* owned: our own cgroup's directory; -1: no leaf can be had */
    int fd;        /* owned: the leaf's directory; -1: not made */
    char name[CGROUP_NAME_BYTES];
    char parent_path[PATH_MAX];
};

/* Where a leaf of this run would be; makes nothing. The name holds random digits: it is nobody else's. */
void cgroup_find(struct cgroup *c, const char *sysroot, const char *run_id);

/* No leaf can be had. */
void cgroup_none(struct cgroup *c);

/* Makes the leaf; c->fd stays -1 if that is refused. */
void cgroup_create(struct cgroup *c);

/* A fresh leaf in the place of one that was killed and is empty: in a killed one the kernel (seen on Linux 6.18) kills
 * whatever CLONE_INTO_CGROUP puts there afterwards, too. */
void cgroup_renew(struct cgroup *c);

/* SIGKILL to all in the leaf and below it (Linux 5.14). False: there is no leaf, or it can't. */
bool cgroup_kill(const struct cgroup *c);

/* Removes the leaf, with what the workers made below it. For a moment it waits for processes that are about to be
 * gone. False: it is still there. */
bool cgroup_remove(const struct cgroup *c);

/* Closes the descriptors; takes a closed one too. */
void cgroup_close(struct cgroup *c);

/* Path of the directory of the cgroup this process is in, "<sysroot>/sys/fs/cgroup/...", without a final slash.
 * controller: of cgroup v1 ("memory"); NULL: v2. False: there is none, or it is not visible here. */
bool cgroup_own(char path[PATH_MAX], const char *sysroot, const char *controller);

#endif
