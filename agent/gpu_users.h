/* SPDX-License-Identifier: MIT */
/* Which processes are on which GPU right now, by NVML, in a helper process that is given up on after a while. */
#ifndef LAUNCH_AGENT_GPU_USERS_H
#define LAUNCH_AGENT_GPU_USERS_H

#include "gpu.h"

#include <sys/types.h>

#define GPU_USERS_MAX 256

struct gpu_user {
    unsigned gpu; /* in the list that was asked about */
    pid_t pid;    /* as NVML tells it: in a container it may be nobody's */
    uint64_t bytes;
};

struct gpu_users {
    unsigned n; /* those beyond GPU_USERS_MAX are left out */
    struct gpu_user user[GPU_USERS_MAX];
};

/* Asks about all NVIDIA GPUs of the list. No process of this machine has CUDA open: answers without asking. -ENODEV: NVML
 * can't tell (no library, no driver); -ETIMEDOUT: it has not told for 5 s. `users` is empty then. Call it from a
 * single-threaded process. */
MUST_CHECK int gpu_users_read(struct gpu_users *users, const char *sysroot,
                              const struct gpu_list *list);

/* parent[i]: the GPU of the list that MIG instance name[i] ("MIG-<uuid>") is part of; -1: not told. Errors as above. */
MUST_CHECK int gpu_users_find_mig(int parent[GPU_MAX], const char *sysroot,
                                  const struct gpu_list *list, const char *const *name, unsigned n);

/* A helper of nvml.h on its own: forks it, and gives the end of the pipe that it writes to and its pidfd, both
 * close-on-exec and the caller's. It dies with us. *ret_pid: for reaping. -errno. */
MUST_CHECK int gpu_users_spawn(void (*helper)(int fd, const char *sysroot, const char *const *pci,
                                              unsigned n),
                               const char *sysroot, const char *const *pci, unsigned n, int *ret_fd,
                               int *ret_pidfd, pid_t *ret_pid);

/* No process of this machine has CUDA open: then there is nothing to ask, and 12 ms are saved. */
bool gpu_users_none(const char *sysroot);

#endif
