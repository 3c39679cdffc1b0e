/* SPDX-License-Identifier: MIT */
/* NCCL's files in /dev/shm that nobody has any more: nccl- and six characters, as mkstemp() makes them. Whoever makes one keeps it
 * open and mapped for as long as it lives, and the peer that maps it as well removes its name; so a rank that is killed while
 * they connect leaves it there, some megabytes for each peer. */
#ifndef LAUNCH_AGENT_NCCL_SHM_H
#define LAUNCH_AGENT_NCCL_SHM_H

#include <time.h>

/* Removes those of this user that were made since then (CLOCK_REALTIME_COARSE, as files are stamped) and that no process has open
 * or mapped, in this container or in any other: nobody can have a use for them. Where the kernel does not tell (no leases), none.
 * Returns how many. sysroot: before /dev/shm. */
unsigned nccl_shm_sweep(const char *sysroot, const struct timespec *since);

#endif
