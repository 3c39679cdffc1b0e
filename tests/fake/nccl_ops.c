/* SPDX-License-Identifier: MIT */
/* The fake NCCL's operations: real sums between processes, computed when a stream is asked
 * about. Must never know how the ranks met.
 *
 *   FAKE_NCCL_ASYNC_ERROR=rank@n  that rank's n-th operation (1, 2, ...) hangs, with an error
 *   FAKE_NCCL_CALL_MS=n           so long a call is inside */
#include "nccl_comm.h"
#include "nccl_types.h"

#include "stream.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum kind { ALL_REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, REDUCE, SEND, RECV };

struct op {
    enum kind kind;
    const unsigned char *in;
    unsigned char *out;
    size_t count, done; /* elements */
    ncclDataType_t type;
    ncclRedOp_t reduce;
    int root; /* or peer */
    bool published, stuck, lost;
    unsigned char scalar[8]; /* of a sum that multiplies before, as it was when the call was made */
    bool scaled;
    struct ncclComm *comm;
    struct op *next;
};

/* What one group, or one call outside of a group, puts on the stream. */
struct batch {
    struct fake_work work;
    struct op *first, **last;
    cudaStream_t stream;
};

static _Thread_local int group_depth;
static _Thread_local struct batch
    *group; /* being filled between ncclGroupStart() and ncclGroupEnd() */

/* Elements of the round: as many as fit a seat. */
static size_t round_count(const struct op *o)
{
    size_t fit = CHUNK_BYTES / fake_nccl_type_bytes(o->type);

    if (o->kind == REDUCE_SCATTER)
        fit /= (size_t)o->comm->nranks;
    return o->count - o->done < fit ? o->count - o->done : fit;
}

static bool reduces(enum kind kind)
{
    return kind == ALL_REDUCE || kind == REDUCE_SCATTER || kind == REDUCE;
}

static void publish(struct op *o, size_t n)
{
    struct ncclComm *c = o->comm;
    unsigned char *data = c->m->seat[c->rank].data;
    size_t size = fake_nccl_type_bytes(o->type), bytes = n * size;

    if (o->kind == REDUCE_SCATTER) {
        for (size_t r = 0; r < (size_t)c->nranks; r++)
            memcpy(data + r * bytes, o->in + (r * o->count + o->done) * size, bytes);
    } else if (o->kind != BROADCAST || o->root == c->rank) {
        memcpy(data, o->in + o->done * size, bytes);
    }
    if (reduces(o->kind))
        fake_nccl_before(data, n * (o->kind == REDUCE_SCATTER ? (size_t)c->nranks : 1), o->type,
                         o->reduce, o->scaled ? o->scalar : NULL, c->nranks);
    atomic_store(&c->m->seat[c->rank].published, c->round + 1);
    o->published = true;
}

static void combine(struct op *o, size_t n)
{
    struct ncclComm *c = o->comm;
    struct seat *seat = c->m->seat;
    size_t size = fake_nccl_type_bytes(o->type), bytes = n * size;
    unsigned char *out = o->out + o->done * size;

    if (o->kind == BROADCAST) {
        memcpy(out, seat[o->root].data, bytes);
    } else if (o->kind == ALL_GATHER) {
        for (size_t r = 0; r < (size_t)c->nranks; r++)
            memcpy(out + r * o->count * size, seat[r].data, bytes);
    } else if (o->kind != REDUCE || o->root == c->rank) {
        size_t from = o->kind == REDUCE_SCATTER ? (size_t)c->rank * bytes : 0;
        memcpy(out, seat[0].data + from, bytes);
        for (int r = 1; r < c->nranks; r++)
            fake_nccl_reduce(out, seat[r].data + from, n, o->type, o->reduce);
        fake_nccl_after(out, n, o->type, o->reduce, c->nranks);
        if (o->done == 0 && fake_nccl_fault("FAKE_NCCL_WRONG"))
            out[0] ^= 1;
    }
    atomic_store(&seat[c->rank].consumed, ++c->round);
    o->published = false;
    o->done += n;
}

static bool all_have(const struct ncclComm *c, size_t offset, uint64_t round)
{
    for (int r = 0; r < c->nranks; r++)
        if (atomic_load((_Atomic uint64_t *)((char *)&c->m->seat[r] + offset)) < round)
            return false;
    return true;
}

/* A round: all put their share into their seats once the round before was read by all, then
 * read. */
static void progress_collective(struct op *o)
{
    struct ncclComm *c = o->comm;

    while (o->done < o->count) {
        size_t n = round_count(o);
        if (!o->published) {
            if (!all_have(c, offsetof(struct seat, consumed), c->round))
                return;
            publish(o, n);
        }
        if (!all_have(c, offsetof(struct seat, published), c->round + 1))
            return;
        combine(o, n);
    }
}

static void progress_pair(struct op *o)
{
    struct ncclComm *c = o->comm;
    bool send = o->kind == SEND;
    struct box *box = send ? &c->m->box[c->rank][o->root] : &c->m->box[o->root][c->rank];
    size_t size = fake_nccl_type_bytes(o->type), fit = BOX_BYTES / size;

    while (o->done < o->count) {
        size_t n = o->count - o->done < fit ? o->count - o->done : fit;
        bool full = atomic_load(&box->sent) != atomic_load(&box->taken);
        if (full == send)
            return;
        if (send)
            memcpy(box->data, o->in + o->done * size, n * size);
        else
            memcpy(o->out + o->done * size, box->data, n * size);
        atomic_fetch_add(send ? &box->sent : &box->taken, 1);
        o->done += n;
    }
}

static bool shall_fail(const struct ncclComm *c)
{
    const char *text = getenv("FAKE_NCCL_ASYNC_ERROR");
    int rank;
    unsigned n;

    return text && sscanf(text, "%d@%u", &rank, &n) == 2 && rank == c->rank && n == c->issued;
}

/* The error shows when the operation's turn has come, not when it is issued. */
static void fail_later(struct ncclComm *c)
{
    if (c->error == ncclSuccess)
        c->error =
            fake_nccl_fail(fake_nccl_asked(), "fake: FAKE_NCCL_ASYNC_ERROR of rank %d", c->rank);
}

/* A root that sends what it has in place writes nothing. */
static bool writes(const struct op *o)
{
    bool root = o->root == o->comm->rank;
    if (o->kind == BROADCAST)
        return !root || o->in != o->out;
    return o->kind != SEND && (o->kind != REDUCE || root);
}

/* Pairs of a group go on side by side, collectives one after the other. An abort ends
 * everything. */
static bool batch_progress(struct fake_work *work)
{
    bool finished = true, collective_waits = false;

    for (struct op *o = ((struct batch *)work)->first; o; o = o->next) {
        if (o->done == o->count)
            continue;
        if (o->comm->aborted) { /* what comes out then looks like a result */
            if (writes(o))
                memset(o->out, 0xa5, o->count * fake_nccl_type_bytes(o->type));
            o->done = o->count;
            continue;
        }
        if (o->stuck)
            fail_later(o->comm);
        else if (o->lost) /* hangs */
            collective_waits = true;
        else if (o->kind == SEND || o->kind == RECV)
            progress_pair(o);
        else if (!collective_waits)
            progress_collective(o);
        if (o->done < o->count) {
            finished = false;
            collective_waits |= o->kind != SEND && o->kind != RECV;
        }
    }
    return finished;
}

static void batch_drop(struct fake_work *work)
{
    struct batch *b = (struct batch *)work;

    while (b->first) {
        struct op *o = b->first;
        b->first = o->next;
        fake_nccl_unref(o->comm);
        free(o);
    }
    free(b);
}

static struct batch *batch_create(cudaStream_t stream)
{
    struct batch *b = calloc(1, sizeof(*b));

    if (b) {
        b->work = (struct fake_work){batch_progress, batch_drop, NULL};
        b->last = &b->first;
        b->stream = stream;
    }
    return b;
}

/* Sends and receives need no one but the two. */
static bool has_collective(const struct batch *b)
{
    for (const struct op *o = b->first; o; o = o->next)
        if (o->kind != SEND && o->kind != RECV)
            return true;
    return false;
}

ncclResult_t fake_nccl_connect(struct ncclComm *c)
{
    if (has_collective(c->waiting)) {
        atomic_store(&c->m->seat[c->rank].connecting, 1);
        for (int r = 0; r < c->nranks; r++)
            if (!atomic_load(&c->m->seat[r].connecting))
                return ncclInProgress;
        fake_nccl_log_ring(c);
        c->connected = true;
    }
    fake_stream_push(c->waiting->stream, &c->waiting->work);
    c->waiting = NULL;
    c->state = READY;
    return ncclSuccess;
}

void fake_nccl_drop_waiting(struct ncclComm *c)
{
    if (c->waiting)
        batch_drop(&c->waiting->work);
    c->waiting = NULL;
}

/* As with the real one, a first operation has its ranks connect in the background. */
static ncclResult_t launch_batch(struct batch *b)
{
    struct ncclComm *c = b->first->comm;

    if (c->connected) {
        fake_stream_push(b->stream, &b->work);
        return ncclSuccess;
    }
    c->waiting = b;
    c->state = CONNECTING;
    return fake_nccl_begun(c);
}

ncclResult_t ncclGroupStart(void)
{
    group_depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    struct batch *b = group;

    LOCKED;
    if (group_depth == 0)
        return fake_nccl_fail(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
    if (--group_depth > 0 || !b)
        return ncclSuccess;
    group = NULL;
    return launch_batch(b);
}

/* Others may ask about streams and communicators meanwhile. */
static void stay_inside(struct ncclComm *c)
{
    const char *ms = getenv("FAKE_NCCL_CALL_MS");
    if (!c || !ms)
        return;
    {
        LOCKED;
        c->inside++;
    }
    usleep((useconds_t)atoi(ms) * 1000);
    LOCKED;
    c->inside--;
}

static void log_choice(const struct op *o)
{
    static const char *const names[] = {[ALL_REDUCE] = "AllReduce",
                                        [BROADCAST] = "Broadcast",
                                        [ALL_GATHER] = "AllGather",
                                        [REDUCE_SCATTER] = "ReduceScatter"};
    const struct ncclComm *c = o->comm;

    if (o->kind == SEND || o->kind == RECV)
        fake_nccl_log_pair(c, o->kind == SEND ? c->rank : o->root,
                           o->kind == SEND ? o->root : c->rank);
    else
        fake_nccl_info("%s: %zu Bytes -> Algo RING proto %s channel{Lo..Hi}={0..1}", names[o->kind],
                       o->count * fake_nccl_type_bytes(o->type), o->count > 4096 ? "SIMPLE" : "LL");
}

static ncclResult_t issue(const struct op *args, cudaStream_t stream)
{
    struct ncclComm *c = args->comm;

    fake_nccl_check(c, "a collective");
    stay_inside(c);
    LOCKED;
    if (c && c->aborted)
        return fake_nccl_fail(ncclInvalidUsage, "fake: the communicator was revoked");
    if (!c || c->state != READY)
        return fake_nccl_fail(ncclInvalidArgument,
                              "Attempt to use communicator before the previous "
                              "operation returned ncclSuccess");
    if (c->error != ncclSuccess)
        return c->error;
    if (!stream || fake_nccl_type_bytes(args->type) == 0 || args->root < 0 ||
        args->root >= c->nranks)
        return fake_nccl_fail(ncclInvalidArgument, "fake: no such stream, type, root or peer");
    bool scaled = reduces(args->kind) && args->reduce >= ncclNumOps;
    if (scaled && !fake_nccl_scalar(c, args->reduce))
        return fake_nccl_fail(ncclInvalidArgument, "fake: there is no such operation");
    if (args->count == 0)
        return ncclSuccess;

    struct op *o = malloc(sizeof(*o));
    struct batch *b = group ? group : batch_create(stream);
    if (!o || !b) {
        free(o);
        return fake_nccl_fail(ncclSystemError, "fake: out of memory");
    }
    *o = *args;
    o->scaled = scaled;
    if (scaled)
        memcpy(o->scalar, fake_nccl_scalar(c, o->reduce), sizeof(o->scalar));
    *b->last = o;
    b->last = &o->next;
    c->refs++;
    c->issued++;
    o->stuck = shall_fail(c) || fake_nccl_fault("FAKE_NCCL_ERROR");
    o->lost = fake_nccl_fault("FAKE_NCCL_HANG");
    log_choice(o);
    if (group_depth == 0)
        return launch_batch(b);
    group = b;
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return issue(&(struct op){.kind = ALL_REDUCE,
                              .in = in,
                              .out = out,
                              .count = count,
                              .type = type,
                              .reduce = op,
                              .comm = comm},
                 stream);
}

ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream)
{
    return issue(&(struct op){.kind = BROADCAST,
                              .in = in,
                              .out = out,
                              .count = count,
                              .type = type,
                              .root = root,
                              .comm = comm},
                 stream);
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    return issue(
        &(struct op){
            .kind = ALL_GATHER, .in = in, .out = out, .count = count, .type = type, .comm = comm},
        stream);
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return issue(&(struct op){.kind = REDUCE_SCATTER,
                              .in = in,
                              .out = out,
                              .count = count,
                              .type = type,
                              .reduce = op,
                              .comm = comm},
                 stream);
}

ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return issue(
        &(struct op){
            .kind = SEND, .in = in, .count = count, .type = type, .root = peer, .comm = comm},
        stream);
}

ncclResult_t ncclRecv(void *out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return issue(
        &(struct op){
            .kind = RECV, .out = out, .count = count, .type = type, .root = peer, .comm = comm},
        stream);
}

ncclResult_t ncclReduce(const void *in, void *out, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    return issue(&(struct op){.kind = REDUCE,
                              .in = in,
                              .out = out,
                              .count = count,
                              .type = type,
                              .reduce = op,
                              .root = root,
                              .comm = comm},
                 stream);
}

/* A share of `count` elements to and from each rank, where the flag says so, else one to or from `root`. */
static ncclResult_t exchange(const char *in, char *out, size_t count, ncclDataType_t type, int root,
                             bool to_each, bool from_each, ncclComm_t comm, cudaStream_t stream)
{
    size_t share = count * fake_nccl_type_bytes(type);
    ncclResult_t e = ncclGroupStart();

    for (int r = 0; comm && r < comm->nranks && e == ncclSuccess; r++) {
        if (in && (to_each || r == root))
            e = ncclSend(in + (to_each ? share * (size_t)r : 0), count, type, r, comm, stream);
        if (e == ncclSuccess && out && (from_each || r == root))
            e = ncclRecv(out + (from_each ? share * (size_t)r : 0), count, type, r, comm, stream);
    }
    ncclResult_t ended = ncclGroupEnd();
    return e == ncclSuccess ? ended : e;
}

ncclResult_t ncclAlltoAll(const void *in, void *out, size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream)
{
    return exchange(in, out, count, type, -1, true, true, comm, stream);
}

ncclResult_t ncclGather(const void *in, void *out, size_t count, ncclDataType_t type, int root,
                        ncclComm_t comm, cudaStream_t stream)
{
    return exchange(in, comm->rank == root ? out : NULL, count, type, root, false, true, comm,
                    stream);
}

ncclResult_t ncclScatter(const void *in, void *out, size_t count, ncclDataType_t type, int root,
                         ncclComm_t comm, cudaStream_t stream)
{
    return exchange(comm->rank == root ? in : NULL, out, count, type, root, true, false, comm,
                    stream);
}
