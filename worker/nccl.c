/* SPDX-License-Identifier: MIT */
/* The CUDA + NCCL backend: one communicator over all ranks and its stream, per generation; what the job's thread does with
 * them. Must never wait without looking at the deadline, the generation and the stop flag: NCCL itself does not notice that
 * a rank has died. */
#include "nccl_inside.h"

#include "../proto/clock.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAP_MIN_NS 10000ull
#define NAP_MAX_NS NS_PER_MS          /* while the communicator is set up */
#define WAIT_SPIN_NS NS_PER_MS        /* a stream is watched this closely before we sleep ... */
#define WAIT_NAP_MAX_NS 200000ull     /* ... and never less closely than this */
#define ASYNC_LOOK_NS 100000ull       /* between two looks at NCCL's asynchronous error */
#define SPIN_MAX_NS 200000ull         /* while NCCL's thread takes a call in */
#define NEWS_NS (10 * NS_PER_S)       /* the agent's news of a death surely come so soon */
#define NEWS_MAYBE_NS (2 * NS_PER_S)  /* ... and mostly so soon */
#define BEGIN_BYTES (1ull << 30)      /* free memory that a communicator surely fits into */
#define NCCL_HAS_MULTI_RANK_GPU 23003 /* first version that lets ranks share a GPU by itself */

/* ---- shared by the files of the backend ---- */

int nccl_thread(pthread_t *ret, void *(*main)(void *), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(ret, NULL, main, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

void nccl_nap(uint64_t ns)
{
    struct timespec t = {.tv_sec = 0, .tv_nsec = (long)ns};
    nanosleep(&t, NULL);
}

int nccl_verdict(struct launch *l, int r)
{
    if (r == LAUNCH_STOP)
        return launch_fail(l, LAUNCH_STOP, "the launcher asks the job to end");
    if (r == LAUNCH_AGAIN)
        return launch_fail(l, LAUNCH_AGAIN, "generation %u is over", launch_generation(l));
    return r;
}

int nccl_fail_cuda(struct launch *l, const char *call, cudaError_t e)
{
    return launch_fail(l, LAUNCH_FAILED, "%s: %s", call, cudaGetErrorString(e));
}

/* Two ranks on one GPU is the one NCCL error that has an option of ours as its answer. */
int nccl_fail(struct nccl *n, const char *call, ncclResult_t e)
{
    const char *last = ncclGetLastError(n->line ? n->line->comm : NULL);
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

/* None where ranks have no CPU each. */
static uint64_t spin_ns(const struct launch *l)
{
    uint32_t ns = launch_device_board(l)->head->spin_ns;
    return ns < SPIN_MAX_NS ? ns : SPIN_MAX_NS;
}

static ncclResult_t async_error(const struct nccl *n)
{
    ncclResult_t e = ncclSuccess;
    ncclResult_t asked = ncclCommGetAsyncError(n->line->comm, &e);
    return asked == ncclSuccess ? e : asked;
}

/* NCCL may notice that a rank is gone before the agent has told of it, which makes all the difference to the job: by a
 * connection that is closed, or, while it connects, by the other's memory or files that are no more. */
static uint64_t await_news_ns(const struct nccl *n, ncclResult_t e)
{
    if (!nccl_outlives(n->l))
        return 0;
    if (e == ncclRemoteError)
        return NEWS_NS;
    return e == ncclUnhandledCudaError || e == ncclSystemError ? NEWS_MAYBE_NS : 0;
}

int nccl_await_call(struct nccl *n, const char *call, ncclResult_t e, uint64_t deadline_ns)
{
    uint64_t sleep_ns = NAP_MIN_NS, spin_until_ns = 0, news_until_ns = 0;

    for (;;) {
        if (e == ncclInProgress)
            e = async_error(n);
        if (atomic_load(&n->line->cut))
            return nccl_verdict(n->l, LAUNCH_AGAIN); /* whatever the call says */
        if (e == ncclSuccess)
            return LAUNCH_OK;
        /* An error may only say that peers have left a generation that is over, or at the end. */
        int r = launch_check(n->l);
        if (r != LAUNCH_OK)
            return nccl_verdict(n->l, r);
        uint64_t now_ns = clock_now_ns();
        if (!spin_until_ns)
            spin_until_ns = now_ns + spin_ns(n->l);
        if (e != ncclInProgress && !news_until_ns)
            news_until_ns = now_ns + await_news_ns(n, e);
        if (e != ncclInProgress && (now_ns >= news_until_ns || now_ns >= deadline_ns))
            return nccl_fail(n, call, e);
        if (now_ns >= deadline_ns)
            return LAUNCH_TIMEOUT;
        if (now_ns >= spin_until_ns) {
            nccl_nap(sleep_ns);
            if (sleep_ns < NAP_MAX_NS)
                sleep_ns *= 2;
        }
    }
}

/* Where NCCL can share a GPU by itself, ranks need not pretend to be on different hosts, and keep shared memory between
 * them. A user's own NCCL_HOSTID stays. */
void nccl_prepare_sharing(const struct launch *l)
{
    int version = 0;

    if (!(launch_device_board(l)->head->flags & BOARD_FLAG_SHARE_GPUS) ||
        ncclGetVersion(&version) != ncclSuccess || version < NCCL_HAS_MULTI_RANK_GPU)
        return;
    const char *host = getenv("NCCL_HOSTID");
    if (host && strncmp(host, "launch-", 7) == 0)
        unsetenv("NCCL_HOSTID");
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
}

/* ---- what is counted, for --hang-timeout ---- */

static void count(_Atomic uint64_t *counter)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* All that is put on the stream between two waits counts as one collective, but never more than what belongs to one step: a
 * job may wait by itself, in cudaStreamSynchronize(). */
static void set_busy(struct nccl *n, bool busy)
{
    struct board_slot *slot = launch_device_slot(n->l);
    if (n->busy == busy)
        return;
    n->busy = busy;
    count(busy ? &slot->entered : &slot->finished);
}

static void count_entry(struct nccl *n)
{
    uint64_t step = atomic_load_explicit(&launch_device_slot(n->l)->step, memory_order_relaxed);
    if (step != n->step)
        set_busy(n, false);
    n->step = step;
    set_busy(n, true);
}

/* ---- the backend's object ---- */

static void get_out(struct nccl *n)
{
    if (n->inside)
        line_leave(n->line);
    n->inside = false;
}

/* The present communicator becomes its guard's, which waits for us to come out. */
static void give_up(struct nccl *n)
{
    struct line *line = n->line;
    if (!line)
        return;
    line_give_up(line);
    get_out(n);
    line->next = n->given;
    n->given = line;
    n->line = NULL;
}

static void nccl_close(void *device, int peers_alive)
{
    struct nccl *n = device;

    if (!n)
        return;
    if (n->line && peers_alive && !n->inside && atomic_load(&n->line->ready))
        line_part(n->line);
    give_up(n);
    line_reap(n->given, true);
    free(n);
}

/* When this returns, nothing of the old generation writes to the job's memory any more. */
static void nccl_again(void *device)
{
    struct nccl *n = device;

    set_busy(n, false);
    if (!n->line)
        return;
    get_out(n);
    if (line_await_idle(n->line))
        give_up(n);
}

static const struct device_ops NCCL_OPS = {
    .name = "nccl", .close = nccl_close, .again = nccl_again, .memory = &NCCL_MEMORY};

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
    launch_device_attach(l, &NCCL_OPS, n);
    return n;
}

/* n->line, whose communicator is on its way; the device is ours. */
static int start_line(struct nccl *n, uint64_t deadline_ns)
{
    nccl_prepare_sharing(n->l);
    int r = line_open(&n->line, n->l);
    if (r != LAUNCH_OK)
        return r;
    r = line_enter(n->line);
    if (r == LAUNCH_OK) {
        r = nccl_start_comm(n, deadline_ns);
        line_leave(n->line);
    }
    if (r != LAUNCH_OK)
        give_up(n);
    return r;
}

static int finish_line(struct nccl *n, uint64_t deadline_ns)
{
    int r = line_enter(n->line);
    if (r == LAUNCH_OK) {
        r = nccl_finish_comm(n, deadline_ns);
        if (r == LAUNCH_OK)
            atomic_store(&n->line->ready, true);
        else
            line_give_up(n->line); /* before the guard can take it for one that works */
        line_leave(n->line);
    }
    if (r != LAUNCH_OK)
        give_up(n);
    return r;
}

static int make_comm(struct nccl *n)
{
    uint64_t deadline_ns =
        clock_deadline_ns(launch_device_board(n->l)->head->rendezvous_timeout_ms);
    int r = LAUNCH_OK;
    launch_device_set_stage(n->l, STAGE_COMM_INIT);
    cudaError_t e = cudaSetDevice(launch_device(n->l));
    if (e != cudaSuccess)
        return nccl_fail_cuda(n->l, CALL_NAME(cudaSetDevice), e);
    if (!n->line) {
        /* An id serves one initialisation, and a generation has one id. */
        unsigned generation = launch_generation(n->l);
        if (n->generation == generation)
            return launch_fail(n->l, LAUNCH_FAILED,
                               "the communicator of generation %u has failed already", generation);
        n->generation = generation;
        r = start_line(n, deadline_ns);
    }
    if (r == LAUNCH_OK)
        r = finish_line(n, deadline_ns);
    if (r != LAUNCH_OK)
        return r;
    launch_device_set_stage(n->l, STAGE_RUNNING);
    atomic_fetch_or(&launch_device_slot(n->l)->join_flags, BOARD_JOIN_USES_DEVICE);
    return LAUNCH_OK;
}

int launch_nccl_comm(struct launch *l, ncclComm_t *ret_comm, cudaStream_t *ret_stream)
{
    if (!ret_comm)
        return launch_fail(l, LAUNCH_INVALID, "launch_nccl_comm: no place for the communicator");
    int r = check_gpus(l);
    if (r != LAUNCH_OK)
        return r;
    struct nccl *n = attach(l);
    if (!n)
        return launch_fail(l, LAUNCH_FAILED, "out of memory");
    r = nccl_verdict(l, launch_check(l));
    if (r != LAUNCH_OK)
        return r;

    n->given = line_reap(n->given, false);
    if (!n->line || !atomic_load(&n->line->ready)) {
        r = make_comm(n);
        if (r != LAUNCH_OK || !n->line)
            return r;
    }
    r = line_enter(n->line); /* or the guard may be about to free it */
    if (r != LAUNCH_OK)
        return r;
    *ret_comm = n->line->comm;
    if (ret_stream)
        *ret_stream = n->line->stream;
    line_leave(n->line);
    return LAUNCH_OK;
}

/* ---- while the dead are dying ---- */

/* A process that was here before, or a standby that has the driver's context already: what is started now is through, or nearly,
 * when the dead have given their memory back. A GPU that they have filled is not touched before. */
static bool has_room(const struct launch *l)
{
    bool shared = launch_device_board(l)->head->flags & BOARD_FLAG_SHARE_GPUS;
    size_t ranks = shared ? (size_t)launch_local_world_size(l) : 1;
    size_t left = 0, all = 0;
    bool told = cudaSetDevice(launch_device(l)) == cudaSuccess &&
                cudaMemGetInfo(&left, &all) == cudaSuccess;
    return told && left / ranks >= BEGIN_BYTES;
}

static bool try_to_begin(struct launch *l)
{
    struct nccl *n = has_room(l) ? attach(l) : NULL;
    if (!n)
        return false;
    if (n->line || n->generation == launch_generation(l))
        return true;
    n->generation = launch_generation(l);
    if (start_line(n, CLOCK_NEVER) == LAUNCH_OK)
        return true;
    n->generation = 0; /* launch_nccl_comm() tries again, and tells why not */
    return false;
}

static _Atomic uint32_t *begin(struct launch *l, uint32_t *seen)
{
    _Atomic uint32_t *published = &launch_device_board(l)->head->id_generation;
    if (!nccl_outlives(l) || check_gpus(l) != LAUNCH_OK)
        return NULL;
    *seen = atomic_load_explicit(published, memory_order_acquire);
    if (launch_rank(l) != 0 && *seen != launch_generation(l))
        return published;
    if (!try_to_begin(l))
        cudaGetLastError(); /* it is no error of the job's */
    return NULL;
}

static const struct device_offer OFFER = {.warm = nccl_warm, .begin = begin};

__attribute__((constructor)) static void offer(void)
{
    launch_device_offer(&OFFER);
}

int launch_nccl_keep(struct launch *l, void *data, size_t bytes)
{
    if (launch_device(l) < 0)
        return launch_fail(l, LAUNCH_INVALID, "this job has no GPU");
    if (!attach(l))
        return launch_fail(l, LAUNCH_FAILED, "out of memory");
    return launch_device_keep(l, data, bytes);
}

/* ---- calls ---- */

/* The backend's object, if there is a communicator to talk about. */
static struct nccl *with_comm(struct launch *l, const char *call)
{
    struct nccl *n = launch_device_object(l);

    if (launch_generation(l) == 0)
        return NULL; /* in a forked child, as launch_error() says since the fork */
    if (n && n->line && atomic_load(&n->line->ready))
        return n;
    launch_fail(l, LAUNCH_INVALID, "%s() without a communicator: call launch_nccl_comm() first",
                call);
    return NULL;
}

/* After AGAIN the stream stays the job's until launch_meet(); after any other failure nothing does. */
static int end_call(struct nccl *n, int r)
{
    if (r != LAUNCH_OK && r != LAUNCH_AGAIN)
        give_up(n);
    return r;
}

int launch_nccl_enter(struct launch *l)
{
    struct nccl *n = with_comm(l, "launch_nccl_call");

    if (!n)
        return LAUNCH_INVALID;
    n->nested = n->inside;
    if (n->nested)
        return launch_fail(l, LAUNCH_INVALID,
                           "launch_nccl_enter() without launch_nccl_leave() before");
    n->refused = line_enter(n->line);
    n->inside = n->refused == LAUNCH_OK;
    if (n->inside)
        count_entry(n);
    return n->refused;
}

int launch_nccl_leave(struct launch *l, ncclResult_t result)
{
    struct nccl *n = with_comm(l, "launch_nccl_call");

    if (!n)
        return LAUNCH_INVALID;
    if (n->nested && result == ncclInvalidUsage) /* the macro's, and not NCCL's */
        return LAUNCH_INVALID;
    if (!n->inside)
        return n->refused ? n->refused
                          : launch_fail(l, LAUNCH_INVALID,
                                        "launch_nccl_leave() without launch_nccl_enter()");
    int r = nccl_await_call(n, "NCCL", result, CLOCK_NEVER);
    get_out(n);
    return end_call(n, r);
}

/* ---- waiting ---- */

/* The asynchronous error of comm; *ret: ncclInProgress is not waited for if `wait` is false. */
static int look_at_nccl(struct nccl *n, bool wait)
{
    int r = line_enter(n->line);
    if (r != LAUNCH_OK)
        return r;
    ncclResult_t state = async_error(n);
    if (wait || state != ncclInProgress)
        r = nccl_await_call(n, "NCCL", state, CLOCK_NEVER);
    line_leave(n->line);
    return r;
}

/* Sleeps in proportion to the time waited, so that a wait is at most a little longer than the
 * work. */
static void wait_nap(uint64_t waited_ns)
{
    uint64_t ns = waited_ns / 16;

    if (waited_ns >= WAIT_SPIN_NS)
        nccl_nap(ns < WAIT_NAP_MAX_NS ? ns : WAIT_NAP_MAX_NS);
}

static int wait_stream(struct nccl *n)
{
    uint64_t start_ns = clock_now_ns();
    uint64_t look_ns = start_ns + ASYNC_LOOK_NS;

    for (;;) {
        cudaError_t e = cudaStreamQuery(n->line->stream);
        if (e != cudaSuccess && e != cudaErrorNotReady)
            return nccl_fail_cuda(n->l, CALL_NAME(cudaStreamQuery), e);

        /* Also when the work is done: collectives that were cut short look like finished ones.
         * A request to stop does not spoil finished work; it meets the job at its next step. */
        int r = launch_check(n->l);
        if (r == LAUNCH_AGAIN || (r != LAUNCH_OK && e == cudaErrorNotReady))
            return nccl_verdict(n->l, r);

        uint64_t now_ns = clock_now_ns();
        if (e == cudaSuccess || now_ns >= look_ns) {
            r = look_at_nccl(n, false);
            if (r != LAUNCH_OK || e == cudaSuccess)
                return r;
            look_ns = now_ns + ASYNC_LOOK_NS;
        }
        wait_nap(now_ns - start_ns);
    }
}

static int check_capture(struct nccl *n)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaError_t e = cudaStreamIsCapturing(n->line->stream, &status);
    if (e != cudaSuccess) /* perhaps of a kernel before */
        return nccl_fail_cuda(n->l, CALL_NAME(cudaStreamIsCapturing), e);
    if (status == cudaStreamCaptureStatusNone)
        return LAUNCH_OK;
    return launch_fail(n->l, LAUNCH_INVALID,
                       "launch_nccl_wait() while the stream is captured: end the capture first");
}

/* NCCL first: as long as a call is not through, its work is not on the stream, and the stream
 * looks idle. */
int launch_nccl_wait(struct launch *l)
{
    struct nccl *n = with_comm(l, "launch_nccl_wait");

    if (!n)
        return LAUNCH_INVALID;
    if (n->inside)
        return launch_fail(
            l, LAUNCH_INVALID,
            "launch_nccl_wait() between launch_nccl_enter() and launch_nccl_leave()");
    int r = check_capture(n);
    if (r == LAUNCH_INVALID)
        return r;
    if (r == LAUNCH_OK)
        r = look_at_nccl(n, true);
    if (r == LAUNCH_OK)
        r = wait_stream(n);
    if (r == LAUNCH_OK)
        set_busy(n, false);
    return end_call(n, r);
}
