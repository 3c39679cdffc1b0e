/* SPDX-License-Identifier: MIT */
/* What NVML knows of a server's GPUs at one moment: links, P2P, modes, users. It is asked in a helper process (nvml_lib.h)
 * that writes into memory shared with us, so that a driver that hangs or crashes costs facts and nothing else. */
#ifndef LAUNCH_AGENT_NVML_FACTS_H
#define LAUNCH_AGENT_NVML_FACTS_H

#include "gpu.h"
#include "nvml_health.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define NVML_LINKS_MAX 18
#define NVML_NODE_WORDS 16
#define NVML_USERS_MAX 16

/* The letters of --p2p, in the order of NVML's numbers. */
enum nvml_p2p { P2P_READ, P2P_WRITE, P2P_NVLINK, P2P_ATOMICS, P2P_PCI, P2P_KINDS_N };

/* What is asked for, a set. On four H200 the matrix takes 0.2 ms, the rest 20 ms, P2P 1.7 ms for each kind and pair. */
#define NVML_MATRIX (1u << 0)  /* links, levels, NUMA ids */
#define NVML_REST (1u << 1)    /* all that is not P2P */
#define NVML_ONE_WAY (1u << 2) /* P2P from the first GPU of a pair to the second only */
#define NVML_P2P(kind) (1u << (3 + (kind)))
#define NVML_HEALTH (1u << 8) /* for those who judge it */
#define NVML_ALL (~(NVML_ONE_WAY | NVML_HEALTH))

/* A fact that NVML does not tell, or was not asked for, is -1. */
struct nvml_gpu {
    char error[96]; /* why NVML knows nothing of this GPU; empty: it does */
    char name[96];
    int cc_major, cc_minor, numa_id, mig, ecc, compute_mode, persistence;
    int fabric, fabric_status,
        fabric_health;        /* 0 no fabric, 1 not started, 2 in progress, 3 completed */
    int most_gen, most_width; /* what the link is now, /sys tells as well and faster */
    uint64_t memory_bytes;
    unsigned long nodes[NVML_NODE_WORDS]; /* affinity; all zero: not told */
    /* NVLink: links that are up; of those, how many lead to each GPU; or all of them to switches. */
    int links, link_version, link_mbps;
    bool switched;
    uint8_t links_to[GPU_MAX];
    int8_t level[GPU_MAX];            /* nvmlDeviceGetTopologyCommonAncestor */
    int8_t p2p[P2P_KINDS_N][GPU_MAX]; /* nvmlDeviceGetP2PStatus */
    struct nvml_health health;
    unsigned users_n; /* may be more than fit */
    struct nvml_user {
        pid_t pid;
        uint64_t bytes;
        char name[16]; /* of the program; not NVML's, filled in by topology.c */
    } user[NVML_USERS_MAX];
};

struct nvml_facts {
    bool usable;
    char why[128];     /* not usable: why */
    char library[256]; /* the file that was loaded; empty: none */
    unsigned n;
    struct nvml_gpu gpu[GPU_MAX]; /* in the order of the list that was given */
};

struct nvml_ask;

/* Starts the helper, which asks for the set `want`; the caller may do other work meanwhile. `gpus` and `sysroot` must outlive the question. NULL: no memory, no
 * process to be had. */
struct nvml_ask *nvml_ask_start(const struct gpu_list *gpus, const char *sysroot, unsigned want);

/* Waits for it, for limit_ms at most, and kills it. It is not reaped: that is for a caller that lives on, and else for init.
 * Returns what it found (the caller frees it with free()); facts that did not come in time are missing, and `why` says so.
 * NULL: no memory. */
struct nvml_facts *nvml_ask_finish(struct nvml_ask *ask, unsigned limit_ms);

#endif
