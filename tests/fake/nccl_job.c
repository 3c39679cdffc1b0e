/* SPDX-License-Identifier: MIT */
/* The workers of tests/worker/test_nccl.c: the real worker/nccl.c on fake CUDA and NCCL
 * libraries. argv[1] says what to do. Exit code: the launch_result without its sign; 100 and
 * more: a check below failed. */
#include "../../worker/device.h"
#include "../../worker/launch_nccl.h"

#include "../../proto/env.h"
#include "stream.h"

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CHECK(expr)                                                                                \
    do {                                                                                           \
        if (!(expr)) {                                                                             \
            fprintf(stderr, "nccl_job.c:%d: %s (%s)\n", __LINE__, #expr, launch_error(l));         \
            exit(100);                                                                             \
        }                                                                                          \
    } while (0)

#define FAKE_DEVICE_LAST 7
#define MANY 100001 /* int64 elements: more than one round of the fake, and not a multiple of it */

/* What the test waits for must ring. */
static void ring_bell(const struct launch *l)
{
    uint64_t one = 1;
    CHECK(write(atoi(getenv(ENV_BELL_FD)), &one, sizeof(one)) == sizeof(one));
}

static int meet(struct launch *l, ncclComm_t *comm, cudaStream_t *stream)
{
    return launch_nccl_comm(l, comm, stream);
}

/* Every element of a sum over all ranks is right. */
static int sum(struct launch *l)
{
    ncclComm_t comm;
    cudaStream_t stream;
    int n = launch_world_size(l), rank = launch_rank(l);
    int64_t *data;

    int r = meet(l, &comm, &stream);
    if (r != LAUNCH_OK)
        return r;
    CHECK(cudaMalloc((void **)&data, MANY * sizeof(*data)) == cudaSuccess);
    for (int64_t i = 0; i < MANY; i++)
        data[i] = i + rank;
    r = launch_nccl_call(l, ncclAllReduce(data, data, MANY, ncclInt64, ncclSum, comm, stream));
    if (r == LAUNCH_OK)
        r = launch_nccl_wait(l);
    for (int64_t i = 0; r == LAUNCH_OK && i < MANY; i++)
        CHECK(data[i] == i * n + n * (n - 1) / 2);
    cudaFree(data);
    return r;
}

static int same_twice(struct launch *l)
{
    ncclComm_t a, b;
    cudaStream_t s, t;

    int r = meet(l, &a, &s);
    CHECK(r == LAUNCH_OK && meet(l, &b, &t) == LAUNCH_OK &&
          launch_nccl_comm(l, &b, NULL) == LAUNCH_OK);
    CHECK(a == b && s == t);
    CHECK(launch_nccl_wait(l) == LAUNCH_OK); /* nothing queued */
    return sum(l);
}

static int two_sums(struct launch *l)
{
    int r = sum(l);
    return r == LAUNCH_OK ? sum(l) : r;
}

static int wait_first(struct launch *l)
{
    return launch_nccl_wait(l);
}

/* After a failure no second communicator in the same generation: its id has been used up. */
static int again_after_failure(struct launch *l)
{
    ncclComm_t comm;
    int r = sum(l);

    CHECK(r != LAUNCH_OK);
    CHECK(launch_nccl_comm(l, &comm, NULL) == LAUNCH_FAILED);
    CHECK(strstr(launch_error(l), "has failed already"));
    CHECK(launch_nccl_wait(l) == LAUNCH_INVALID);
    return r;
}

/* Joins, and never asks for the communicator unless it is rank 0. */
static int only_rank_0(struct launch *l)
{
    return launch_rank(l) == 0 ? sum(l) : launch_barrier(l);
}

/* All meet; after `sums` that all take part in, rank 0 alone waits for another. It tells the
 * test so by `step` and the bell. */
static int rank_0_waits(struct launch *l, int sums, void (*others)(void))
{
    ncclComm_t comm;
    cudaStream_t stream;
    int64_t data = 0;

    int r = meet(l, &comm, &stream);
    for (int i = 0; i < sums && r == LAUNCH_OK; i++)
        r = sum(l);
    if (launch_rank(l) != 0) { /* whom the end may already meet in their last sum */
        if (r != LAUNCH_OK)
            return r;
        others();
        return launch_barrier(l);
    }
    CHECK(r == LAUNCH_OK);
    ncclResult_t e = ncclAllReduce(&data, &data, 1, ncclInt64, ncclSum, comm, stream);
    CHECK(e == (sums ? ncclSuccess : ncclInProgress));
    atomic_store(&launch_device_slot(l)->step, 1);
    ring_bell(l);
    r = launch_nccl_wait(l);
    CHECK(r != LAUNCH_OK);
    CHECK(launch_nccl_comm(l, &comm, &stream) == r); /* still not in this generation */
    return r;
}

static void stay(void)
{
}

static void die(void)
{
    raise(SIGKILL);
}

static int others_stay(struct launch *l)
{
    return rank_0_waits(l, 1, stay);
}

static int others_never_connect(struct launch *l)
{
    return rank_0_waits(l, 0, stay);
}

static int others_die(struct launch *l)
{
    return rank_0_waits(l, 1, die);
}

/* Sum, min, max and product of every type that the fake reduces. */
static void check_reductions(struct launch *l, ncclComm_t comm, cudaStream_t stream)
{
    int n = launch_world_size(l), rank = launch_rank(l);
    double want[] = {[ncclSum] = n * (n + 1) / 2, [ncclProd] = 1, [ncclMax] = n, [ncclMin] = 1};

    for (int i = 2; i <= n; i++)
        want[ncclProd] *= i;
    for (ncclRedOp_t op = ncclSum; op <= ncclMin; op++) {
        int32_t i32 = rank + 1;
        int64_t i64 = rank + 1;
        float f32 = (float)(rank + 1);
        double f64 = rank + 1;
        CHECK(ncclGroupStart() == ncclSuccess);
        CHECK(ncclAllReduce(&i32, &i32, 1, ncclInt32, op, comm, stream) == ncclSuccess);
        CHECK(ncclAllReduce(&i64, &i64, 1, ncclInt64, op, comm, stream) == ncclSuccess);
        CHECK(ncclAllReduce(&f32, &f32, 1, ncclFloat, op, comm, stream) == ncclSuccess);
        CHECK(ncclAllReduce(&f64, &f64, 1, ncclDouble, op, comm, stream) == ncclSuccess);
        CHECK(launch_nccl_call(l, ncclGroupEnd()) == LAUNCH_OK);
        CHECK(launch_nccl_wait(l) == LAUNCH_OK);
        CHECK(i32 == want[op] && (double)i64 == want[op] && (double)f32 == want[op] &&
              f64 == want[op]);
    }
}

static void check_moves(struct launch *l, ncclComm_t comm, cudaStream_t stream)
{
    int n = launch_world_size(l), rank = launch_rank(l);
    size_t each = 30001; /* int32 elements */
    int32_t *in = calloc((size_t)n * each, sizeof(*in)),
            *out = calloc((size_t)n * each, sizeof(*out));
    CHECK(in && out);

    for (size_t i = 0; i < (size_t)n * each; i++)
        in[i] = (int32_t)i * (rank + 1);
    CHECK(launch_nccl_call(l, ncclBroadcast(in, out, each, ncclInt32, n - 1, comm, stream)) ==
          LAUNCH_OK);
    CHECK(launch_nccl_wait(l) == LAUNCH_OK);
    for (size_t i = 0; i < each; i++)
        CHECK(out[i] == (int32_t)i * n);

    CHECK(launch_nccl_call(l, ncclAllGather(in, out, each, ncclInt32, comm, stream)) == LAUNCH_OK);
    CHECK(launch_nccl_wait(l) == LAUNCH_OK);
    for (size_t i = 0; i < (size_t)n * each; i++)
        CHECK(out[i] == (int32_t)(i % each) * ((int32_t)(i / each) + 1));

    CHECK(launch_nccl_call(l, ncclReduceScatter(in, out, each, ncclInt32, ncclSum, comm, stream)) ==
          LAUNCH_OK);
    CHECK(launch_nccl_wait(l) == LAUNCH_OK);
    for (size_t i = 0; i < each; i++)
        CHECK(out[i] == (int32_t)((size_t)rank * each + i) * (n * (n + 1) / 2));

    /* Round the ring, all at once: without a group this would wait for ever. */
    int next = (rank + 1) % n, before = (rank + n - 1) % n;
    CHECK(ncclGroupStart() == ncclSuccess);
    CHECK(ncclSend(in, each, ncclInt32, next, comm, stream) == ncclSuccess);
    CHECK(ncclRecv(out, each, ncclInt32, before, comm, stream) == ncclSuccess);
    CHECK(launch_nccl_call(l, ncclGroupEnd()) == LAUNCH_OK);
    CHECK(launch_nccl_wait(l) == LAUNCH_OK);
    for (size_t i = 0; i < each; i++)
        CHECK(out[i] == (int32_t)i * (before + 1));
    free(in);
    free(out);
}

static int every_operation(struct launch *l)
{
    ncclComm_t comm;
    cudaStream_t stream;

    int r = meet(l, &comm, &stream);
    if (r != LAUNCH_OK)
        return r;
    check_reductions(l, comm, stream);
    check_moves(l, comm, stream);
    return LAUNCH_OK;
}

/* The first sum is not waited for in any way but launch_nccl_wait(). */
static int wait_only(struct launch *l)
{
    ncclComm_t comm;
    cudaStream_t stream;
    int64_t data = launch_rank(l);
    int n = launch_world_size(l);

    int r = meet(l, &comm, &stream);
    CHECK(r == LAUNCH_OK);
    CHECK(ncclAllReduce(&data, &data, 1, ncclInt64, ncclSum, comm, stream) == ncclInProgress);
    r = launch_nccl_wait(l);
    CHECK(r == LAUNCH_OK && data == n * (n - 1) / 2);
    return r;
}

static int wrong_call(struct launch *l)
{
    ncclComm_t comm;
    cudaStream_t stream;
    int64_t data = 0;

    int r = meet(l, &comm, &stream);
    CHECK(r == LAUNCH_OK);
    return launch_nccl_call(l, ncclBroadcast(&data, &data, 1, ncclInt64, 99, comm, stream));
}

/* What NCCL says of a peer that has left for the next generation. */
static ncclResult_t fail_in_next_generation(struct launch *l)
{
    atomic_store(&launch_device_slot(l)->step, 1);
    ring_bell(l);
    while (launch_check(l) == LAUNCH_OK)
        sched_yield();
    return ncclRemoteError;
}

/* And what it says before the agent does. */
static ncclResult_t fail_at_once(struct launch *l)
{
    atomic_store(&launch_device_slot(l)->step, 1);
    ring_bell(l);
    return getenv("FAKE_NCCL_REMOTE") ? ncclRemoteError : ncclSystemError;
}

static int fails_early(struct launch *l)
{
    ncclComm_t comm;

    CHECK(meet(l, &comm, NULL) == LAUNCH_OK);
    return launch_nccl_call(l, fail_at_once(l));
}

static int fails_late(struct launch *l)
{
    ncclComm_t comm;

    CHECK(meet(l, &comm, NULL) == LAUNCH_OK);
    return launch_nccl_call(l, fail_in_next_generation(l));
}

static int abort_if_called(void)
{
    abort();
}

/* Work that was cut short looks finished: it is the generation that tells. Raw calls are refused, not a crash. */
static int sleeps(struct launch *l)
{
    ncclComm_t comm;
    cudaStream_t stream;
    int64_t data = 1;

    int r = sum(l);
    if (launch_rank(l) != 0) /* whom the end may already meet in their sum */
        return r == LAUNCH_OK ? launch_barrier(l) : r;
    CHECK(r == LAUNCH_OK && meet(l, &comm, &stream) == LAUNCH_OK);
    CHECK(launch_nccl_call(l, ncclAllReduce(&data, &data, 1, ncclInt64, ncclSum, comm, stream)) ==
          LAUNCH_OK);
    atomic_store(&launch_device_slot(l)->step, 1);
    ring_bell(l);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess && data < 0);
    CHECK(launch_check(l) == LAUNCH_AGAIN);
    CHECK(launch_nccl_call(l, (ncclResult_t)abort_if_called()) == LAUNCH_AGAIN);
    CHECK(ncclAllReduce(&data, &data, 1, ncclInt64, ncclSum, comm, stream) == ncclInvalidUsage);
    return launch_nccl_wait(l);
}

/* Whatever the job has made the current device, launch_nccl_comm() changes to this rank's. */
static int sum_on_our_device(struct launch *l)
{
    int device;
    CHECK(cudaSetDevice(FAKE_DEVICE_LAST) == cudaSuccess);
    int r = sum(l);
    CHECK(r != LAUNCH_OK || (cudaGetDevice(&device) == cudaSuccess && device == launch_device(l)));
    return r;
}

static bool in_need, first_dies;

/* The last rank, or the first, dies after the first sum; the others meet again with another process. */
static int heals(struct launch *l)
{
    int r = LAUNCH_AGAIN, victim = first_dies ? 0 : launch_world_size(l) - 1;
    /* A process that comes in its stead has not touched the GPU that the dead one may fill. */
    CHECK(launch_generation(l) == 1 || fake_has_context() == (getenv(ENV_STANDBY) != NULL));
    while (r == LAUNCH_AGAIN) {
        if (in_need && launch_check(l) == LAUNCH_AGAIN)
            setenv("FAKE_CUDA_FAIL", "cudaStreamCreateWithFlags", 1);
        r = launch_meet(l);
        unsetenv("FAKE_CUDA_FAIL");
        CHECK(cudaGetLastError() == cudaSuccess);
        if (r == LAUNCH_OK)
            r = sum_on_our_device(l);
        CHECK(r != LAUNCH_AGAIN || launch_check(l) == LAUNCH_AGAIN);
        if (r != LAUNCH_OK || launch_generation(l) > 1)
            continue;
        if (launch_barrier(l) == LAUNCH_OK && launch_rank(l) == victim)
            raise(SIGKILL);
        while (launch_check(l) == LAUNCH_OK)
            sched_yield();
        r = launch_check(l);
    }
    return r;
}

static int heals_the_first(struct launch *l)
{
    first_dies = true;
    return heals(l);
}

/* The device is not to be had while the next generation gathers. */
static int heals_in_need(struct launch *l)
{
    in_need = true;
    return heals(l);
}

static int enters_twice(struct launch *l)
{
    ncclComm_t comm;

    CHECK(meet(l, &comm, NULL) == LAUNCH_OK);
    CHECK(launch_nccl_leave(l, ncclSuccess) == LAUNCH_INVALID);
    CHECK(launch_nccl_enter(l) == LAUNCH_OK && launch_nccl_enter(l) == LAUNCH_INVALID);
    CHECK(launch_nccl_leave(l, ncclSuccess) == LAUNCH_OK);
    return launch_nccl_wait(l);
}

/* Every wrong call is told, and none of them keeps the guard from its end. */
static int never_leaves(struct launch *l)
{
    int data = 0;
    ncclComm_t comm;
    cudaStream_t stream;

    CHECK(launch_nccl_comm(l, NULL, NULL) == LAUNCH_INVALID);
    CHECK(strstr(launch_error(l), "no place for the communicator"));
    CHECK(meet(l, &comm, &stream) == LAUNCH_OK);
    CHECK(launch_nccl_enter(l) == LAUNCH_OK);
    CHECK(launch_nccl_call(l, ncclAllReduce(&data, &data, 1, ncclInt, ncclSum, comm, stream)) ==
          LAUNCH_INVALID);
    CHECK(strstr(launch_error(l), "without launch_nccl_leave() before"));
    CHECK(launch_nccl_wait(l) == LAUNCH_INVALID);
    CHECK(strstr(launch_error(l), "launch_nccl_wait() between"));
    return LAUNCH_OK; /* inside still */
}

/* After a failure the communicator is the guard's, who waits for us to come out. */
static int fails_inside(struct launch *l)
{
    ncclComm_t comm;
    cudaStream_t stream;

    CHECK(meet(l, &comm, &stream) == LAUNCH_OK);
    CHECK(launch_nccl_enter(l) == LAUNCH_OK);
    CHECK(launch_nccl_leave(l, ncclInvalidUsage) == LAUNCH_FAILED);
    CHECK(launch_nccl_wait(l) == LAUNCH_INVALID);
    return LAUNCH_OK;
}

/* A clock that stands: no deadline ever passes. */
static atomic_bool stands;

int clock_gettime(clockid_t id, struct timespec *ret)
{
    *ret = (struct timespec){.tv_sec = 1};
    return atomic_load(&stands) ? 0 : (int)syscall(SYS_clock_gettime, id, ret);
}

static struct launch *leaving; /* NULL: not yet */

/* By the guard, in launch_leave(). The test is told. */
ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    ncclResult_t (*real)(ncclComm_t comm) = NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "ncclCommFinalize");
    ncclResult_t e = real(comm);
    if (leaving) {
        atomic_store(&launch_device_slot(leaving)->step, 1);
        ring_bell(leaving);
    }
    return e;
}

/* Rank 0 leaves, and the others never do. */
static int leaves_alone(struct launch *l)
{
    int r = sum(l);
    CHECK(r == LAUNCH_OK);
    if (launch_rank(l) != 0)
        for (;;)
            pause();
    leaving = l;
    atomic_store(&stands, true);
    return r;
}

static const struct {
    const char *name;
    int (*run)(struct launch *l);
} JOBS[] = {
    {"sum", sum},
    {"two-sums", two_sums},
    {"same-twice", same_twice},
    {"wait-first", wait_first},
    {"again-after-failure", again_after_failure},
    {"only-rank-0", only_rank_0},
    {"others-stay", others_stay},
    {"others-never-connect", others_never_connect},
    {"others-die", others_die},
    {"wait-only", wait_only},
    {"wrong-call", wrong_call},
    {"fails-early", fails_early},
    {"fails-late", fails_late},
    {"sleeps", sleeps},
    {"heals", heals},
    {"heals-the-first", heals_the_first},
    {"heals-in-need", heals_in_need},
    {"enters-twice", enters_twice},
    {"never-leaves", never_leaves},
    {"fails-inside", fails_inside},
    {"leaves-alone", leaves_alone},
    {"every-operation", every_operation},
};

int main(int argc, char **argv)
{
    struct launch *l;

    int r = launch_join(&l, 0);
    if (r != LAUNCH_OK) /* nothing that was begun is left */
        return fake_has_streams() ? 121 : 110 - r;
    atomic_store(&launch_device_slot(l)->heartbeat, 1);
    ring_bell(l);
    for (size_t i = 0; i < ARRAY_LEN(JOBS); i++) {
        if (argc == 2 && strcmp(argv[1], JOBS[i].name) == 0) {
            r = JOBS[i].run(l);
            launch_leave(l);
            return -r;
        }
    }
    return 120;
}
