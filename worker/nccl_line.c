/* SPDX-License-Identifier: MIT */
/* A communicator with its stream, and its guard: the thread that frees the job's thread when a rank was lost. NCCL tells
 * nobody of a death, and the job may sleep in cudaStreamSynchronize(): so the guard waits for the board, and not the job.
 *
 * What it has to mind: an abort takes half a second, hence a thread of each communicator's own, while the stream is free
 * after milliseconds; abort or revoke while another thread is inside an NCCL call on the communicator hangs both, hence
 * `inside`; an abort frees what the job's pointer points to, hence revoke, where NCCL has it, as long as the job has not
 * given the communicator up; and what was cut short looks finished, which is for the job's thread to mind. */
#include "nccl_inside.h"

#include "../proto/clock.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NCCL_HAS_REVOKE 22807
#define STUCK_NS                                                                                   \
    (300 * NS_PER_MS) /* a call that takes longer waits for the GPU, which waits for the dead */
#define REVOKE_NS (5 * NS_PER_S)
#define PART_NS (5 * NS_PER_S) /* for ranks that leave together; later ones are not waited for */
#define LEAVE_NS (PART_NS + 2 * NS_PER_S) /* with an abort after it */
#define NAP_NS 20000ull

typedef ncclResult_t revoke_function(ncclComm_t comm, int flags);

/* NULL: this NCCL has none. */
static revoke_function *find_revoke(void)
{
    int version = 0;
    revoke_function *revoke = NULL;
    if (ncclGetVersion(&version) == ncclSuccess && version >= NCCL_HAS_REVOKE)
        *(void **)&revoke = dlsym(RTLD_DEFAULT, "ncclCommRevoke");
    return revoke;
}

static bool is_over(const struct line *line)
{
    const struct board_head *head = launch_device_board(line->l)->head;
    return atomic_load_explicit(&head->generation, memory_order_acquire) != line->generation;
}

/* ---- the guard ---- */

static void await_end(struct line *line, bool or_over)
{
    const struct board *b = launch_device_board(line->l);
    for (;;) {
        if (atomic_load(&line->given_up))
            return; /* the membership and its board may be gone */
        uint32_t epoch = atomic_load_explicit(&b->head->epoch, memory_order_acquire);
        if (or_over && is_over(line))
            return;
        (void)!board_wait(b, &line->given_up, 0, epoch, CLOCK_NEVER); /* whatever woke us: look */
    }
}

/* Takes comm from the job's thread; false: that has given it up. A thread that does not come out of NCCL waits for a GPU
 * whose queue is full: only the end of what is queued gets it out, and a revoked communicator stays where it is. */
static bool cut(struct line *line, bool can_revoke)
{
    uint64_t until_ns = clock_now_ns() + STUCK_NS;
    bool locked;
    /* Not pthread_mutex_clocklock(), which TSan does not know, and C libraries before glibc 2.30 do not have. */
    while (!(locked = pthread_mutex_trylock(&line->inside) == 0) && clock_now_ns() < until_ns)
        nccl_nap(NAP_NS);
    if (!locked && !(can_revoke && atomic_load(&line->ready)))
        locked = pthread_mutex_lock(&line->inside) == 0;
    bool ours = !atomic_load(&line->given_up);
    if (ours)
        atomic_store(&line->cut, true);
    if (locked)
        pthread_mutex_unlock(&line->inside);
    return ours;
}

static void abort_comm(struct line *line)
{
    if (line->comm)
        ncclCommAbort(line->comm);
    line->comm = NULL;
}

static void free_stream(struct line *line, revoke_function *revoke)
{
    if (!line->comm || !atomic_load(&line->ready))
        return;
    if (!revoke) {
        abort_comm(line);
        return;
    }
    uint64_t until_ns = clock_now_ns() + REVOKE_NS;
    ncclResult_t e = revoke(line->comm, 0);
    while (e == ncclInProgress && clock_now_ns() < until_ns) {
        nccl_nap(NAP_NS);
        if (ncclCommGetAsyncError(line->comm, &e) != ncclSuccess)
            return;
    }
}

static void part(struct line *line)
{
    uint64_t until_ns = clock_now_ns() + PART_NS;
    ncclResult_t e = ncclCommFinalize(line->comm);
    while (e == ncclInProgress && atomic_load(&line->parting) && clock_now_ns() < until_ns) {
        nccl_nap(NAP_NS);
        if (ncclCommGetAsyncError(line->comm, &e) != ncclSuccess)
            return;
    }
    if (e != ncclSuccess)
        return;
    ncclCommDestroy(line->comm);
    line->comm = NULL;
}

/* Abort, never destroy, but in peace: it is the only call that returns when a peer is gone. */
static void *guard(void *arg)
{
    struct line *line = arg;
    revoke_function *revoke = find_revoke();
    pthread_setname_np(pthread_self(), "launch-nccl");
    cudaSetDevice(launch_device(line->l));
    await_end(line, true);
    bool was_cut = cut(line, revoke);
    if (was_cut)
        free_stream(line, revoke);
    await_end(line, false);
    if (atomic_load(&line->parting) && !was_cut)
        part(line);
    abort_comm(line);
    cudaStreamDestroy(line->stream);
    atomic_store(&line->gone, true);
    return NULL;
}

/* ---- the job's thread ---- */

int line_open(struct line **ret, struct launch *l)
{
    *ret = NULL;
    struct line *line = calloc(1, sizeof *line);
    if (!line)
        return launch_fail(l, LAUNCH_FAILED, "out of memory");
    line->l = l;
    line->generation = launch_generation(l);
    cudaError_t e = cudaStreamCreateWithFlags(&line->stream, cudaStreamNonBlocking);
    if (e != cudaSuccess) {
        free(line);
        return nccl_fail_cuda(l, CALL_NAME(cudaStreamCreateWithFlags), e);
    }
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&line->inside, &attr);
    pthread_mutexattr_destroy(&attr);
    memcpy(line->name, launch_device_board(l)->head->run_id, sizeof line->name - 1);
    int rc = nccl_thread(&line->guard, guard, line);
    if (rc) {
        pthread_mutex_destroy(&line->inside);
        cudaStreamDestroy(line->stream);
        free(line);
        return launch_fail(l, LAUNCH_FAILED, "a thread: %s", strerror(rc));
    }
    *ret = line;
    return LAUNCH_OK;
}

int line_enter(struct line *line)
{
    if (pthread_mutex_lock(&line->inside) != 0)
        return launch_fail(line->l, LAUNCH_INVALID,
                           "inside already: launch_nccl_enter() without launch_nccl_leave()");
    if (!atomic_load(&line->cut) && !is_over(line))
        return LAUNCH_OK;
    pthread_mutex_unlock(&line->inside);
    return nccl_verdict(line->l, LAUNCH_AGAIN);
}

void line_leave(struct line *line)
{
    pthread_mutex_unlock(&line->inside);
}

void line_give_up(struct line *line)
{
    atomic_store(&line->given_up, 1);
    board_wake(&line->given_up);
}

void line_part(struct line *line)
{
    atomic_store(&line->parting, true);
    line_give_up(line);
}

bool line_await_idle(struct line *line)
{
    while (cudaStreamQuery(line->stream) == cudaErrorNotReady) {
        if (launch_check(line->l) == LAUNCH_STOP)
            return false;
        nccl_nap(NAP_NS);
    }
    return true;
}

/* False: it is left to the guard, or to the thread of an initialisation that nothing ends. */
static bool await_gone(struct line *line)
{
    uint64_t until_ns = clock_now_ns() + LEAVE_NS;
    bool parts = atomic_load(&line->parting);
    if (line->init.threaded)
        pthread_detach(line->init.thread);
    while (parts && !atomic_load(&line->gone)) {
        if (launch_check(line->l) != LAUNCH_OK) /* some will never leave */
            atomic_store(&line->parting, false);
        if (clock_now_ns() >= until_ns) {
            pthread_detach(line->guard);
            return false;
        }
        nccl_nap(NAP_NS);
    }
    pthread_join(line->guard, NULL);
    return !line->init.threaded;
}

struct line *line_reap(struct line *first, bool all)
{
    struct line **at = &first;
    while (*at) {
        struct line *line = *at;
        if (!all && !atomic_load(&line->gone)) {
            at = &line->next;
            continue;
        }
        *at = line->next;
        if (!await_gone(line))
            continue;
        pthread_mutex_destroy(&line->inside);
        free(line);
    }
    return first;
}
