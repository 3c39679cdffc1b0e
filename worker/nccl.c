/* SPDX-License-Identifier: MIT */
/* The CUDA + NCCL backend: one communicator over all ranks and its stream, per generation.
 * Owns both, and hands the unique id round through the board. Must never wait without looking
 * at the deadline, the generation and the stop flag: NCCL itself does not notice that a rank
 * has died. */
#include "launch_nccl.h"

#include "device.h"

#include "../proto/clock.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAP_MIN_NS 10000ull
#define NAP_MAX_NS NS_PER_MS      /* while the communicator is set up */
#define WAIT_SPIN_NS NS_PER_MS    /* a stream is watched this closely before we sleep ... */
#define WAIT_NAP_MAX_NS 200000ull /* ... and never less closely than this */
#define ASYNC_LOOK_NS 100000ull   /* between two looks at NCCL's asynchronous error */
#define CLOSE_NS (5 * NS_PER_S)   /* for ranks that leave together; later ones are not waited for */
#define NCCL_HAS_MULTI_RANK_GPU 23003 /* first version that lets ranks share a GPU by itself */
#define MISSING_BYTES 160

struct nccl {
    struct launch *l;    /* borrowed; outlives us */
    ncclComm_t comm;     /* NULL: none */
    cudaStream_t stream; /* NULL: none; exists exactly while comm does */
    unsigned generation; /* the last one in which a communicator was tried; 0: none */
    char name[BOARD_RUN_ID_BYTES];
};

static void nap(uint64_t ns)
{
    struct timespec t = {.tv_sec = 0, .tv_nsec = (long)ns};
    nanosleep(&t, NULL);
}

/* Gives AGAIN and STOP their text; returns r. */
static int group_verdict(struct launch *l, int r)
{
    if (r == LAUNCH_STOP)
        return launch_fail(l, LAUNCH_STOP, "the launcher asks the job to end");
    if (r == LAUNCH_AGAIN)
        return launch_fail(l, LAUNCH_AGAIN, "generation %u is over", launch_generation(l));
    return r;
}

static int fail_cuda(struct launch *l, const char *call, cudaError_t e)
{
    return launch_fail(l, LAUNCH_FAILED, "%s: %s", call, cudaGetErrorString(e));
}

/* Two ranks on one GPU is the one NCCL error that has an option of ours as its answer. */
static int fail_nccl(struct nccl *n, const char *call, ncclResult_t e)
{
    const char *last = ncclGetLastError(n->comm);
    if (!last)
        last = "";

    if (e == ncclInvalidUsage && (strstr(last, "Duplicate GPU") || strstr(last, "same GPU"))) {
        if (launch_device_board(n->l)->head->flags & BOARD_FLAG_SHARE_GPUS)
            return launch_fail(n->l, LAUNCH_INVALID,
                               "NCCL refuses ranks on one GPU in spite of --share-gpus; is "
                               "NCCL_HOSTID set by the job? (%s)",
                               last);
        return launch_fail(n->l, LAUNCH_INVALID,
                           "several ranks use one GPU; start with --share-gpus if that is "
                           "meant (%s)",
                           last);
    }
    return launch_fail(n->l, LAUNCH_FAILED, "%s: %s%s%s", call, ncclGetErrorString(e),
                       *last ? ": " : "", last);
}

/* Abort, never destroy: it is the only call that returns when a peer is gone. The stream goes
 * with it, for what is queued there may belong to a collective that never ends. */
static void drop(struct nccl *n)
{
    if (n->comm)
        ncclCommAbort(n->comm);
    n->comm = NULL;
    if (n->stream)
        cudaStreamDestroy(n->stream);
    n->stream = NULL;
}

/* Until a call that answered `e` is through. LAUNCH_OK, AGAIN, STOP, INVALID, FAILED with a
 * text; TIMEOUT without. */
static int await_call(struct nccl *n, const char *call, ncclResult_t e, uint64_t deadline_ns)
{
    uint64_t sleep_ns = NAP_MIN_NS;

    while (e == ncclInProgress) {
        int r = group_verdict(n->l, launch_check(n->l));
        if (r != LAUNCH_OK)
            return r;
        if (clock_now_ns() >= deadline_ns)
            return LAUNCH_TIMEOUT;
        nap(sleep_ns);
        if (sleep_ns < NAP_MAX_NS)
            sleep_ns *= 2;
        ncclResult_t asked = ncclCommGetAsyncError(n->comm, &e);
        if (asked != ncclSuccess)
            e = asked;
    }
    return e == ncclSuccess ? LAUNCH_OK : fail_nccl(n, call, e);
}

/* The end of ranks that leave together: true when everything that was sent has arrived. */
static bool finalize(struct nccl *n)
{
    uint64_t deadline_ns = clock_now_ns() + CLOSE_NS;

    return await_call(n, "ncclCommFinalize", ncclCommFinalize(n->comm), deadline_ns) == LAUNCH_OK;
}

static void nccl_close(void *device, int peers_alive)
{
    struct nccl *n = device;

    if (!n)
        return;
    if (n->comm && peers_alive && finalize(n)) {
        ncclCommDestroy(n->comm);
        n->comm = NULL;
    }
    drop(n);
    free(n);
}

/* What the job queued on the old communicator never ends: both go, the GPU and its memory stay. */
static void nccl_again(void *device)
{
    drop(device);
}

static const struct device_ops NCCL_OPS = {
    .name = "nccl", .close = nccl_close, .again = nccl_again};

/* Has that rank come as far as we have? A rank that is done shows STAGE_RUNNING again; that it
 * had this generation's id tells it from one that never came. */
static bool has_come(const struct launch *l, uint32_t rank, unsigned generation)
{
    const struct board_head *head = launch_device_board(l)->head;
    const struct board_slot *slot = launch_device_peer(l, rank);

    if (atomic_load(&slot->generation) != generation)
        return false;
    if (atomic_load(&slot->stage) == STAGE_COMM_INIT)
        return true;
    uint64_t seen_ns = atomic_load(&slot->id_seen_ns);
    return seen_ns && atomic_load(&head->id_generation) == generation &&
           seen_ns >= head->id_published_ns;
}

/* "rank 1, 4, 5" or "ranks ... and 12 more"; returns how many. */
static unsigned missing_ranks(const struct launch *l, unsigned generation, uint32_t nranks,
                              char *text, size_t size)
{
    unsigned missing = 0, listed = 0;
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t rank = 0; rank < nranks; rank++) {
        if (has_come(l, rank, generation))
            continue;
        missing++;
        if (size - used < sizeof(", 4294967295 and 4294967295 more"))
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s%u", listed ? ", " : "rank ", rank);
        listed++;
    }
    if (missing > listed)
        snprintf(text + used, size - used, " and %u more", missing - listed);
    return missing;
}

static int fail_timeout(struct nccl *n)
{
    const struct board *b = launch_device_board(n->l);
    uint32_t nranks = (uint32_t)launch_world_size(n->l);
    char missing[MISSING_BYTES];

    if (missing_ranks(n->l, n->generation, nranks, missing, sizeof(missing)) > 0)
        return launch_fail(n->l, LAUNCH_TIMEOUT,
                           "communicator not set up after %u ms: %s did not ask for it",
                           b->head->rendezvous_timeout_ms, missing);
    return launch_fail(n->l, LAUNCH_TIMEOUT,
                       "communicator not set up after %u ms: all ranks are in "
                       "ncclCommInitRank",
                       b->head->rendezvous_timeout_ms);
}

/* Only rank 0 writes these fields; the number of the generation goes last and hands them over. */
static int publish_id(struct nccl *n, ncclUniqueId *ret)
{
    struct board_head *head = launch_device_board(n->l)->head;

    ncclResult_t e = ncclGetUniqueId(ret);
    if (e != ncclSuccess)
        return fail_nccl(n, "ncclGetUniqueId", e);

    memcpy(head->id, ret, sizeof(head->id));
    head->id_nranks = (uint32_t)launch_world_size(n->l);
    head->id_published_ns = clock_now_ns();
    atomic_store_explicit(&head->id_generation, n->generation, memory_order_release);
    board_wake(&head->id_generation);
    return LAUNCH_OK;
}

static int await_id(struct nccl *n, ncclUniqueId *ret, uint64_t deadline_ns)
{
    const struct board *b = launch_device_board(n->l);
    struct board_head *head = b->head;

    for (;;) {
        /* Epoch before the look at the group: a change behind that look then ends the wait. */
        uint32_t epoch = atomic_load_explicit(&head->epoch, memory_order_acquire);
        int r = group_verdict(n->l, launch_check(n->l));
        if (r != LAUNCH_OK)
            return r;
        int rc = board_await_id(b, n->generation, epoch, deadline_ns);
        if (rc == 0)
            break;
        if (rc == -ETIMEDOUT)
            return fail_timeout(n);
    }
    if (head->id_nranks != (uint32_t)launch_world_size(n->l))
        return launch_fail(n->l, LAUNCH_INVALID,
                           "rank 0 made a unique id for %u ranks, this rank counts %d",
                           head->id_nranks, launch_world_size(n->l));
    memcpy(ret, head->id, sizeof(*ret));
    return LAUNCH_OK;
}

static int unique_id(struct nccl *n, ncclUniqueId *ret, uint64_t deadline_ns)
{
    static_assert(sizeof(ncclUniqueId) == BOARD_ID_BYTES, "NCCL's unique id fits the board");

    int r = launch_rank(n->l) == 0 ? publish_id(n, ret) : await_id(n, ret, deadline_ns);
    if (r == LAUNCH_OK)
        atomic_store(&launch_device_slot(n->l)->id_seen_ns, clock_now_ns());
    return r;
}

/* Non-blocking, for only then can a rank that never comes be given up. */
static int init_comm(struct nccl *n, const ncclUniqueId *id, uint64_t deadline_ns)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

    config.blocking = 0;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
    config.commName = n->name;
#endif
    ncclResult_t e =
        ncclCommInitRankConfig(&n->comm, launch_world_size(n->l), *id, launch_rank(n->l), &config);
    int r = await_call(n, "ncclCommInitRankConfig", e, deadline_ns);
    return r == LAUNCH_TIMEOUT ? fail_timeout(n) : r;
}

/* Before NCCL reads its environment: where it can share a GPU by itself, ranks need not
 * pretend to be on different hosts, and keep shared memory between them. A user's own
 * NCCL_HOSTID stays. */
static void prepare_sharing(void)
{
    int version = 0;

    if (ncclGetVersion(&version) != ncclSuccess || version < NCCL_HAS_MULTI_RANK_GPU)
        return;
    const char *host = getenv("NCCL_HOSTID");
    if (host && strncmp(host, "launch-", 7) == 0)
        unsetenv("NCCL_HOSTID");
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
}

static int make_comm(struct nccl *n)
{
    const struct board_head *head = launch_device_board(n->l)->head;
    uint64_t deadline_ns = clock_deadline_ns(head->rendezvous_timeout_ms);
    ncclUniqueId id;

    if (head->flags & BOARD_FLAG_SHARE_GPUS)
        prepare_sharing();
    cudaError_t e = cudaSetDevice(launch_device(n->l));
    if (e != cudaSuccess)
        return fail_cuda(n->l, "cudaSetDevice", e);
    e = cudaStreamCreateWithFlags(&n->stream, cudaStreamNonBlocking);
    if (e != cudaSuccess)
        return fail_cuda(n->l, "cudaStreamCreateWithFlags", e);

    launch_device_set_stage(n->l, STAGE_COMM_INIT);
    int r = unique_id(n, &id, deadline_ns);
    if (r == LAUNCH_OK)
        r = init_comm(n, &id, deadline_ns);
    if (r == LAUNCH_OK)
        launch_device_set_stage(n->l, STAGE_RUNNING);
    return r;
}

static int check_gpus(struct launch *l)
{
    if (launch_device(l) < 0)
        return launch_fail(l, LAUNCH_INVALID, "this job has no GPU");

    const struct board_head *head = launch_device_board(l)->head;
    uint32_t workers = (uint32_t)launch_local_world_size(l);
    if (workers > head->gpu_count && !(head->flags & BOARD_FLAG_SHARE_GPUS))
        return launch_fail(l, LAUNCH_INVALID,
                           "%u workers for %u GPU%s: start fewer, or with --share-gpus", workers,
                           head->gpu_count, head->gpu_count == 1 ? "" : "s");
    return LAUNCH_OK;
}

/* The backend's object of this membership; made at the first call. NULL: no memory. */
static struct nccl *attach(struct launch *l)
{
    struct nccl *n = launch_device_object(l);
    if (n)
        return n;

    n = calloc(1, sizeof(*n));
    if (!n)
        return NULL;
    n->l = l;
    memcpy(n->name, launch_device_board(l)->head->run_id, sizeof(n->name) - 1);
    launch_device_attach(l, &NCCL_OPS, n);
    return n;
}

int launch_nccl_comm(struct launch *l, ncclComm_t *ret_comm, cudaStream_t *ret_stream)
{
    int r = check_gpus(l);
    if (r != LAUNCH_OK)
        return r;
    struct nccl *n = attach(l);
    if (!n)
        return launch_fail(l, LAUNCH_FAILED, "out of memory");

    r = group_verdict(l, launch_check(l));
    unsigned generation = launch_generation(l);
    if (r == LAUNCH_AGAIN || n->generation != generation)
        drop(n);
    if (r != LAUNCH_OK)
        return r;

    if (!n->comm) {
        /* An id serves one initialisation, and a generation has one id. */
        if (n->generation == generation)
            return launch_fail(l, LAUNCH_FAILED,
                               "the communicator of generation %u has failed already", generation);
        n->generation = generation;
        r = make_comm(n);
        if (r != LAUNCH_OK) {
            drop(n);
            return r;
        }
    }
    *ret_comm = n->comm;
    if (ret_stream)
        *ret_stream = n->stream;
    return LAUNCH_OK;
}

static int look_at_nccl(struct nccl *n)
{
    ncclResult_t async = ncclSuccess;
    ncclResult_t call = ncclCommGetAsyncError(n->comm, &async);

    if (call != ncclSuccess)
        return fail_nccl(n, "ncclCommGetAsyncError", call);
    if (async != ncclSuccess && async != ncclInProgress)
        return fail_nccl(n, "NCCL", async);
    return LAUNCH_OK;
}

/* Sleeps in proportion to the time waited, so that a wait is at most a little longer than the
 * work. */
static void wait_nap(uint64_t waited_ns)
{
    uint64_t ns = waited_ns / 16;

    if (waited_ns >= WAIT_SPIN_NS)
        nap(ns < WAIT_NAP_MAX_NS ? ns : WAIT_NAP_MAX_NS);
}

static int wait_stream(struct nccl *n)
{
    uint64_t start_ns = clock_now_ns();
    uint64_t look_ns = start_ns + ASYNC_LOOK_NS;

    for (;;) {
        cudaError_t e = cudaStreamQuery(n->stream);
        if (e != cudaSuccess && e != cudaErrorNotReady)
            return fail_cuda(n->l, "cudaStreamQuery", e);

        /* Also when the work is done: collectives that were cut short look like finished ones.
         * A request to stop does not spoil finished work; it meets the job at its next step. */
        int r = launch_check(n->l);
        if (r == LAUNCH_AGAIN || (r != LAUNCH_OK && e == cudaErrorNotReady))
            return group_verdict(n->l, r);

        uint64_t now_ns = clock_now_ns();
        if (e == cudaSuccess || now_ns >= look_ns) {
            r = look_at_nccl(n);
            if (r != LAUNCH_OK || e == cudaSuccess)
                return r;
            look_ns = now_ns + ASYNC_LOOK_NS;
        }
        wait_nap(now_ns - start_ns);
    }
}

/* The backend's object, if there is a communicator to talk about. */
static struct nccl *with_comm(struct launch *l, const char *call)
{
    struct nccl *n = launch_device_object(l);

    if (n && n->comm)
        return n;
    launch_fail(l, LAUNCH_INVALID, "%s() without a communicator: call launch_nccl_comm() first",
                call);
    return NULL;
}

int launch_nccl_call(struct launch *l, ncclResult_t result)
{
    struct nccl *n = with_comm(l, "launch_nccl_call");

    if (!n)
        return LAUNCH_INVALID;
    int r = await_call(n, "NCCL", result, CLOCK_NEVER);
    if (r != LAUNCH_OK)
        drop(n);
    return r;
}

/* NCCL first: as long as a call is not through, its work is not on the stream, and the stream
 * looks idle. */
int launch_nccl_wait(struct launch *l)
{
    struct nccl *n = with_comm(l, "launch_nccl_wait");

    if (!n)
        return LAUNCH_INVALID;
    ncclResult_t state = ncclSuccess;
    ncclResult_t asked = ncclCommGetAsyncError(n->comm, &state);
    int r = await_call(n, "NCCL", asked == ncclSuccess ? state : asked, CLOCK_NEVER);
    if (r == LAUNCH_OK)
        r = wait_stream(n);
    if (r != LAUNCH_OK)
        drop(n);
    return r;
}
