/* SPDX-License-Identifier: MIT */
/* What the NVIDIA driver says of a GPU in the kernel's log (/dev/kmsg): Xid errors. Knows no rank, and not what they mean
 * (gpu_fault.h). */
#ifndef LAUNCH_AGENT_XID_H
#define LAUNCH_AGENT_XID_H

#include "gpu_fault.h"

#include <stdbool.h>
#include <sys/types.h>

struct xid {
    unsigned number;
    struct gpu_fault fault; /* number 154 tells of an action: that is the fault then */
    uint64_t at_us;         /* about CLOCK_MONOTONIC */
    char pci[24];           /* "0000:18:00", as the driver names it */
    pid_t pid;              /* to which the driver ascribes it; 0: to none */
};

/* The log; from its end on: only what comes later. The caller's descriptor, close-on-exec and not blocking; -errno: there is
 * none, or it may not be read. sysroot: a described machine may have a plain file. */
int xid_open(const char *sysroot, bool from_end);

/* Hands on what is there by now, the oldest first. */
void xid_read(int fd, void (*on_xid)(void *user, const struct xid *xid), void *user);

/* The driver's name of a GPU means that one ("0000:18:00.0"). */
bool xid_is_of(const struct xid *xid, const char *pci);

#endif
