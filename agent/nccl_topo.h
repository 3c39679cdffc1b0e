/* SPDX-License-Identifier: MIT */
/* What NCCL finds out about a GPU's place in the server, for those that ask again. A rank that heals would ask NVML for it, once
 * for each NVLink and more, under locks that all ranks need: 4 ranks on an H200 had a communicator after 69 ms, now after 29 (NCCL 2.28). --standby=nccl has asked
 * already as it got warm: what NCCL writes then (NCCL_TOPO_DUMP_FILE) is what the others read (NCCL_TOPO_FILE).
 * Both are files in memory, reached through our descriptors: nothing is left, whoever is killed. */
#ifndef LAUNCH_AGENT_NCCL_TOPO_H
#define LAUNCH_AGENT_NCCL_TOPO_H

#include "../config/spec.h"
#include "gpu.h"

#include <stdbool.h>

#define NCCL_TOPO_PATH_BYTES 64

struct nccl_topo {
    unsigned gpus;     /* 0: NCCL looks for itself */
    uint32_t standbys; /* likewise */
    int file[GPU_MAX]; /* owned: of each of the job's GPUs; always one that NCCL can read */
    int *draft;        /* owned: of each standby; -1: none */
};

/* All but nccl_topo_init() take NULL: nothing.
 *
 * Of a job with NVIDIA's GPUs and standbys of nccl, unless the user, an nccl.conf, or the server (below sysroot) has a
 * file of that kind for NCCL already; else, and without memory or descriptors, nothing is given to anybody. */
void nccl_topo_init(struct nccl_topo *t, const struct job_spec *spec, const struct gpu_list *gpus,
                    const struct gpu_set *set, uint32_t standbys, const char *sysroot,
                    char *const *env);

/* What NCCL shall read in a rank; NULL: nothing. Ranks without end go round the list of GPUs. */
const char *nccl_topo_file(const struct nccl_topo *t, uint32_t rank,
                           char text[NCCL_TOPO_PATH_BYTES]);

/* Where a standby shall write what it finds: a new file; NULL: nowhere. */
const char *nccl_topo_draft(struct nccl_topo *t, uint32_t standby, char text[NCCL_TOPO_PATH_BYTES]);

/* A standby has got warm: what it wrote, if it is whole, is what ranks on that rank's GPU read from now on. Only the first
 * call after nccl_topo_draft() does anything. */
void nccl_topo_publish(struct nccl_topo *t, uint32_t standby, uint32_t rank);

void nccl_topo_finish(struct nccl_topo *t);

#endif
