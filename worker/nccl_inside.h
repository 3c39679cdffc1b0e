/* SPDX-License-Identifier: MIT */
/* The inside of the CUDA + NCCL backend, shared by its files worker/nccl*.c, which are the HIP + RCCL backend, too
 * (gpu_api.h). Not installed. */
#ifndef LAUNCH_WORKER_NCCL_INSIDE_H
#define LAUNCH_WORKER_NCCL_INSIDE_H

#include "launch_nccl.h"

#include "device.h"
#include "gpu_api.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* ---- nccl_line.c: a communicator with its stream, and the thread that stays with it to its end ---- */

/* Whose it is: the job's thread's, until the guard cuts it or the job's thread gives it up; from then on the guard's. */
struct line {
    struct launch *l;    /* borrowed */
    ncclComm_t comm;     /* NULL: none */
    cudaStream_t stream; /* stays until it was given up, cut or not */
    uint32_t generation;
    pthread_t guard;
    pthread_mutex_t inside;    /* held by the job's thread while it may be in NCCL */
    atomic_bool ready;         /* comm is set up */
    atomic_bool cut;           /* the generation is over: comm is the guard's */
    atomic_bool gone;          /* the guard has done its work */
    _Atomic uint32_t given_up; /* futex */
    struct line *next;
};

/* Makes the stream and starts the guard. LAUNCH_FAILED with a text; *ret is NULL then. */
MUST_CHECK int line_open(struct line **ret, struct launch *l);

/* Round all that the job's thread does with comm. LAUNCH_OK; LAUNCH_AGAIN: comm is not to be touched any more, with a
 * text; LAUNCH_INVALID: this thread is inside already. */
MUST_CHECK int line_enter(struct line *line);
void line_leave(struct line *line);

/* The job's thread has no more use for comm and stream: the guard aborts and frees them. Inside or not. */
void line_give_up(struct line *line);

/* The stream has nothing left to do; false: stop was asked for before. For a line whose generation is over. */
bool line_await_idle(struct line *line);

/* Frees the first of a list, and those behind it, if the guard is through; all: waits for that. Returns what is left. */
struct line *line_reap(struct line *first, bool all);

/* ---- nccl.c ---- */

struct nccl {
    struct launch *l;    /* borrowed; outlives us */
    struct line *line;   /* NULL: none */
    struct line *given;  /* given up, and perhaps not gone yet */
    unsigned generation; /* the last one in which a communicator was tried; 0: none */
    int refused;         /* why launch_nccl_enter() did not let the job in; LAUNCH_OK: it did */
    bool inside, busy;   /* in NCCL; has entered work that was not waited for */
    uint64_t step;       /* at which it entered the last */
    bool nested;         /* inside already when it was last asked for */
    char name[BOARD_RUN_ID_BYTES];
};

void nccl_nap(uint64_t ns);

/* Gives AGAIN and STOP their text; returns r. */
int nccl_verdict(struct launch *l, int r);

int nccl_fail_cuda(struct launch *l, const char *call, cudaError_t e);
int nccl_fail(struct nccl *n, const char *call, ncclResult_t e);

/* Until a call on n->line that answered `e` is through; inside. LAUNCH_OK, AGAIN, STOP, INVALID, FAILED with a
 * text; TIMEOUT without. */
MUST_CHECK int nccl_await_call(struct nccl *n, const char *call, ncclResult_t e,
                               uint64_t deadline_ns);

/* Before NCCL reads its environment. */
void nccl_prepare_sharing(const struct launch *l);

/* ---- nccl_memory.c ---- */

extern const struct device_memory NCCL_MEMORY;

/* ---- nccl_init.c ---- */

/* Meets the others through the board and sets n->line's communicator up. As launch_nccl_comm(). */
MUST_CHECK int nccl_init_comm(struct nccl *n);

#endif
