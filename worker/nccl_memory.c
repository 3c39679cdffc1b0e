/* SPDX-License-Identifier: MIT */
/* Kept memory of the device (launch_nccl_keep): how it is copied from the rank that has the state. Knows nothing of states. */
#include "nccl_inside.h"

#define CHUNK_BYTES (64ull << 20) /* what a rank that has no use for the data needs beside it */

static void *memory_alloc(void *device, size_t bytes)
{
    struct nccl *n = device;
    void *data = NULL;
    cudaError_t e = cudaSetDevice(launch_device(n->l));
    if (e == cudaSuccess)
        e = cudaMalloc(&data, bytes ? bytes : 1);
    if (e == cudaSuccess)
        return data;
    cudaGetLastError(); /* it is no error of the job's */
    return NULL;
}

static void memory_free(void *device, void *data)
{
    (void)device;
    if (data)
        cudaFree(data);
}

static int memory_move(void *device, void *to, const void *from, size_t bytes)
{
    struct nccl *n = device;
    cudaError_t e = cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
    if (e == cudaSuccess) /* from device to device it does not wait */
        e = cudaStreamSynchronize(NULL);
    return e == cudaSuccess ? LAUNCH_OK : nccl_fail_cuda(n->l, CALL_NAME(cudaMemcpy), e);
}

/* data: NULL: there is no use for what comes. `beside`: a chunk's room then. */
static int broadcast(struct launch *l, char *data, void *beside, size_t bytes, int root)
{
    ncclComm_t comm;
    cudaStream_t stream;
    int r = launch_nccl_comm(l, &comm, &stream);
    for (size_t at = 0; r == LAUNCH_OK && at < bytes; at += CHUNK_BYTES) {
        size_t n = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
        void *chunk = data ? data + at : beside;
        r = launch_nccl_call(l, ncclBroadcast(chunk, chunk, n, ncclInt8, root, comm, stream));
    }
    return r == LAUNCH_OK ? launch_nccl_wait(l) : r;
}

static int memory_broadcast(void *device, void *data, size_t bytes, int root)
{
    struct nccl *n = device;
    size_t room = bytes < CHUNK_BYTES ? bytes : CHUNK_BYTES;
    void *beside = data ? NULL : memory_alloc(device, room);
    if (!data && !beside)
        return launch_fail(n->l, LAUNCH_FAILED, "no device memory for %zu bytes beside the job's",
                           room);
    int r = broadcast(n->l, data, beside, bytes, root);
    /* Work that was cut short may still write there: cudaFree waits, and the guard ends it. */
    memory_free(device, beside);
    return r;
}

const struct device_memory NCCL_MEMORY = {
    .alloc = memory_alloc, .free = memory_free, .move = memory_move, .broadcast = memory_broadcast};
