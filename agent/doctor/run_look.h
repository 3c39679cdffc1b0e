/* SPDX-License-Identifier: MIT */
/* Two looks at a running job, a second apart, and what its processes and NCCL say meanwhile. Gathers and judges; how it is
 * told: run.c. Everything comes from others: the job's agent, /proc, a socket. */
#ifndef LAUNCH_AGENT_DOCTOR_RUN_LOOK_H
#define LAUNCH_AGENT_DOCTOR_RUN_LOOK_H

#include "../client.h"
#include "../evidence.h"
#include "../hang.h"
#include "ras.h"

#define RUN_LOOK_PYTHON_BYTES 4096

struct run_look {
    struct client_job job;
    uint32_t n;                  /* ranks; of each array below */
    struct client_look ranks[2]; /* owned: before, and now */
    uint64_t apart_ns;
    pid_t *pids;              /* owned: those that may be looked at; 0: none */
    struct hang_rank *states; /* owned */
    bool *stopped, *moved;    /* owned: one block */
    struct hang hang;
    struct hang_verdict verdict; /* the rank that is furthest behind */
    bool stuck;                  /* no rank has moved, or one is stopped */

    struct evidence evidence; /* none: `blind` says why */
    struct err blind;

    char address[64]; /* of RAS; "": the ranks have none */
    struct ras ras[2];
    struct err ras_trouble;             /* code 0: ras[1] is the answer */
    char python[RUN_LOOK_PYTHON_BYTES]; /* what py-spy says of the rank behind; "" for nothing */
};

/* until_ns: CLOCK_MONOTONIC; what does not end by then is left out. Errors: those of client_find() and client_look().
 * run_look_finish() takes it in any case. */
MUST_CHECK int run_look_take(struct run_look *ret, const char *run, uint64_t until_ns,
                             struct err *err);
void run_look_finish(struct run_look *l);

/* The rank of that process, or of one that it runs; -1: none. */
int64_t run_look_rank(const struct run_look *l, int32_t pid);

/* A note of RAS that tells who is behind; NULL: there is none. */
const struct ras_note *run_look_behind(const struct run_look *l);

#endif
