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

/* How a communicator comes to be. */
struct init {
    ncclUniqueId id;
    ncclConfig_t config;
    int rank, nranks, device;
    ncclComm_t comm;     /* the thread's, until it is done */
    ncclResult_t result; /* of the call */
    bool threaded;       /* `thread` is to be joined */
    pthread_t thread;
    _Atomic uint32_t done; /* futex; of the thread */
};

/* Whose it is: the job's thread's, until the guard cuts it or the job's thread gives it up; from then on the guard's. */
struct line {
    struct launch *l;              /* borrowed */
    char name[BOARD_RUN_ID_BYTES]; /* NCCL borrows it */
    struct init init;
    ncclComm_t comm;     /* NULL: none */
    cudaStream_t stream; /* stays until it was given up, cut or not */
    uint32_t generation;
    pthread_t guard;
    pthread_mutex_t inside;    /* held by the job's thread while it may be in NCCL */
    atomic_bool ready;         /* comm is set up */
    atomic_bool cut;           /* the generation is over: comm is the guard's */
    atomic_bool parting;       /* given up in peace: what was sent arrives, as long as it is set */
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

/* The same when all ranks leave together: the guard waits until everything that was sent has arrived. */
void line_part(struct line *line);

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
};

void nccl_nap(uint64_t ns);

/* pthread_create(); signals are the job's. */
MUST_CHECK int nccl_thread(pthread_t *ret, void *(*main)(void *), void *arg);

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

/* ---- nccl_warm.c ---- */

/* device_offer.warm(). */
void nccl_warm(const struct launch *l, int device, enum warmth warmth);

/* ---- nccl_memory.c ---- */

extern const struct device_memory NCCL_MEMORY;

/* ---- nccl_init.c ---- */

/* Begins with n->line's communicator: meets the others through the board (rank 0 is not waited for longer than deadline_ns,
 * and not at all if it has published the id). Inside. As launch_nccl_comm(). */
MUST_CHECK int nccl_start_comm(struct nccl *n, uint64_t deadline_ns);

/* Waits until it is there. */
MUST_CHECK int nccl_finish_comm(struct nccl *n, uint64_t deadline_ns);

/* Must a process of this job be able to go on when another rank dies? Only a communicator that does not block lets it, and
 * that starts a thread for every call. */
bool nccl_outlives(const struct launch *l);

#endif
