/* SPDX-License-Identifier: MIT */
/* Over NCCL or RCCL. Calls are as light as nccl-tests' own: one launch_nccl_enter() for many, and a bare poll of the stream after
 * them. What the library has not (alltoall, gather and scatter before 2.28) is made of sends, as there. */
#include "bench.h"
#include "gpu_api.h"
#include "launch_nccl.h"

#include "../proto/clock.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB (UINT64_C(1) << 30)
#define CALLS_INSIDE 32u       /* between two chances for liblaunch to notice a loss */
#define LOOK_NS (50 * 1000ull) /* between two looks at NCCL's asynchronous error */
#define ALL_OPS ((1u << BENCH_OPS_N) - 1)
#define ALL_COLLECTIVES ((1u << BENCH_COLLECTIVES_N) - 1)
#define ALL_TYPES ((1u << BENCH_TYPES_N) - 1)
#define FP8_TYPES (1u << BENCH_TYPE_F8E4M3 | 1u << BENCH_TYPE_F8E5M2)

/* RCCL: 8-bit floats are another format on some AMD GPUs than on others, and alltoall had another name before it was here. */
#ifdef __HIP_PLATFORM_AMD__
#define HAS(version) 0
#define NAME "rccl"
#define WORDS "RCCL"
#else
#define NAME "nccl"
#define WORDS "NCCL"
#define HAS(version) (NCCL_VERSION_CODE >= (version))
#endif
#define HAS_FP8 HAS(NCCL_VERSION(2, 24, 0))
#define HAS_SHARES HAS(NCCL_VERSION(2, 28, 0))

#if HAS_FP8
#define F8E4M3 ncclFloat8e4m3
#define F8E5M2 ncclFloat8e5m2
#define TYPES_HERE ALL_TYPES
#else
#define F8E4M3 ncclInt8 /* never used */
#define F8E5M2 ncclInt8
#define TYPES_HERE (ALL_TYPES & ~FP8_TYPES)
#endif

static const ncclDataType_t TYPES[BENCH_TYPES_N] = {
    [BENCH_TYPE_INT8] = ncclInt8,      [BENCH_TYPE_UINT8] = ncclUint8,
    [BENCH_TYPE_INT32] = ncclInt32,    [BENCH_TYPE_UINT32] = ncclUint32,
    [BENCH_TYPE_INT64] = ncclInt64,    [BENCH_TYPE_UINT64] = ncclUint64,
    [BENCH_TYPE_HALF] = ncclFloat16,   [BENCH_TYPE_FLOAT] = ncclFloat32,
    [BENCH_TYPE_DOUBLE] = ncclFloat64, [BENCH_TYPE_BFLOAT16] = ncclBfloat16,
    [BENCH_TYPE_F8E4M3] = F8E4M3,      [BENCH_TYPE_F8E5M2] = F8E5M2,
};
static const ncclRedOp_t OPS[BENCH_OPS_N] = {
    [BENCH_OP_SUM] = ncclSum, [BENCH_OP_PROD] = ncclProd, [BENCH_OP_MIN] = ncclMin,
    [BENCH_OP_MAX] = ncclMax, [BENCH_OP_AVG] = ncclAvg,
};

/* Newer than the oldest library that this program may meet. */
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
#pragma weak ncclMemAlloc
#pragma weak ncclMemFree
#endif
#if HAS_SHARES
#pragma weak ncclAlltoAll
#pragma weak ncclGather
#pragma weak ncclScatter
#endif

/* One: a process has one GPU. */
struct state {
    ncclComm_t comm;
    cudaStream_t stream;
    int rank, library;
    ncclRedOp_t op;
    bool op_made;
};
static struct state state;

static int fail_cuda(struct bench *b, const char *call, cudaError_t e)
{
    return launch_fail(b->l, LAUNCH_FAILED, "%s: %s", call, cudaGetErrorString(e));
}

/* ---- the device ---- */

#ifdef __HIP_PLATFORM_AMD__
/* 16 characters; HIP's properties have none before ROCm 6. */
static cudaError_t get_uuid(char *to, size_t size, const struct cudaDeviceProp *properties,
                            int device)
{
    hipUUID uuid;
    hipError_t e = hipDeviceGetUuid(&uuid, device);
    (void)properties;
    if (e == hipSuccess)
        snprintf(to, size, "GPU-%.16s", uuid.bytes);
    return e;
}
#else
static cudaError_t get_uuid(char *to, size_t size, const struct cudaDeviceProp *properties,
                            int device)
{
    const unsigned char *u = (const unsigned char *)properties->uuid.bytes;
    (void)device;
    snprintf(to, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
             u[14], u[15]);
    return cudaSuccess;
}
#endif

static int describe(struct bench *b, struct bench_device *ret)
{
    struct cudaDeviceProp *properties = calloc(1, sizeof *properties);
    int major = 0, minor = 0, device = launch_device(b->l);
    if (!properties)
        return launch_fail(b->l, LAUNCH_FAILED, "out of memory");
    cudaError_t e = cudaGetDeviceProperties(properties, device);
    if (e == cudaSuccess)
        e = cudaDeviceGetPCIBusId(ret->bus, sizeof ret->bus, device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    if (e == cudaSuccess)
        e = get_uuid(ret->uuid, sizeof ret->uuid, properties, device);
    if (e == cudaSuccess) {
        snprintf(ret->name, sizeof ret->name, "%.79s", properties->name);
        ret->memory_bytes = properties->totalGlobalMem;
        ret->device = device;
        ret->sm = 10 * major + minor;
    }
    free(properties);
    return e == cudaSuccess ? LAUNCH_OK : fail_cuda(b, "the GPU's properties", e);
}

static int gpu_open(struct bench *b, struct bench_device *ret)
{
    setenv("NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE", "1", 0); /* as nccl-tests asks for */
    state = (struct state){.rank = b->rank};
    int r = launch_nccl_comm(b->l, &state.comm, &state.stream);
    if (r == LAUNCH_OK)
        ncclGetVersion(&state.library);
    return r == LAUNCH_OK ? describe(b, ret) : r;
}

static void gpu_close(struct bench *b)
{
    if (b->window)
        cudaFreeHost(b->window);
    b->window = NULL;
}

static void gpu_versions(int *ret_library, int *ret_headers, int *ret_runtime, int *ret_driver)
{
    *ret_library = state.library;
    *ret_headers = NCCL_VERSION_CODE;
    cudaRuntimeGetVersion(ret_runtime);
    cudaDriverGetVersion(ret_driver);
}

/* nccl-tests' rule: of every 16 GiB one is spared, at most 4, and one more. A device that has less spares half. */
static uint64_t gpu_room(const struct bench_device *device, int sharers, int copies)
{
    uint64_t all = device->memory_bytes, spared = (all + 16 * GIB - 1) / (16 * GIB) * GIB;
    spared = (spared < 4 * GIB ? spared : 4 * GIB) + GIB;
    if (spared > all / 2)
        spared = all / 2;
    return (all - spared) / (uint64_t)copies / (uint64_t)sharers;
}

static bool has_mem_alloc(void)
{
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
    return ncclMemAlloc && ncclMemFree;
#else
    return false;
#endif
}

static int gpu_alloc(struct bench *b, char **ret, size_t bytes)
{
    cudaError_t e = cudaSuccess;
    void *data = NULL;
    bytes = bytes ? bytes : 1;
    if (!b->window)
        e = cudaHostAlloc(&b->window, BENCH_WINDOW_BYTES, cudaHostAllocDefault);
    if (e != cudaSuccess)
        return fail_cuda(b, CALL_NAME(cudaHostAlloc), e);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
    if (has_mem_alloc()) {
        if (ncclMemAlloc(&data, bytes) != ncclSuccess)
            return launch_fail(b->l, LAUNCH_FAILED, "ncclMemAlloc of %zu bytes: %s", bytes,
                               ncclGetLastError(NULL));
        *ret = data;
        return LAUNCH_OK;
    }
#endif
    e = cudaMalloc(&data, bytes);
    *ret = data;
    return e == cudaSuccess ? LAUNCH_OK : fail_cuda(b, CALL_NAME(cudaMalloc), e);
}

static void gpu_free(char *data)
{
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
    if (has_mem_alloc()) {
        ncclMemFree(data);
        return;
    }
#endif
    cudaFree(data);
}

/* ---- copies, in the order of the stream ---- */

static int done(struct bench *b, const char *call, cudaError_t e)
{
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(state.stream);
    return e == cudaSuccess ? LAUNCH_OK : fail_cuda(b, call, e);
}

static int copy(struct bench *b, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    return done(b, CALL_NAME(cudaMemcpyAsync),
                cudaMemcpyAsync(to, from, bytes, kind, state.stream));
}

static int gpu_put(struct bench *b, char *to, const void *from, size_t bytes)
{
    return copy(b, to, from, bytes, cudaMemcpyHostToDevice);
}

static int gpu_get(struct bench *b, void *to, const char *from, size_t bytes)
{
    return copy(b, to, from, bytes, cudaMemcpyDeviceToHost);
}

static int gpu_move(struct bench *b, char *to, const char *from, size_t bytes)
{
    return copy(b, to, from, bytes, cudaMemcpyDeviceToDevice);
}

static int gpu_zero(struct bench *b, char *to, size_t bytes)
{
    return done(b, CALL_NAME(cudaMemsetAsync), cudaMemsetAsync(to, 0, bytes, state.stream));
}

/* ---- mulsum's operation ---- */

static int gpu_prepare(struct bench *b, const struct bench_plan *p)
{
    struct bench_data data = {p->type, p->op, b->ranks, 0};
    uint64_t scalar = 0;
    state.op = p->op >= 0 ? OPS[p->op] : ncclSum;
    state.op_made = p->op == BENCH_OP_MULSUM;
    if (!state.op_made)
        return LAUNCH_OK;
    bench_data_scalar(&data, b->rank, &scalar);
    return launch_nccl_call(b->l, ncclRedOpCreatePreMulSum(&state.op, &scalar, TYPES[p->type],
                                                           ncclScalarHostImmediate, state.comm));
}

static void gpu_restore(struct bench *b)
{
    if (state.op_made)
        (void)launch_nccl_call(b->l, ncclRedOpDestroy(state.op, state.comm));
    state.op_made = false;
}

/* ---- what is made of sends ---- */

static ncclResult_t send(const struct bench_plan *p, const char *in, int to)
{
    return ncclSend(in, p->count, TYPES[p->type], to, state.comm, state.stream);
}

static ncclResult_t receive(const struct bench_plan *p, char *out, int from)
{
    return ncclRecv(out, p->count, TYPES[p->type], from, state.comm, state.stream);
}

static ncclResult_t send_each(const struct bench_plan *p, const char *in)
{
    ncclResult_t e = ncclSuccess;
    for (int r = 0; r < p->ranks && e == ncclSuccess; r++)
        e = send(p, in + (size_t)r * p->count * bench_type_size(p->type), r);
    return e;
}

static ncclResult_t receive_each(const struct bench_plan *p, char *out)
{
    ncclResult_t e = ncclSuccess;
    for (int r = 0; r < p->ranks && e == ncclSuccess; r++)
        e = receive(p, out + (size_t)r * p->count * bench_type_size(p->type), r);
    return e;
}

/* Whom this rank sends to and receives from: NONE, EACH (a share each), or a rank. */
#define NONE (-1)
#define EACH (-2)

static ncclResult_t exchange(const struct bench_plan *p, const char *in, char *out, int to,
                             int from)
{
    ncclResult_t e = ncclGroupStart();
    if (e == ncclSuccess && to != NONE)
        e = to == EACH ? send_each(p, in) : send(p, in, to);
    if (e == ncclSuccess && from != NONE)
        e = from == EACH ? receive_each(p, out) : receive(p, out, from);
    ncclResult_t ended = ncclGroupEnd();
    return e == ncclSuccess ? ended : e;
}

static ncclResult_t exchange_shares(const struct bench_plan *p, const char *in, char *out)
{
    bool root = state.rank == p->root;
    if (p->collective == BENCH_ALLTOALL)
        return exchange(p, in, out, EACH, EACH);
    if (p->collective == BENCH_GATHER)
        return exchange(p, in, out, p->root, root ? EACH : NONE);
    return exchange(p, in, out, root ? EACH : NONE, p->root);
}

static ncclResult_t call_shares(const struct bench_plan *p, const char *in, char *out)
{
    if (p->count == 0)
        return ncclSuccess;
#if HAS_SHARES
    if (state.library >= NCCL_VERSION(2, 28, 0)) {
        ncclDataType_t type = TYPES[p->type];
        if (p->collective == BENCH_ALLTOALL)
            return ncclAlltoAll(in, out, p->count, type, state.comm, state.stream);
        if (p->collective == BENCH_GATHER)
            return ncclGather(in, out, p->count, type, p->root, state.comm, state.stream);
        return ncclScatter(in, out, p->count, type, p->root, state.comm, state.stream);
    }
#endif
    return exchange_shares(p, in, out);
}

/* ---- calls ---- */

static ncclResult_t call_once(const struct bench_call *c, const char *in, char *out)
{
    const struct bench_plan *p = &c->plan;
    ncclDataType_t type = TYPES[p->type];
    switch (p->collective) {
    case BENCH_ALL_REDUCE:
        return ncclAllReduce(in, out, p->count, type, state.op, state.comm, state.stream);
    case BENCH_ALL_GATHER:
        return ncclAllGather(in, out, p->count, type, state.comm, state.stream);
    case BENCH_REDUCE_SCATTER:
        return ncclReduceScatter(in, out, p->count, type, state.op, state.comm, state.stream);
    case BENCH_BROADCAST:
        return ncclBroadcast(in, out, p->count, type, p->root, state.comm, state.stream);
    case BENCH_REDUCE:
        return ncclReduce(in, out, p->count, type, state.op, p->root, state.comm, state.stream);
    case BENCH_SENDRECV:
        return exchange(p, in, out, c->to, c->from);
    default:
        return call_shares(p, in, out);
    }
}

/* Until the stream has nothing left to do. */
static int await(struct bench *b)
{
    uint64_t look_ns = clock_now_ns() + LOOK_NS;
    for (;;) {
        cudaError_t e = cudaStreamQuery(state.stream);
        int r = launch_check(b->l);
        if (r == LAUNCH_AGAIN || (r != LAUNCH_OK && e != cudaSuccess))
            return r == LAUNCH_STOP ? r : launch_fail(b->l, r, "a rank was lost");
        if (e == cudaSuccess)
            return LAUNCH_OK;
        if (e != cudaErrorNotReady)
            return fail_cuda(b, CALL_NAME(cudaStreamQuery), e);
        if (clock_now_ns() >= look_ns) {
            ncclResult_t async = ncclSuccess;
            r = launch_nccl_call(b->l, ncclCommGetAsyncError(state.comm, &async) ?: async);
            if (r != LAUNCH_OK)
                return r;
            look_ns = clock_now_ns() + LOOK_NS;
        }
        sched_yield();
    }
}

/* A call that does not return ncclSuccess is waited for by launch_nccl_leave(): the first of its kind, while ranks connect. */
static int gpu_run(struct bench *b, const struct bench_call *call, unsigned n)
{
    for (unsigned i = 0; i < n;) {
        unsigned until = n - i < CALLS_INSIDE ? n : i + CALLS_INSIDE;
        ncclResult_t e = ncclSuccess;
        int r = launch_nccl_enter(b->l);
        if (r != LAUNCH_OK)
            return r;
        for (; i < until && e == ncclSuccess; i++) {
            size_t shift = call->shift * (i % call->steps);
            e = call_once(call, call->in + shift, call->out + shift);
        }
        r = launch_nccl_leave(b->l, e);
        if (r != LAUNCH_OK)
            return r;
    }
    return await(b);
}

static int gpu_settle(struct bench *b)
{
    return launch_nccl_wait(b->l);
}

/* As a job would do it. */
static int gpu_sum(struct bench *b, int64_t mine, int64_t *ret)
{
    char *data = NULL;
    int r = gpu_alloc(b, &data, sizeof mine);
    if (r == LAUNCH_OK)
        r = gpu_put(b, data, &mine, sizeof mine);
    if (r == LAUNCH_OK)
        r = launch_nccl_call(
            b->l, ncclAllReduce(data, data, 1, ncclInt64, ncclSum, state.comm, state.stream));
    if (r == LAUNCH_OK)
        r = launch_nccl_wait(b->l);
    if (r == LAUNCH_OK)
        r = gpu_get(b, ret, data, sizeof mine);
    if (r == LAUNCH_OK)
        gpu_free(data);
    return r;
}

const struct bench_backend BENCH_BACKEND = {
    .name = NAME,
    .words = WORDS,
    .pairs = true,
    .collectives = ALL_COLLECTIVES,
    .types = TYPES_HERE,
    .ops = ALL_OPS,
    .open = gpu_open,
    .close = gpu_close,
    .versions = gpu_versions,
    .room = gpu_room,
    .alloc = gpu_alloc,
    .free = gpu_free,
    .prepare = gpu_prepare,
    .restore = gpu_restore,
    .run = gpu_run,
    .settle = gpu_settle,
    .put = gpu_put,
    .get = gpu_get,
    .move = gpu_move,
    .zero = gpu_zero,
    .sum = gpu_sum,
};
