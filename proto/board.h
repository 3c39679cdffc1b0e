/* SPDX-License-Identifier: MIT */
/* THE shared-memory layout: a memfd that the agent creates for one attempt and hands to every worker
 * by descriptor number. Nothing here has a name in a file system; it goes when the last holder goes.
 *
 *   head  | slot 0 | slot 1 | ... | data area of rank 0 | of rank 1 | ...
 *
 * Rules: fixed widths, offsets and no pointers, 0 means "not yet", one writer per cache line (named in
 * the comment above it). Whatever is read from here was perhaps written by a broken process: readers
 * copy, then check. Slots carry the generation that wrote them; another generation's are not believed.
 * Both sides map the same bytes, so no offset may move within a version: see the asserts in board.c. */
#ifndef LAUNCH_PROTO_BOARD_H
#define LAUNCH_PROTO_BOARD_H

#include "base.h"
#include "err.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BOARD_MAGIC 0x3152424843554e4cull /* "LNUCHBR1" in memory; stored last, read first */
#define BOARD_VERSION 3
#define BOARD_MAX_RANKS 4096
#define BOARD_NO_RANK UINT32_MAX /* of a place that belongs to nobody in this generation */
#define BOARD_ID_BYTES 128       /* sizeof(ncclUniqueId), fixed by NCCL's ABI */
#define BOARD_BARRIER_ROUNDS 12  /* log2(BOARD_MAX_RANKS) */
#define BOARD_ERROR_BYTES 448
#define BOARD_RUN_ID_BYTES 64
/* Data area of one rank: two halves (used alternately), each an input and an output chunk.
 * Pages come into being when they are touched, so an unused area costs nothing. */
#define BOARD_CHUNK_BYTES (256u * 1024u)
#define BOARD_DATA_BYTES (4ull * BOARD_CHUNK_BYTES)

#define BOARD_JOIN_CATCHES_STOP 1u /* ends by itself on LAUNCH_STOP: no SIGTERM, please */
#define BOARD_JOIN_CAN_HEAL 2u     /* meets the others again when a rank was lost (launch_meet) */
#define BOARD_JOIN_USES_DEVICE 4u  /* has had a communicator of its device */
#define BOARD_FLAG_SHARE_GPUS 1u   /* several ranks on one GPU on purpose (--share-gpus) */
#define BOARD_FLAG_OUTLIVES 2u     /* processes may outlive another rank (--on-failure=heal) */

struct board_head {
    /* Written by the agent before the first worker exists; constant afterwards. */
    _Atomic uint64_t magic;
    uint32_t version;
    uint32_t head_bytes;
    uint32_t slot_bytes;
    uint32_t world_size; /* places = slots, spares apart; ranks of the first generation */
    uint64_t slots_offset;
    uint64_t data_offset;
    uint64_t data_bytes;  /* of one rank */
    uint64_t total_bytes; /* of the file */

    /* Written by the agent. */
    _Alignas(CACHE_LINE) _Atomic uint32_t epoch; /* futex: +1 whenever generation or stop changes */
    _Atomic uint32_t generation;                 /* 1, 2, ...: the group that is meant to run */
    _Atomic uint32_t running;                    /* futex: generation whose ranks have all joined */
    _Atomic uint32_t stop;                       /* not 0: end, by request (a signal number) */
    uint32_t rendezvous_timeout_ms;              /* 0: none */
    uint32_t spin_ns; /* look this long before sleeping; 0 if CPUs are short */
    uint32_t restart_count;
    uint32_t max_restarts;
    uint32_t gpu_count; /* GPUs of the job; 0: host backend */
    uint32_t flags;     /* BOARD_FLAG_* */
    uint32_t spares;    /* slots behind those of the ranks, for standbys; constant */
    /* Of a generation; written before `generation` and, the last three, before `gathered`. */
    _Atomic uint32_t members;    /* ranks of it */
    _Atomic uint32_t root;       /* 1 + the rank whose state the others take; 0: nobody has any */
    _Atomic uint32_t restore;    /* not 0: some rank has another state than root, or none */
    _Atomic uint64_t root_state; /* root's slot->state */
    _Atomic uint32_t gathered;   /* generation that waits for nothing but the dead, who give their
                                  * GPUs back; `epoch` tells of it */

    /* Written by the agent before the first worker exists. */
    _Alignas(CACHE_LINE) char run_id[BOARD_RUN_ID_BYTES];

    /* Written by the one rank that makes the generation's unique id (rank 0 of the generation). */
    _Alignas(CACHE_LINE) _Atomic uint32_t id_generation; /* futex: stored last, with release */
    uint32_t id_nranks;
    uint64_t id_published_ns; /* CLOCK_MONOTONIC, for the benchmark */
    uint8_t id[BOARD_ID_BYTES];
};

/* What a rank is about to do in a host collective: at the head of each half of its data area, where
 * peers compare it with their own. */
struct board_call {
    _Atomic uint32_t seq; /* number of the collective in this generation, stored last */
    uint32_t op;          /* enum of worker/collective.c */
    uint32_t type;
    uint32_t reduce;
    uint32_t root;
    uint32_t pad;
    uint64_t bytes;
};

/* A slot is a place: the process in it and its rank may change with a generation, the place's number does not. */
struct board_slot {
    /* Written by the agent: before the worker exists, the rank anew for every generation. */
    _Atomic uint32_t rank; /* BOARD_NO_RANK: none */
    uint32_t local_rank;
    int32_t device; /* CUDA/HIP ordinal the worker shall use; -1: none */
    _Atomic uint32_t
        assigned; /* futex, of a spare: 1 + the place its standby goes to; 0: it waits */

    /* Written by the worker. */
    _Alignas(
        CACHE_LINE) _Atomic uint32_t stage; /* enum stage; of a spare: JOINED once it is warm */
    _Atomic uint32_t generation;            /* generation that `stage` belongs to */
    _Atomic int32_t pid;
    _Atomic uint32_t join_flags; /* BOARD_JOIN_*: what the job consents to */
    _Atomic uint32_t obeyed;     /* head's `stop`, when launch_check() gave it to the job */

    /* Robust, process-shared; initialised by the agent, held by the worker's main thread from
     * launch_join() on, so that the kernel tells of a death before it tears the memory down. */
    _Alignas(CACHE_LINE) pthread_mutex_t lock;

    /* Written by the worker: progress. Ranks are compared by it, so what can be compared begins anew in every generation:
     * a new process has no part in what came before. */
    _Alignas(CACHE_LINE) _Atomic uint64_t step; /* told; at first the commit that root had */
    _Atomic uint64_t heartbeat;                 /* differs when something happened */
    _Atomic uint64_t entered;                   /* collectives entered in `generation` */
    _Atomic uint64_t finished;                  /* of them, those known to be finished */
    _Atomic uint64_t id_seen_ns; /* when this rank had the unique id, CLOCK_MONOTONIC */
    _Atomic uint64_t state;      /* grows with each commit; 0: what it keeps is not whole */
    _Atomic uint32_t born;       /* generation in which this process' launch_join() returned */

    /* Written by the worker: host collectives. arrive[k] is waited on by one peer only. */
    _Alignas(CACHE_LINE) _Atomic uint32_t arrive[BOARD_BARRIER_ROUNDS]; /* futex each */

    /* Written by the worker: last error, for the failure report. Not trusted to be terminated. */
    _Alignas(CACHE_LINE) _Atomic uint32_t error_bytes; /* stored last, with release */
    char error[BOARD_ERROR_BYTES];
};

/* One process's view of a board. */
struct board {
    int fd;        /* owned; -1 when closed */
    size_t bytes;  /* of the mapping */
    size_t places; /* slots that fit it */
    struct board_head *head;
};

struct board_config {
    uint32_t world_size; /* 1 .. BOARD_MAX_RANKS */
    uint32_t spares;     /* 0 .. BOARD_MAX_RANKS */
    uint32_t generation; /* >= 1 */
    uint32_t rendezvous_timeout_ms;
    uint32_t spin_ns;
    uint32_t restart_count, max_restarts;
    uint32_t gpu_count;
    uint32_t flags;
    const char *run_id; /* cut at BOARD_RUN_ID_BYTES - 1 */
};

/* Makes a new board: memfd (close-on-exec, sealed against resizing), head and slots filled in, the
 * memory of head and slots claimed, so that a full machine fails here and not by SIGBUS later.
 * Slot i has rank = local_rank = i (a spare: no rank) and device -1; the caller may change these before it forks.
 * Errors: -EINVAL world_size, spares or generation out of range; -ENOMEM, -EMFILE, -EFBIG, ... of the
 * system call, with a text that names it. On failure *b is closed. */
MUST_CHECK int board_create(struct board *b, const struct board_config *config, struct err *err);

/* Maps the board behind `fd` and checks everything in its head against the file's real size.
 * fd: duplicated, stays the caller's. Errors: -EBADF not open; -EPROTO not a board (a file that is no memfd or
 * may still shrink too), or of another version, or with a head that contradicts itself; -errno of the
 * system calls. */
MUST_CHECK int board_open(struct board *b, int fd, struct err *err);

/* A lock as board_create() puts it into a slot. -errno. */
MUST_CHECK int board_init_lock(pthread_mutex_t *lock);

/* Unmaps and closes; takes a closed or zeroed board (fd -1 or head NULL) too. */
void board_close(struct board *b);

/* Slot of a place < world_size + spares (asserted). In the first generation rank i is in place i. */
struct board_slot *board_slot(const struct board *b, uint32_t place);

/* Start of the data area of a place; BOARD_DATA_BYTES long. */
void *board_data(const struct board *b, uint32_t place);

/* Sleeps until *word differs from `seen`, the board's epoch differs from `epoch`, or the deadline
 * (CLOCK_MONOTONIC ns, CLOCK_NEVER for none) passes. Looks for head->spin_ns first. Any thread.
 * Returns 0: *word changed; -ECANCELED: the epoch changed; -ETIMEDOUT. Never anything else.
 * Kernels before 5.16 have no futex_waitv: there the epoch is looked at every 50 ms. */
MUST_CHECK int board_wait(const struct board *b, _Atomic uint32_t *word, uint32_t seen,
                          uint32_t epoch, uint64_t deadline_ns);

/* Sleeps until the unique id of `generation` has been published, as board_wait() does, but looks for up to 2 ms first where
 * every rank has a CPU: making an id takes 1 ms or so, and waking a sleeping core costs more than the whole hand-over. */
MUST_CHECK int board_await_id(const struct board *b, uint32_t generation, uint32_t epoch,
                              uint64_t deadline_ns);

/* Wakes everybody who sleeps on the word. Call it after storing. */
void board_wake(_Atomic uint32_t *word);

/* Agent only. Ends all waits of the generation: bumps the epoch after `generation` or `stop` has
 * been stored. */
void board_bump_epoch(const struct board *b);

/* Worker: puts a text into its slot (cut to fit, control characters replaced). */
void board_put_error(struct board_slot *slot, const char *text);

/* Agent: copies the text out of a slot, as untrusted bytes: at most `size` with the final NUL, control
 * characters and non-ASCII replaced by '?'. Returns the length, 0 if there is none. */
size_t board_get_error(const struct board_slot *slot, char *text, size_t size);

#endif
