/* SPDX-License-Identifier: MIT */
/* A CUDA runtime that runs on a CPU: device memory is heap memory, and a stream is a queue
 * whose head makes progress whenever somebody asks about the stream. Found under the real
 * library's soname through LD_LIBRARY_PATH, so that programs built for CUDA run unchanged.
 * With worker/gpu_api.h the same file is a HIP runtime (tests/fake/rccl/); FAKE_CUDA_FAIL still takes CUDA's names.
 *
 *   FAKE_GPUS=N         number of devices, 8 if unset; CUDA_VISIBLE_DEVICES (indices) narrows it; HIP: HIP_VISIBLE_DEVICES before it
 *   FAKE_GPU_BUS=LIST   their PCI addresses, with commas
 *   FAKE_SM=N           their compute capability, 90 if unset
 *   FAKE_GPU_MIB=N      their memory, 1024 if unset
 *   FAKE_CUDA_HANG=1    work on a stream is never finished, not even when it was aborted
 *   FAKE_CUDA_CAPTURE=1 every stream is being captured
 *   FAKE_LEAKS=1        tells at exit of streams that were not destroyed, and of threads that are still there
 *   FAKE_CUDA_FAIL=call that call, by name, fails with cudaErrorUnknown */
#include "stream.h"

#ifdef __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#endif

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICES_MAX 64
#define BUS_FIRST 0x10 /* bus number of device 0 */

struct CUstream_st {
    struct fake_work *first, **last;
    struct CUstream_st *next;
};

static _Thread_local int current_device;
static _Thread_local cudaError_t last_error;
static atomic_bool has_context;
static cudaStream_t streams;
static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static _Thread_local int depth; /* how often this thread has the lock */

int fake_lock(void)
{
    int rc = pthread_mutex_lock(&mutex);
    depth++;
    return rc;
}

void fake_unlock(int *locked)
{
    (void)locked;
    depth--;
    pthread_mutex_unlock(&mutex);
}

void fake_yield(void)
{
    int n = depth, locked = 0;
    while (depth > 0)
        fake_unlock(&locked);
    sched_yield();
    while (depth < n)
        fake_lock();
}

/* 0: /proc does not tell. */
static int count_threads(void)
{
    int threads = -2; /* . and .. */
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks)
        return 0;
    while (readdir(tasks))
        threads++;
    closedir(tasks);
    return threads;
}

__attribute__((destructor)) static void tell_leaks(void)
{
    if (!getenv("FAKE_LEAKS"))
        return;
    int n = 0, threads = count_threads();
    /* One that was joined a moment ago may still be listed. */
    for (int i = 0; threads > 1 && i < 2000; i++) {
        usleep(1000);
        threads = count_threads();
    }
    for (cudaStream_t s = streams; s; s = s->next)
        n++;
    if (n || threads > 1)
        fprintf(stderr, "fake: %d streams and %d threads are left\n", n, threads);
}

static bool fails(const char *call)
{
    const char *want = getenv("FAKE_CUDA_FAIL");
    bool fail = want && strcmp(want, call) == 0;
    if (fail)
        last_error = cudaErrorUnknown;
    return fail;
}

bool fake_has_context(void)
{
    return has_context;
}

bool fake_has_streams(void)
{
    LOCKED;
    return streams != NULL;
}

static bool hangs(void)
{
    const char *hang = getenv("FAKE_CUDA_HANG");
    return hang && strcmp(hang, "1") == 0;
}

static const char *visible_devices(void)
{
#ifdef __HIP_PLATFORM_AMD__
    const char *hip = getenv("HIP_VISIBLE_DEVICES");
    if (hip && *hip)
        return hip;
#endif
    return getenv("CUDA_VISIBLE_DEVICES");
}

/* Fills in the physical index of every visible device; returns how many. */
static int devices(int physical[DEVICES_MAX])
{
    const char *gpus = getenv("FAKE_GPUS"), *visible = visible_devices();
    int total = gpus ? atoi(gpus) : 8, n = 0;

    if (!visible) {
        for (; n < total && n < DEVICES_MAX; n++)
            physical[n] = n;
        return n;
    }
    while (*visible && n < DEVICES_MAX) {
        char *end;
        long index = strtol(visible, &end, 10);
        if (end == visible || index < 0 || index >= total)
            break;
        physical[n++] = (int)index;
        visible = *end == ',' ? end + 1 : end;
    }
    return n;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

static const struct {
    cudaError_t error;
    const char *name, *text;
} ERRORS[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const char *cudaGetErrorName(cudaError_t error)
{
    for (size_t i = 0; i < sizeof(ERRORS) / sizeof(ERRORS[0]); i++)
        if (ERRORS[i].error == error)
            return ERRORS[i].name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    for (size_t i = 0; i < sizeof(ERRORS) / sizeof(ERRORS[0]); i++)
        if (ERRORS[i].error == error)
            return ERRORS[i].text;
    return "unrecognized error code";
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    int physical[DEVICES_MAX];

    *count = devices(physical);
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current_device;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    int physical[DEVICES_MAX];

    if (fails("cudaSetDevice"))
        return cudaErrorUnknown;
    if (device < 0 || device >= devices(physical))
        return cudaErrorInvalidDevice;
    current_device = device;
    has_context = true; /* as since CUDA 12 */
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *bus_id, int size, int device)
{
    int physical[DEVICES_MAX];

    if (device < 0 || device >= devices(physical))
        return cudaErrorInvalidDevice;
    const char *list = getenv("FAKE_GPU_BUS");
    for (int i = 0; list && *list && i < physical[device]; i++)
        list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL;
    if (list && *list)
        snprintf(bus_id, (size_t)size, "%.*s", (int)strcspn(list, ","), list);
    else
        snprintf(bus_id, (size_t)size, "0000:%02X:00.0", BUS_FIRST + physical[device]);
    return cudaSuccess;
}

static size_t memory_bytes(void)
{
    const char *mib = getenv("FAKE_GPU_MIB");
    return (mib ? (size_t)atoi(mib) : 1024) << 20;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    int physical[DEVICES_MAX];
    const char *text = getenv("FAKE_SM");
    int sm = text ? atoi(text) : 90;

    if (device < 0 || device >= devices(physical))
        return cudaErrorInvalidDevice;
    if (attribute != cudaDevAttrComputeCapabilityMajor &&
        attribute != cudaDevAttrComputeCapabilityMinor)
        return cudaErrorInvalidValue;
    *value = attribute == cudaDevAttrComputeCapabilityMajor ? sm / 10 : sm % 10;
    return cudaSuccess;
}

/* Writes what tests/fake's header names and no more: the real struct is longer. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    int physical[DEVICES_MAX];

    if (device < 0 || device >= devices(physical))
        return cudaErrorInvalidDevice;
    snprintf(properties->name, sizeof(properties->name), "Fake GPU");
    memset(&properties->uuid, 0, sizeof(properties->uuid));
    properties->uuid.bytes[3] = (char)(160 + physical[device]); /* as tests/e2e/lib.sh's gpus() */
    properties->uuid.bytes[15] = (char)physical[device];
    properties->totalGlobalMem = memory_bytes();
    return cudaSuccess;
}

#ifdef __HIP_PLATFORM_AMD__
hipError_t hipDeviceGetUuid(hipUUID *uuid, int device)
{
    char text[sizeof uuid->bytes + 1];
    int physical[DEVICES_MAX];

    if (device < 0 || device >= devices(physical))
        return hipErrorInvalidDevice;
    snprintf(text, sizeof text, "%016x", 0x5eed0000u + (unsigned)physical[device]);
    memcpy(uuid->bytes, text, sizeof uuid->bytes);
    return hipSuccess;
}
#endif

cudaError_t cudaMemGetInfo(size_t *left, size_t *total)
{
    has_context = true;
    *left = *total = memory_bytes();
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **ptr, size_t bytes)
{
    if (fails("cudaMalloc"))
        return cudaErrorMemoryAllocation;
    *ptr = malloc(bytes ? bytes : 1);
    return *ptr ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* As the real one: waits for all that is queued, whoever uses it. */
cudaError_t cudaFree(void *ptr)
{
    for (bool idle = !ptr; !idle; sched_yield()) {
        LOCKED;
        idle = true;
        for (cudaStream_t s = streams; s; s = s->next)
            idle &= cudaStreamQuery(s) != cudaErrorNotReady;
    }
    free(ptr);
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **ptr, size_t bytes, unsigned flags)
{
    return flags == cudaHostAllocDefault ? cudaMalloc(ptr, bytes) : cudaErrorInvalidValue;
}

cudaError_t cudaFreeHost(void *ptr)
{
    return cudaFree(ptr);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    (void)kind;
    if (fails("cudaMemcpy"))
        return cudaErrorUnknown;
    memmove(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    memset(to, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    if (flags != cudaStreamDefault && flags != cudaStreamNonBlocking)
        return cudaErrorInvalidValue;
    if (fails("cudaStreamCreateWithFlags"))
        return cudaErrorUnknown;
    *stream = calloc(1, sizeof(**stream));
    if (!*stream)
        return cudaErrorMemoryAllocation;
    (*stream)->last = &(*stream)->first;
    LOCKED;
    (*stream)->next = streams;
    streams = *stream;
    return cudaSuccess;
}

void fake_stream_push(cudaStream_t stream, struct fake_work *work)
{
    work->next = NULL;
    *stream->last = work;
    stream->last = &work->next;
}

static void pop(cudaStream_t stream)
{
    struct fake_work *work = stream->first;

    stream->first = work->next;
    if (!stream->first)
        stream->last = &stream->first;
    work->drop(work);
}

/* Work counts as finished one query after it was done, so that no caller gets by without
 * asking twice. */
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    if (fails("cudaStreamQuery"))
        return cudaErrorUnknown;
    LOCKED;
    if (!stream || !stream->first) /* the null stream never has anything to do */
        return cudaSuccess;
    if (!hangs() && stream->first->progress(stream->first))
        pop(stream);
    return cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    cudaError_t e;

    while ((e = cudaStreamQuery(stream)) == cudaErrorNotReady)
        sched_yield();
    return e;
}

/* As the real one: returns at once, whatever is still queued. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    cudaStream_t *at = &streams;

    LOCKED;
    while (stream && *at && *at != stream)
        at = &(*at)->next;
    if (!stream || !*at)
        return cudaErrorInvalidResourceHandle;
    *at = stream->next;
    while (stream->first)
        pop(stream);
    free(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    (void)stream;
    if (fails("cudaStreamIsCapturing"))
        return cudaErrorUnknown;
    *status =
        getenv("FAKE_CUDA_CAPTURE") ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

struct copy {
    struct fake_work work;
    void *to;
    const void *from;
    size_t bytes;
};

static bool copy_progress(struct fake_work *work)
{
    struct copy *c = (struct copy *)work;

    memmove(c->to, c->from, c->bytes);
    return true;
}

static void copy_drop(struct fake_work *work)
{
    free(work);
}

/* Copies when its turn comes, as from pinned memory: a caller who touches the buffer earlier
 * is wrong. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    struct copy *c;

    if (!stream)
        return cudaMemcpy(to, from, bytes, kind);
    if (fails("cudaMemcpyAsync"))
        return cudaErrorUnknown;
    c = malloc(sizeof(*c));
    if (!c)
        return cudaErrorMemoryAllocation;
    *c = (struct copy){{copy_progress, copy_drop, NULL}, to, from, bytes};
    LOCKED;
    fake_stream_push(stream, &c->work);
    return cudaSuccess;
}

struct set {
    struct fake_work work;
    void *to;
    int value;
    size_t bytes;
};

static bool set_progress(struct fake_work *work)
{
    struct set *s = (struct set *)work;

    memset(s->to, s->value, s->bytes);
    return true;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    struct set *s;

    if (!stream)
        return cudaMemset(to, value, bytes);
    s = malloc(sizeof(*s));
    if (!s)
        return cudaErrorMemoryAllocation;
    *s = (struct set){{set_progress, copy_drop, NULL}, to, value, bytes};
    LOCKED;
    fake_stream_push(stream, &s->work);
    return cudaSuccess;
}
