/* SPDX-License-Identifier: MIT */
/* The part of liblaunch that names NCCL's and CUDA's types: link with -llaunch_nccl -llaunch
 * -lnccl -lcudart. For AMD GPUs it names RCCL's and HIP's, when __HIP_PLATFORM_AMD__ is defined, as by hipcc: link with
 * -llaunch_rccl -llaunch -lrccl -lamdhip64. The calls are the same; read hipX below where it says cudaX, and RCCL for NCCL.
 *
 *     ncclComm_t comm; cudaStream_t stream;
 *     launch_nccl_comm(l, &comm, &stream);                      once per generation
 *     launch_nccl_call(l, ncclAllReduce(..., comm, stream));
 *     launch_nccl_wait(l);                                      not cudaStreamSynchronize()
 *
 * The communicator belongs to one generation: after LAUNCH_AGAIN and launch_meet() ask for it again. A job that sleeps in
 * cudaStreamSynchronize() when a rank is lost is woken, too; but what was cut short then looks finished: look at
 * launch_check() before the results are used. CUDA graphs in which the communicator's work was captured are destroyed
 * before launch_meet(), and captured anew with the new one. */
#ifndef LAUNCH_NCCL_H
#define LAUNCH_NCCL_H

#include "launch.h"

#if defined(__HIP_PLATFORM_AMD__) || defined(__HIP__)
#include <hip/hip_runtime_api.h>
#include <rccl/rccl.h>
#define LAUNCH_STREAM hipStream_t
#else
#include <cuda_runtime_api.h>
#include <nccl.h>
#define LAUNCH_STREAM cudaStream_t
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The communicator of the present generation over all ranks, and its stream. Made at the first
 * call in a generation (sets the CUDA device, meets the other ranks, ncclCommInitRankConfig,
 * for no longer than --rendezvous-timeout); later calls give the same two back.
 * It blocks, unless processes of the job outlive other ranks (--on-failure=heal, shrink): then NCCL makes a thread for each
 * call or group on it, which takes tens of microseconds. A call on one that blocks lasts until all ranks have made their
 * first, and as long as the GPU takes no more work: no stop is noticed meanwhile, and --shutdown-timeout ends it. Both stay
 * l's: never destroy them. ret_stream may be NULL. Work on other streams is for the job to wait for, before launch_meet(), too.
 * LAUNCH_INVALID: ret_comm is NULL, or no GPU for this rank (more workers than GPUs without --share-gpus: the text
 * names the option).
 * LAUNCH_TIMEOUT, LAUNCH_AGAIN, LAUNCH_STOP; LAUNCH_FAILED: CUDA or NCCL said no, text with
 * NCCL's last error. */
LAUNCH_API int launch_nccl_comm(struct launch *l, ncclComm_t *ret_comm, LAUNCH_STREAM *ret_stream);
#undef LAUNCH_STREAM

/* Memory of the device that is kept: launch_keep() for what cudaMalloc() gave. launch_meet() copies it over NCCL; a rank
 * that is a commit behind wants as much beside it, and one that has the state 64 MiB. Piece by piece in the same order as
 * launch_keep(). LAUNCH_INVALID: no GPU, or data is NULL; LAUNCH_FAILED: no memory. */
LAUNCH_API int launch_nccl_keep(struct launch *l, void *data, size_t bytes);

/* Round every NCCL call on the communicator: launch_nccl_call(l, ncclAllReduce(..., comm, stream)). l is evaluated twice. The
 * call is not made when its generation is over. It is waited until NCCL has taken the call in: a communicator that does
 * not block answers ncclInProgress, and until it is through, the next call would be refused and the stream would look idle.
 * LAUNCH_OK: the work is on the stream. Anything else: as launch_nccl_wait().
 *
 * Why a macro: when a rank is lost, another thread takes the communicator out of the job's way, and must not while the job
 * is inside a call. So a call without it may hang or meet freed memory then. Group calls are made like this:
 *
 *     int r = launch_nccl_enter(l);
 *     if (r == LAUNCH_OK) {
 *         ncclGroupStart(); ncclSend(...); ncclRecv(...);
 *         r = launch_nccl_leave(l, ncclGroupEnd());
 *     }
 *
 * Between the two nothing else of l is called. */
#define launch_nccl_call(l, call)                                                                  \
    launch_nccl_leave((l), launch_nccl_enter(l) == LAUNCH_OK ? (call) : ncclInvalidUsage)
LAUNCH_API int launch_nccl_enter(struct launch *l);
LAUNCH_API int launch_nccl_leave(struct launch *l, ncclResult_t result);

/* Waits until all work on the stream has finished, polling the stream, NCCL's asynchronous
 * error and the generation. LAUNCH_OK: the work is done and nobody was lost meanwhile.
 * LAUNCH_AGAIN: at once; the results are not to be used, and memory that a collective was to write to
 * is the job's again after launch_meet(). LAUNCH_STOP; LAUNCH_FAILED: CUDA or NCCL error, and the
 * communicator is aborted. Where processes outlive other ranks, an error that a lost peer would explain is none for 10 s, one
 * that it may explain (CUDA's, the system's) for 2 s: it is LAUNCH_AGAIN as soon as the launcher tells of a loss.
 * LAUNCH_INVALID: no communicator, or the stream is being captured. */
LAUNCH_API int launch_nccl_wait(struct launch *l);

#ifdef __cplusplus
}
#endif

#endif
