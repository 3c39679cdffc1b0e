/* SPDX-License-Identifier: MIT */
/* The fake NCCL's communicator: made and ended by nccl.c, used by nccl_ops.c. Nothing else
 * includes this. */
#ifndef LAUNCH_FAKE_NCCL_COMM_H
#define LAUNCH_FAKE_NCCL_COMM_H

#include <nccl.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RANKS_MAX 64
#define CHUNK_BYTES 65536
#define BOX_BYTES 4096
#define OPS_MAX 4

/* One rank's share of the meeting place; it alone writes here. */
struct seat {
    _Atomic uint32_t present; /* the fields below are filled in */
    int nranks;
    uint64_t host;
    char bus_id[16];
    bool from_file;              /* what is known of the GPU */
    _Atomic uint32_t connecting; /* has issued its first operation */
    _Atomic uint32_t finalized;
    _Atomic uint64_t published; /* rounds of collectives whose data is in place */
    _Atomic uint64_t consumed;  /* rounds of which everybody's data has been read */
    _Alignas(64) unsigned char data[CHUNK_BYTES];
};

/* What one rank sends to another: `sent` and the data are the sender's, `taken` is the
 * receiver's. */
struct box {
    _Atomic uint64_t sent, taken;
    unsigned char data[BOX_BYTES];
};

/* Sparse: pages exist once touched. */
struct meeting {
    uint64_t nonce; /* as in the id: tells a process that was given the same pid later */
    struct seat seat[RANKS_MAX];
    struct box box[RANKS_MAX][RANKS_MAX]; /* [from][to] */
};

enum comm_state { MEETING, READY, CONNECTING, FINALIZING };

struct batch; /* nccl_ops.c */

struct ncclComm {
    struct meeting *m;
    int rank, nranks, root_fd; /* root_fd: the memfd, if this process made the id, else -1 */
    bool blocking;
    enum comm_state state;
    ncclResult_t error; /* what ncclCommGetAsyncError() says for ever */
    bool aborted;       /* or revoked: its work is cut short */
    bool revoked, freed;
    unsigned inside; /* threads in a call */
    struct ncclComm *next_freed;
    uint64_t round;  /* of collectives */
    unsigned issued; /* operations so far */
    struct batch
        *waiting; /* the first operation, not on its stream before all ranks have issued theirs */
    bool connected;
    struct {
        bool made;
        unsigned char scalar[8];
    } ops[OPS_MAX]; /* operations that the user made; their numbers begin at ncclNumOps */
    unsigned refs;  /* the user's, and one for every operation on a stream */
};

/* Remembers the text for ncclGetLastError(); returns `result`. */
ncclResult_t fake_nccl_fail(ncclResult_t result, const char *format, ...)
    __attribute__((format(printf, 2, 3), visibility("hidden")));

/* Finds out, or reads, how the GPU of our seat is linked. */
ncclResult_t fake_nccl_topology(struct ncclComm *c) __attribute__((visibility("hidden")));

/* All have: it is put together. */
void fake_nccl_fuse(const struct ncclComm *c) __attribute__((visibility("hidden")));

/* Until all ranks have issued their first operation: ncclInProgress. Then c->waiting goes to
 * its stream. */
ncclResult_t fake_nccl_connect(struct ncclComm *c) __attribute__((visibility("hidden")));

/* Frees c->waiting, if there is one. */
void fake_nccl_drop_waiting(struct ncclComm *c) __attribute__((visibility("hidden")));

/* What a call returns that goes on in the background: ncclInProgress, or its end if c is
 * blocking. */
ncclResult_t fake_nccl_begun(struct ncclComm *c) __attribute__((visibility("hidden")));

/* nccl_log.c: a line of NCCL_DEBUG_FILE. */
void fake_nccl_info(const char *format, ...)
    __attribute__((format(printf, 1, 2), visibility("hidden")));
/* what: "START", "COMPLETE". */
void fake_nccl_log_init(const struct ncclComm *c, const char *bus_id, const char *what)
    __attribute__((visibility("hidden")));
void fake_nccl_log_ring(const struct ncclComm *c) __attribute__((visibility("hidden")));
void fake_nccl_log_pair(const struct ncclComm *c, int from, int to)
    __attribute__((visibility("hidden")));
/* Whether the fault of that variable ("FAKE_NCCL_HANG") strikes. */
bool fake_nccl_fault(const char *name) __attribute__((visibility("hidden")));

/* "0000:18:00.0" is 0x18000. */
unsigned long fake_nccl_bus_number(const char *bus_id) __attribute__((visibility("hidden")));
/* What that operation multiplies by, 8 bytes; NULL: there is no such operation. */
const unsigned char *fake_nccl_scalar(const struct ncclComm *c, ncclRedOp_t op)
    __attribute__((visibility("hidden")));

/* Ends the process if c was freed. */
void fake_nccl_check(const struct ncclComm *c, const char *call)
    __attribute__((visibility("hidden")));

/* The result of what FAKE_NCCL_INIT_ERROR and FAKE_NCCL_ASYNC_ERROR ask for. */
ncclResult_t fake_nccl_asked(void) __attribute__((visibility("hidden")));

/* Gives one of c's references back; the last one frees it. */
void fake_nccl_unref(struct ncclComm *c) __attribute__((visibility("hidden")));

#endif
