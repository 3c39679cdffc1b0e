/* SPDX-License-Identifier: MIT */
/* The smallest useful job: every rank gives its number, every rank gets the sum. liblaunch has
 * main(). */
#include "launch.h"

#include <stdint.h>
#include <stdio.h>

#ifdef LAUNCH_WITH_NCCL
#include "launch_nccl.h"

#define BYTES sizeof(int64_t)

/* Without LAUNCH_OK the reason is on stderr. */
static int failed(const char *call, const char *reason)
{
    fprintf(stderr, "%s: %s\n", call, reason);
    return LAUNCH_FAILED;
}

static int sum_in_place(struct launch *l, int64_t *on_gpu)
{
    ncclComm_t comm;
    cudaStream_t stream;
    int r = launch_nccl_comm(l, &comm, &stream);
    if (r != LAUNCH_OK)
        return r;
    r = launch_nccl_call(l, ncclAllReduce(on_gpu, on_gpu, 1, ncclInt64, ncclSum, comm, stream));
    return r == LAUNCH_OK ? launch_nccl_wait(l) : r;
}

static int sum_on_gpu(struct launch *l, int64_t *value)
{
    int64_t *on_gpu;
    cudaError_t e = cudaSetDevice(launch_device(l));
    if (e == cudaSuccess)
        e = cudaMalloc((void **)&on_gpu, BYTES);
    if (e != cudaSuccess)
        return failed("cudaMalloc", cudaGetErrorString(e));

    int r = LAUNCH_OK;
    e = cudaMemcpy(on_gpu, value, BYTES, cudaMemcpyHostToDevice);
    if (e == cudaSuccess)
        r = sum_in_place(l, on_gpu);
    if (e == cudaSuccess && r == LAUNCH_OK)
        e = cudaMemcpy(value, on_gpu, BYTES, cudaMemcpyDeviceToHost);
    cudaFree(on_gpu);
    return e == cudaSuccess ? r : failed("cudaMemcpy", cudaGetErrorString(e));
}
#endif

static int sum(struct launch *l, int64_t *value)
{
#ifdef LAUNCH_WITH_NCCL
    if (launch_device(l) >= 0)
        return sum_on_gpu(l, value);
#endif
    return launch_all_reduce(l, value, value, 1, LAUNCH_INT64, LAUNCH_SUM);
}

int launch_main(struct launch *l, int argc, char **argv)
{
    (void)argc;
    (void)argv;

    int64_t value = launch_rank(l);
    int r = sum(l, &value);
    if (r == LAUNCH_OK)
        printf("rank %d of %d: sum = %lld\n", launch_rank(l), launch_world_size(l),
               (long long)value);
    return r;
}
