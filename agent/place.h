/* SPDX-License-Identifier: MIT */
/* Where each rank belongs: pure, from the machine, the GPUs and what was asked for. Reads nothing, binds nobody
 * (placement.c, spawn.c).
 *
 *   none          where the launcher may run
 *   node          the CPUs of the NUMA node that the rank's GPU is at
 *   socket        those of all nodes of that node's package
 *   exclusive     cores of that node that no other rank has, of this job or of another exclusive one. The node's cores
 *                 are divided among all its GPUs, whether this job uses them or not, so that jobs with different GPUs
 *                 do not meet; when there are too few cores for that, among the ranks of this job only
 *   cores         as exclusive, among the ranks of this job only; with fewer cores than ranks, they share
 *   core-complex  CPUs of the node that share a cache: the largest groups first, rank after rank
 *
 * A rank without a GPU, or with one whose node is not known, belongs to the node it falls on when all ranks are laid
 * out evenly over all cores: neighbours stay together, and nodes get ranks as they have cores. */
#ifndef LAUNCH_AGENT_PLACE_H
#define LAUNCH_AGENT_PLACE_H

#include "../config/spec.h"
#include "gpu.h"
#include "machine.h"

struct place {
    int gpu;              /* in the gpu_list; -1: none, or not known which */
    int node;             /* NUMA node the rank belongs to; it has CPUs */
    struct bitset cpus;   /* empty: as inherited */
    struct bitset memory; /* nodes that the memory policy is about; empty: as inherited */
    unsigned threads;     /* its share of the cores: OMP_NUM_THREADS */
};

struct place_question {
    const struct machine *machine; /* read with the details of place_details() */
    enum affinity affinity;        /* not AFFINITY_AUTO */
    enum mem_policy mem_policy;
    uint32_t ranks;
    const struct gpu_list *gpus;
    const struct gpu_set *gpu_set; /* the job's */
    const struct bitset *taken;    /* CPUs that exclusive ranks of other jobs have; NULL: none */
    unsigned cpus;  /* that the job may use, for a rank's share when it is not bound */
    unsigned quota; /* of CPUs, all ranks together; UINT_MAX: none */
};

#define PLACE_NOTE_BYTES 200

/* What of the machine a mode looks at: enum machine_detail, or-ed. */
unsigned place_details(enum affinity affinity);

/* Fills one place per rank. note: one line about what could not be done, or empty; nothing that can be missing makes it
 * fail. -EINVAL: more ranks than cores with AFFINITY_EXCLUSIVE; -ENOMEM. */
MUST_CHECK int place_ranks(struct place *places, const struct place_question *question,
                           char note[PLACE_NOTE_BYTES], struct err *err);

#endif
