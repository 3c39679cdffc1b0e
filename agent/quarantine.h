/* SPDX-License-Identifier: MIT */
/* GPUs that nobody shall use: the fault that a GPU had is written down in its lock file, behind the pages of its holders, where
 * it outlives the job. It holds until somebody clears it, or the server is booted again. Everybody may write there, for good
 * and for ill: what is no record of this boot is none, and its texts are shown and never believed. */
#ifndef LAUNCH_AGENT_QUARANTINE_H
#define LAUNCH_AGENT_QUARANTINE_H

#include "gpu.h"

struct quarantine {
    int64_t since;    /* seconds since 1970 */
    char run[64];     /* id of the job that wrote it */
    char reason[128]; /* "Xid 79 (the GPU has fallen off the bus)" */
};

/* Of an open lock file (units.h). False: the GPU is in no quarantine. Costs one system call then. */
bool quarantine_read(int fd, const char *sysroot, struct quarantine *ret);
/* -errno. Whoever waits for GPUs is woken when fd is closed. */
MUST_CHECK int quarantine_write(int fd, const char *sysroot, const struct quarantine *q);
MUST_CHECK int quarantine_erase(int fd);

/* Of a unit of GPUs, whose files are open; a MIG instance is in that of its GPU. */
struct units;
bool quarantine_of(const struct units *u, unsigned unit, struct quarantine *ret);

/* The same of a GPU whose lock file is not open. lease_dir: as in the settings; NULL: the server's. */
bool quarantine_holds(const char *lease_dir, const char *sysroot, const struct gpu *gpu,
                      struct quarantine *ret);
MUST_CHECK int quarantine_put(const char *lease_dir, const char *sysroot, const struct gpu *gpu,
                              const struct quarantine *q, struct err *err);

/* A descriptor, the caller's, that can be read when something was written to a lock file: then it is time to ask
 * again. (Read it empty before.) -errno. */
MUST_CHECK int quarantine_watch(const char *lease_dir, const char *sysroot);

#endif
