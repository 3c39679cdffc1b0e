/* SPDX-License-Identifier: MIT */
/* What a standby does before it waits for a place: the driver's context of its GPU, and NCCL's kernels on it, which take
 * most of the time that a cold process needs. Keeps nothing but those, and no stream, communicator or descriptor. */
#include "nccl_inside.h"

#include "../proto/env.h"

#include <stdlib.h>

static void meet_nobody(void)
{
    ncclUniqueId id;
    ncclComm_t comm;
    if (ncclGetUniqueId(&id) == ncclSuccess && ncclCommInitRank(&comm, 1, id, 0) == ncclSuccess)
        ncclCommDestroy(comm); /* there is nobody else in it */
}

/* NCCL finds out anew how the GPU is linked, not from what others found, and writes it down for all (agent/nccl_topo.h). The
 * job's thread waits for us: nobody else reads the environment. */
static void meet_nobody_and_write(const char *draft)
{
    const char *others = getenv(ENV_NCCL_TOPO);
    unsetenv(ENV_NCCL_TOPO);
    setenv(ENV_NCCL_TOPO_DUMP, draft, 1);
    meet_nobody();
    unsetenv(ENV_NCCL_TOPO_DUMP);
    if (others)
        setenv(ENV_NCCL_TOPO, others, 1);
}

void nccl_warm(const struct launch *l, int device, enum warmth warmth)
{
    const char *draft = getenv(ENV_TOPO_DRAFT);
    if (cudaSetDevice(device) != cudaSuccess || cudaFree(NULL) != cudaSuccess ||
        warmth == WARM_DRIVER)
        return;
    nccl_prepare_sharing(l);
    if (draft)
        meet_nobody_and_write(draft);
    else
        meet_nobody();
}
