/* SPDX-License-Identifier: MIT */
/* Where NCCL's time in NVML goes: preloaded, it stands in for libnvidia-ml.so.1, passes every call that NCCL makes on to the one
 * named by NVML_COUNT_REAL, and appends calls and milliseconds of each function, since the last communicator was asked for, to
 * NVML_COUNT_DIR/PID, whenever the next one is and at the end: "init N: name calls ms". */
#include <nccl.h>

#include "../../proto/clock.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define NOT_FOUND 13 /* NVML's number */

#define CALLS(X)                                                                                   \
    X(nvmlInit)                                                                                    \
    X(nvmlInit_v2)                                                                                 \
    X(nvmlInitWithFlags)                                                                           \
    X(nvmlShutdown)                                                                                \
    X(nvmlDeviceGetCount)                                                                          \
    X(nvmlDeviceGetCount_v2)                                                                       \
    X(nvmlDeviceGetHandleByPciBusId)                                                               \
    X(nvmlDeviceGetHandleByPciBusId_v2)                                                            \
    X(nvmlDeviceGetHandleByIndex)                                                                  \
    X(nvmlDeviceGetHandleByIndex_v2)                                                               \
    X(nvmlDeviceGetIndex)                                                                          \
    X(nvmlDeviceGetUUID)                                                                           \
    X(nvmlDeviceGetNvLinkState)                                                                    \
    X(nvmlDeviceGetNvLinkRemotePciInfo)                                                            \
    X(nvmlDeviceGetNvLinkRemotePciInfo_v2)                                                         \
    X(nvmlDeviceGetNvLinkCapability)                                                               \
    X(nvmlDeviceGetCudaComputeCapability)                                                          \
    X(nvmlDeviceGetP2PStatus)                                                                      \
    X(nvmlDeviceGetFieldValues)                                                                    \
    X(nvmlDeviceGetPciInfo_v3)                                                                     \
    X(nvmlDeviceGetPciInfoExt)                                                                     \
    X(nvmlDeviceGetPcieLinkMaxSpeed)                                                               \
    X(nvmlDeviceGetCurrPcieLinkGeneration)                                                         \
    X(nvmlDeviceGetCurrPcieLinkWidth)                                                              \
    X(nvmlDeviceGetGpuFabricInfoV)                                                                 \
    X(nvmlDeviceGetPlatformInfo)                                                                   \
    X(nvmlSystemGetConfComputeState)                                                               \
    X(nvmlSystemGetConfComputeSettings)

#define NUMBER(name) CALL_##name,
enum call { CALLS(NUMBER) CALLS_N };
#define NAME(name) #name,
static const char *const NAMES[] = {CALLS(NAME)};

static _Atomic uint64_t calls[CALLS_N], ns[CALLS_N];
static unsigned inits;

static void *find(const char *name)
{
    static _Atomic(void *) library;
    const char *path = getenv("NVML_COUNT_REAL");
    if (!library && path)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, name) : NULL;
}

/* As many words as any of them takes; those that a function does not read do no harm. */
static long pass_on(enum call call, long a, long b, long c, long d, long e, long f)
{
    static _Atomic(void *) found[CALLS_N];
    if (!found[call])
        found[call] = find(NAMES[call]);
    if (!found[call])
        return NOT_FOUND;
    uint64_t begin = clock_now_ns();
    long rc = ((long (*)(long, long, long, long, long, long))found[call])(a, b, c, d, e, f);
    ns[call] += clock_now_ns() - begin;
    calls[call]++;
    return rc;
}

#define WRAP(name)                                                                                 \
    EXPORT long name(long a, long b, long c, long d, long e, long f);                              \
    long name(long a, long b, long c, long d, long e, long f)                                      \
    {                                                                                              \
        return pass_on(CALL_##name, a, b, c, d, e, f);                                             \
    }
CALLS(WRAP)

EXPORT const char *nvmlErrorString(int result);
const char *nvmlErrorString(int result)
{
    static _Thread_local char text[32];
    snprintf(text, sizeof text, "NVML error %d", result);
    return text;
}

static void write_down(void)
{
    const char *where = getenv("NVML_COUNT_DIR");
    char path[4096];
    if (!where || inits == 0)
        return;
    snprintf(path, sizeof path, "%s/%d", where, (int)getpid());
    FILE *f = fopen(path, "ae");
    for (int i = 0; f && i < CALLS_N; i++) {
        uint64_t n = atomic_exchange(&calls[i], 0), took = atomic_exchange(&ns[i], 0);
        if (n)
            fprintf(f, "init %u: %s %llu %.3f\n", inits, NAMES[i], (unsigned long long)n,
                    (double)took / 1e6);
    }
    if (f)
        fclose(f);
}

EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int n, ncclUniqueId id, int rank,
                                           ncclConfig_t *config)
{
    ncclResult_t (*real)(ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *);
    *(void **)&real = dlsym(RTLD_NEXT, "ncclCommInitRankConfig");
    write_down();
    inits++;
    return real ? real(comm, n, id, rank, config) : ncclInternalError;
}

__attribute__((destructor)) static void end(void)
{
    write_down();
}
