/* SPDX-License-Identifier: MIT */
/* The smallest useful job: every rank gives its number, every rank gets the sum. liblaunch has
 * main(). */
#include "launch.h"

#include <stdint.h>
#include <stdio.h>

#ifdef LAUNCH_WITH_NCCL
#include "launch_nccl.h"

static int failed(struct launch *l, const char *call, cudaError_t e)
{
    return launch_fail(l, LAUNCH_FAILED, "%s: %s", call, cudaGetErrorString(e));
}

static int sum_in_place(struct launch *l, ncclComm_t comm, cudaStream_t stream, int64_t *on_gpu)
{
    int r = launch_nccl_call(l, ncclAllReduce(on_gpu, on_gpu, 1, ncclInt64, ncclSum, comm, stream));
    return r == LAUNCH_OK ? launch_nccl_wait(l) : r;
}

static int sum_on_gpu(struct launch *l, int64_t *value)
{
    ncclComm_t comm;
    cudaStream_t stream;
    int r = launch_nccl_comm(l, &comm, &stream); /* also chooses this rank's GPU */
    if (r != LAUNCH_OK)
        return r;

    int64_t *on_gpu;
    cudaError_t e = cudaMalloc((void **)&on_gpu, sizeof *value);
    if (e != cudaSuccess)
        return failed(l, "cudaMalloc", e);
    e = cudaMemcpy(on_gpu, value, sizeof *value, cudaMemcpyHostToDevice);
    if (e == cudaSuccess)
        r = sum_in_place(l, comm, stream, on_gpu);
    if (e == cudaSuccess && r == LAUNCH_OK)
        e = cudaMemcpy(value, on_gpu, sizeof *value, cudaMemcpyDeviceToHost);
    cudaFree(on_gpu);
    return e == cudaSuccess ? r : failed(l, "cudaMemcpy", e);
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
