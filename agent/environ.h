/* SPDX-License-Identifier: MIT */
/* The environment of a worker: ours copied byte for byte, minus what the launcher decides, plus that.
 * Values and their reasons: one function, environ_of(). */
#ifndef LAUNCH_AGENT_ENVIRON_H
#define LAUNCH_AGENT_ENVIRON_H

#include "../config/spec.h"
#include "gpu.h"
#include "notify.h"

struct placement;

/* What is the same for all workers of an attempt. Everything is borrowed. */
struct environ_job {
    const struct job_spec *spec;
    const struct gpu_list *gpus;
    const struct gpu_set *gpu_set; /* the job's GPUs */
    const char *run_id;
    uint32_t world_size;
    uint32_t generation;
    uint32_t restart_count;
    uint16_t master_port;
    unsigned cpus;                     /* that the job may use */
    const struct placement *placement; /* NULL: workers go where they like */
    uint16_t ras_port;                 /* for NCCL's RAS, unless the user has chosen one; 0: none */
    int board_fd, bell_fd;
    const struct notify *notify; /* NULL: no --hang-timeout */
    const char *error_file;      /* of this rank; NULL: none */
    const char *topo_file;       /* for NCCL to read (nccl_topo.h); NULL: none */
    const char *topo_draft;      /* where a standby writes one; NULL: nowhere */
};

/* Environments of all workers; each has its own memory, used again in the next attempt. */
struct environ {
    char **base;   /* owned array: the inherited variables that stay (borrowed strings) */
    size_t base_n; /* without the final NULL */
    size_t slots;  /* of `all` for one worker */
    char **lists;  /* owned: `slots` of each worker: base and its own */
    char *texts;   /* owned: the workers' own variables */
    /* The worker at hand: */
    char **all; /* its list, */
    size_t all_n;
    char *text; /* its text */
    size_t used;
};

/* Takes the inherited variables, for n workers. -ENOMEM. */
MUST_CHECK int environ_init(struct environ *e, uint32_t n, char *const *inherited, struct err *err);
void environ_finish(struct environ *e);

/* The NULL-terminated environment of a rank, or, for world_size and more, of a standby, which has none yet; stays until it
 * is asked for again. */
char *const *environ_of(struct environ *e, const struct environ_job *job, uint32_t rank);

/* The rank itself; of a standby, the rank whose GPU and CPUs it gets, where ranks have their own. */
uint32_t environ_rank_of(const struct environ_job *job, uint32_t seat);

/* Whether a standby may become that rank: any, unless it has CPUs, or sees a GPU, that are another rank's. */
bool environ_fits(const struct environ_job *job, uint32_t standby, uint32_t rank);

/* CUDA/HIP ordinal that a rank shall use: 0 when it sees its own GPU only, else its local rank, even if
 * there are fewer GPUs (the backend then says so); -1: the job has no GPU. */
int environ_device(const struct environ_job *job, uint32_t rank);

#endif
