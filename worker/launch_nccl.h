/* SPDX-License-Identifier: MIT */
/* The part of liblaunch that names NCCL's and CUDA's types: link with -llaunch_nccl -llaunch
 * -lnccl -lcudart.
 *
 *     ncclComm_t comm; cudaStream_t stream;
 *     launch_nccl_comm(l, &comm, &stream);                      once per generation
 *     launch_nccl_call(l, ncclAllReduce(..., comm, stream));
 *     launch_nccl_wait(l);                                      not cudaStreamSynchronize()
 *
 * The communicator belongs to one generation: after LAUNCH_AGAIN ask for it again. */
#ifndef LAUNCH_NCCL_H
#define LAUNCH_NCCL_H

#include "launch.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The communicator of the present generation over all ranks, and its stream. Made at the first
 * call in a generation (sets the CUDA device, meets the other ranks, ncclCommInitRankConfig
 * without blocking, polled against --rendezvous-timeout); later calls give the same two back.
 * Both stay l's: never destroy them. ret_stream may be NULL.
 * LAUNCH_INVALID: no GPU for this rank (more workers than GPUs without --share-gpus: the text
 * names the option).
 * LAUNCH_TIMEOUT, LAUNCH_AGAIN, LAUNCH_STOP; LAUNCH_FAILED: CUDA or NCCL said no, text with
 * NCCL's last error. */
LAUNCH_API int launch_nccl_comm(struct launch *l, ncclComm_t *ret_comm, cudaStream_t *ret_stream);

/* Takes the result of an NCCL call on the communicator and waits until NCCL has taken the call
 * in: on a communicator that does not block, a call may answer ncclInProgress (the first
 * collective does, while ranks connect), and until it is through, the next call would be
 * refused and the stream would look idle. Put it round every call, and round ncclGroupEnd()
 * instead of the calls within a group. Usually a comparison, no more.
 * LAUNCH_OK: the work is on the stream. Anything else: as launch_nccl_wait(); the communicator
 * is aborted. */
LAUNCH_API int launch_nccl_call(struct launch *l, ncclResult_t result);

/* Waits until all work on the stream has finished, polling the stream, NCCL's asynchronous
 * error and the generation.
 * LAUNCH_OK: the work is done and nobody was lost meanwhile. LAUNCH_AGAIN, LAUNCH_STOP: the
 * results are not to be used; the communicator is aborted. LAUNCH_FAILED: CUDA or NCCL error. */
LAUNCH_API int launch_nccl_wait(struct launch *l);

#ifdef __cplusplus
}
#endif

#endif
