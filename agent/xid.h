/* SPDX-License-Identifier: MIT */
/* What the NVIDIA driver said of a GPU while a worker ran: Xid errors, from the kernel's log (/dev/kmsg). NVML would have to be
 * listening before; the log tells afterwards, where it may be read. Knows no rank. */
#ifndef LAUNCH_AGENT_XID_H
#define LAUNCH_AGENT_XID_H

#include "../proto/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct xid {
    unsigned number;
    char pci[24];        /* "0000:18:00", as the driver names it */
    bool by_process;     /* the driver named this very process */
    const char *meaning; /* a phrase; NULL: not in our table */
    uint64_t at_us;      /* CLOCK_MONOTONIC */
};

/* Looks for the Xid since a moment (CLOCK_MONOTONIC) that the driver ascribes to the process, else for the last one.
 * False: there is none, or the log may not be read. */
bool xid_find(const char *sysroot, pid_t pid, uint64_t since_ns, struct xid *ret);

/* Every Xid of the log, the oldest first. -errno: the log may not be read, or there is none. */
MUST_CHECK int xid_read(const char *sysroot, pid_t pid,
                        void (*each)(void *user, const struct xid *xid), void *user);

/* Appends to how a worker ended: ", after Xid 31 (...) of GPU 0000:18:00". */
void xid_explain(const struct xid *xid, char *what, size_t size);

#endif
