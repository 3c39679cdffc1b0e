/* SPDX-License-Identifier: MIT */
/* What NCCL finds out about a GPU's place in the server, for those that ask again. A rank that heals would ask NVML for it, once
 * for each NVLink and more, under locks that all ranks need: 4 ranks on an H200 had a communicator after 69 ms, now after 29
 * (NCCL 2.28). --standby=nccl has asked already as it got warm: what NCCL writes then (NCCL_TOPO_DUMP_FILE) is what the others
 * read (NCCL_TOPO_FILE).
 *
 * All ranks of a generation read, or none. NCCL (2.22 and later) joins what each of them knows, and does not take a CPU, switch or
 * NIC from a file for the one that another rank has found by itself: the server would have all of them twice.
 *
 * Both are files in memory, reached through our descriptors: nothing is left, whoever is killed. */
#ifndef LAUNCH_AGENT_NCCL_TOPO_H
#define LAUNCH_AGENT_NCCL_TOPO_H

#include "../config/spec.h"
#include "gpu.h"

#include <stdbool.h>

#define NCCL_TOPO_PATH_BYTES 64
#define NCCL_TOPO_FILES 3 /* descriptors for each GPU with a standby */

struct nccl_topo {
    unsigned gpus;      /* 0: NCCL looks for itself */
    uint32_t standbys;  /* likewise */
    int nothing;        /* owned: a server in which NCCL finds all by itself */
    int found[GPU_MAX]; /* owned: of each of the job's GPUs; -1: not yet */
    int file[GPU_MAX];  /* owned: that, or nothing: what ranks read */
    bool told;          /* `file` is what was found */
    int *draft;         /* owned: of each standby; -1: none */
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

/* A standby has got warm on that rank's GPU: what it wrote is kept for nccl_topo_tell(), if it is whole. Only the first call
 * after nccl_topo_draft() does anything. */
void nccl_topo_found(struct nccl_topo *t, uint32_t standby, uint32_t rank);

/* Whether a rank can be told, whose process was given the file of the rank `like`. */
bool nccl_topo_knows(const struct nccl_topo *t, uint32_t rank, uint32_t like);

/* What ranks read from now on: what was found, or nothing. To be called while nobody reads: before a generation begins. */
void nccl_topo_tell(struct nccl_topo *t, bool all);

void nccl_topo_finish(struct nccl_topo *t);

#endif
