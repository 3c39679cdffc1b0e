/* SPDX-License-Identifier: MIT */
/* CPUs that jobs of this server have for themselves: locks on the bytes of one file, byte i is CPU i. They belong to the open
 * file, so they last until the last process that inherited it has ended, however that comes. Knows no rank. */
#ifndef LAUNCH_AGENT_CPULOCK_H
#define LAUNCH_AGENT_CPULOCK_H

#include "../proto/err.h"
#include "bitset.h"

/* Opens the file in the directory of locks (lockdir.h; chosen: --lease-dir or NULL). *ret_fd: owned by the caller, close-on-exec. Errors of lockdir.h. */
MUST_CHECK int cpulock_open(const char *chosen, const char *sysroot, int *ret_fd, struct err *err);

/* Which of these others have locked. */
void cpulock_taken(int fd, const struct bitset *among, struct bitset *ret);

/* Locks these, all or none. False: somebody has one of them; what this file had locked before is given back, too. */
MUST_CHECK bool cpulock_take(int fd, const struct bitset *cpus);

#endif
