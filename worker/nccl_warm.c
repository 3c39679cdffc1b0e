/* SPDX-License-Identifier: MIT */
/* What a standby does before it waits for a place: the driver's context of its GPU, and NCCL's kernels on it, which take
 * most of the time that a cold process needs. Keeps nothing but those, and no stream, communicator or descriptor. */
#include "nccl_inside.h"

void nccl_warm(const struct launch *l, int device, enum warmth warmth)
{
    ncclUniqueId id;
    ncclComm_t comm;
    if (cudaSetDevice(device) != cudaSuccess || cudaFree(NULL) != cudaSuccess ||
        warmth == WARM_DRIVER)
        return;
    nccl_prepare_sharing(l);
    if (ncclGetUniqueId(&id) == ncclSuccess && ncclCommInitRank(&comm, 1, id, 0) == ncclSuccess)
        ncclCommDestroy(comm); /* there is nobody else in it */
}
