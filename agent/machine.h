/* SPDX-License-Identifier: MIT */
/* The CPUs and memory nodes of the server, and what of them this process may use. Knows no GPU and no job: who runs
 * where is place.c's.
 *
 * The kernel's /sys says all that is needed and is read in well under a millisecond, so it is the only source for the
 * machine we run on. hwloc is for machines that somebody described: with HWLOC_XMLFILE or HWLOC_SYNTHETIC in the
 * environment it is loaded (not linked: it costs every start of a program) and fills the same struct. */
#ifndef LAUNCH_AGENT_MACHINE_H
#define LAUNCH_AGENT_MACHINE_H

#include "../proto/err.h"
#include "bitset.h"

/* All of one machine's numbers are the kernel's. */
struct machine_cpu {
    int node;    /* NUMA node */
    int package; /* socket; -1: not known */
    int core;    /* lowest CPU of its core, itself without hyperthreads */
    int cache;   /* lowest CPU of those with which it shares its largest cache */
};

struct machine {
    struct bitset cpus;    /* online */
    struct bitset allowed; /* of these, what this process may use: mask and cpuset */
    struct bitset nodes;   /* online */
    struct bitset memory;  /* nodes whose memory this process may use */
    /* The node with CPUs that is nearest to a node: itself, if it has some. -1: no such node. */
    int near[BITSET_MAX];
    struct machine_cpu cpu[BITSET_MAX]; /* of members of `cpus` */
    unsigned threads; /* allowed ones of a core, where cores were not read; 1 where they were */
};

/* What there is to be read beyond CPUs and nodes, each a file or more a CPU. Unread, a package is -1, a core and a cache
 * are the CPU's own. */
enum machine_detail { MACHINE_PACKAGES = 1, MACHINE_CORES = 2, MACHINE_CACHES = 4 };

/* details: of enum machine_detail, or-ed. *ret: heap, free() it. What can't be read of /sys does not divide: a
 * machine without NUMA files is one node, 0. The mask is that of /proc/self/status below sysroot; without that file, and
 * on a described machine (unless HWLOC_THISSYSTEM=1), every CPU is allowed. Errors: -ENOMEM; -EINVAL a description for hwloc that it does not take; -ENOSYS a
 * description, and there is no hwloc. */
MUST_CHECK int machine_read(struct machine **ret, const char *sysroot, unsigned details,
                            struct err *err);

/* Whether there is more than one node with CPUs; one file is read. */
bool machine_has_nodes(const char *sysroot);

/* The variable that describes another machine ("HWLOC_XMLFILE", "HWLOC_SYNTHETIC"); NULL: none does. */
const char *machine_described(void);

/* In hwloc.c. Fills cpus, nodes, memory, near and all details of a machine that is blank but for `allowed`, from what
 * the variable describes; NULL: from the machine we run on, as hwloc sees it. Errors: as machine_read(). */
MUST_CHECK int machine_read_hwloc(struct machine *m, const char *variable, struct err *err);

#endif
