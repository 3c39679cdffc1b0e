/* SPDX-License-Identifier: MIT */
/* An NCCL that runs on a CPU and really computes between processes, over shared memory named
 * by the unique id: a memfd of the process that made the id, reached through /proc, so that
 * nothing is left behind whoever is killed. Like the real one it never notices a dead peer,
 * and refuses two ranks on one GPU. It makes progress only when somebody asks about the
 * communicator or its stream. This file: versions, errors, the life of a
 * communicator; nccl_ops.c computes, nccl_log.c tells, nccl_topo.c looks at the machine.
 *
 *   FAKE_NCCL_VERSION=22809       what ncclGetVersion() says
 *   FAKE_NCCL_INIT_HANG=rank      that rank never gets further than ncclInProgress
 *   FAKE_NCCL_INIT_ERROR=rank     that rank's initialisation fails
 *   FAKE_NCCL_REMOTE=1            errors that are asked for are those of a peer that is gone, and not of the system
 *   FAKE_NCCL_ABORT_MS=n          so long an abort or revoke takes, while the stream is free at once
 *   FAKE_LEAKS=1                  tells at exit of communicators that were neither aborted nor destroyed
 *
 * What the real one answers with a hang or a crash ends the process with a word: an abort or revoke while another thread
 * is inside a call on the communicator, and a call on one that was freed. */
#include "nccl_comm.h"
#include "nccl_types.h"

#include "stream.h"

#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSION_MULTI_RANK_GPU 23003

struct id {
    uint64_t nonce;
    int32_t pid, fd;
};

static char last_error[256];
static unsigned live; /* communicators */

__attribute__((destructor)) static void tell_leaks(void)
{
    if (getenv("FAKE_LEAKS") && live)
        fprintf(stderr, "fake: %u communicators are left\n", live);
}

void fake_nccl_check(const struct ncclComm *c, const char *call)
{
    if (!c || !c->freed)
        return;
    fprintf(stderr, "fake: %s of a communicator that is no more\n", call);
    abort();
}

static bool env_is_rank(const char *name, int rank)
{
    const char *text = getenv(name);
    return text && atoi(text) == rank;
}

ncclResult_t fake_nccl_fail(ncclResult_t result, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(last_error, sizeof(last_error), format, args);
    va_end(args);
    return result;
}

ncclResult_t fake_nccl_asked(void)
{
    return getenv("FAKE_NCCL_REMOTE") ? ncclRemoteError : ncclSystemError;
}

ncclResult_t ncclGetVersion(int *version)
{
    const char *text = getenv("FAKE_NCCL_VERSION");

    *version = text ? atoi(text) : NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const TEXT[ncclNumResults] = {
        "no error",
        "unhandled cuda error",
        "unhandled system error",
        "internal error",
        "invalid argument",
        "invalid usage",
        "remote process exited",
        "NCCL operation in progress",
    };
    return (unsigned)result < ncclNumResults ? TEXT[result] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return last_error;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *ret)
{
    struct id id = {.pid = getpid(), .fd = memfd_create("fake-nccl", MFD_CLOEXEC)};

    if (id.fd < 0 || ftruncate(id.fd, sizeof(struct meeting)) < 0 ||
        getentropy(&id.nonce, sizeof(id.nonce)) < 0 ||
        pwrite(id.fd, &id.nonce, sizeof(id.nonce), 0) != sizeof(id.nonce))
        return fake_nccl_fail(ncclSystemError, "fake: no shared memory for a unique id");
    memset(ret, 0, sizeof(*ret));
    memcpy(ret, &id, sizeof(id));
    fake_nccl_info("Bootstrap: Using lo:127.0.0.1<0>");
    return ncclSuccess;
}

/* Maps the meeting place; NULL when the process that made the id is gone. */
static struct meeting *open_meeting(const struct id *id)
{
    char path[64];
    struct stat st;
    struct meeting *m = MAP_FAILED;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", id->pid, id->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && st.st_size == (off_t)sizeof(*m))
        m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (m == MAP_FAILED)
        return NULL;
    if (m->nonce != id->nonce) {
        munmap(m, sizeof(*m));
        return NULL;
    }
    return m;
}

static uint64_t host_hash(void)
{
    const char *id = getenv("NCCL_HOSTID");
    char name[256] = "";
    uint64_t hash = 5381;

    if (!id) {
        gethostname(name, sizeof(name) - 1);
        id = name;
    }
    while (*id)
        hash = hash * 33 ^ (unsigned char)*id++;
    return hash;
}

unsigned long fake_nccl_bus_number(const char *bus_id)
{
    unsigned domain = 0, bus = 0, device = 0, function = 0;

    sscanf(bus_id, "%x:%x:%x.%x", &domain, &bus, &device, &function);
    return (unsigned long)domain << 20 | bus << 12 | device << 4 | function;
}

static ncclResult_t check_duplicates(const struct ncclComm *c)
{
    const struct seat *mine = &c->m->seat[c->rank];
    const char *multi = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    int version;

    ncclGetVersion(&version);
    if (version >= VERSION_MULTI_RANK_GPU && multi && strcmp(multi, "1") == 0)
        return ncclSuccess;
    for (int r = 0; r < c->nranks; r++) {
        const struct seat *seat = &c->m->seat[r];
        if (r == c->rank || seat->host != mine->host || strcmp(seat->bus_id, mine->bus_id) != 0)
            continue;
        if (version >= VERSION_MULTI_RANK_GPU)
            return fake_nccl_fail(ncclInvalidUsage,
                                  "Multiple Ranks are using the same GPU/Partition. Set "
                                  "NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this configuration.");
        return fake_nccl_fail(
            ncclInvalidUsage,
            "Duplicate GPU detected : rank %d and rank %d both on CUDA device %lx", c->rank, r,
            fake_nccl_bus_number(mine->bus_id));
    }
    return ncclSuccess;
}

/* ncclInProgress until all have come. */
static ncclResult_t meet(struct ncclComm *c)
{
    if (env_is_rank("FAKE_NCCL_INIT_HANG", c->rank))
        return ncclInProgress;
    if (env_is_rank("FAKE_NCCL_INIT_ERROR", c->rank))
        return fake_nccl_fail(fake_nccl_asked(), "fake: FAKE_NCCL_INIT_ERROR of rank %d", c->rank);

    struct seat *mine = &c->m->seat[c->rank];
    if (!atomic_load(&mine->present)) {
        int device;
        mine->nranks = c->nranks;
        mine->host = host_hash();
        if (cudaGetDevice(&device) != cudaSuccess ||
            cudaDeviceGetPCIBusId(mine->bus_id, sizeof(mine->bus_id), device) != cudaSuccess)
            return fake_nccl_fail(ncclUnhandledCudaError,
                                  "Cuda failure 'no CUDA-capable device is detected'");
        fake_nccl_log_init(c, mine->bus_id, "START");
        ncclResult_t e = fake_nccl_topology(c);
        if (e != ncclSuccess)
            return e;
        atomic_store(&mine->present, 1);
    }
    for (int r = 0; r < c->nranks; r++) {
        if (!atomic_load(&c->m->seat[r].present))
            return ncclInProgress;
        if (c->m->seat[r].nranks != c->nranks)
            return fake_nccl_fail(ncclInvalidUsage, "fake: %d ranks here, %d in rank %d", c->nranks,
                                  c->m->seat[r].nranks, r);
    }
    c->state = READY;
    fake_nccl_fuse(c);
    ncclResult_t e = check_duplicates(c);
    if (e == ncclSuccess)
        fake_nccl_log_init(c, mine->bus_id, "COMPLETE");
    return e;
}

/* As with the real one, it needs every member to come to an end. */
static ncclResult_t finish(struct ncclComm *c)
{
    atomic_store(&c->m->seat[c->rank].finalized, 1);
    for (int r = 0; r < c->nranks; r++)
        if (!atomic_load(&c->m->seat[r].finalized))
            return ncclInProgress;
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *async)
{
    LOCKED;
    fake_nccl_check(c, "ncclCommGetAsyncError");
    if (!c || !async)
        return fake_nccl_fail(ncclInvalidArgument, "fake: ncclCommGetAsyncError of nothing");
    if (c->error != ncclSuccess) {
        *async = c->error;
        return ncclSuccess;
    }
    *async = c->state == MEETING      ? meet(c)
             : c->state == CONNECTING ? fake_nccl_connect(c)
             : c->state == FINALIZING ? finish(c)
                                      : ncclSuccess;
    if (*async != ncclInProgress)
        c->error = *async;
    return ncclSuccess;
}

ncclResult_t fake_nccl_begun(struct ncclComm *c)
{
    ncclResult_t e = ncclInProgress;

    c->inside++;
    while (c->blocking && e == ncclInProgress) {
        ncclCommGetAsyncError(c, &e);
        fake_yield();
    }
    c->inside--;
    return e;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *ret, int nranks, ncclUniqueId unique, int rank,
                                    ncclConfig_t *config)
{
    struct id id;
    memcpy(&id, &unique, sizeof(id));

    if (nranks < 1 || nranks > RANKS_MAX || rank < 0 || rank >= nranks)
        return fake_nccl_fail(ncclInvalidArgument, "Invalid rank requested : %d/%d", rank, nranks);
    if (config && config->magic != 0xcafebeef)
        return fake_nccl_fail(ncclInvalidArgument, "fake: ncclConfig_t was not initialised");
    struct meeting *m = open_meeting(&id);
    if (!m)
        return fake_nccl_fail(ncclSystemError, "fake: the process that made the unique id is gone");
    struct ncclComm *c = calloc(1, sizeof(*c));
    if (!c || atomic_load(&m->seat[rank].present)) {
        munmap(m, sizeof(*m));
        free(c);
        return fake_nccl_fail(ncclInternalError,
                              "Bootstrap Root : rank %d of %d ranks has already checked in", rank,
                              nranks);
    }
    LOCKED;
    live++;
    *c = (struct ncclComm){.m = m,
                           .rank = rank,
                           .nranks = nranks,
                           .root_fd = id.pid == getpid() ? id.fd : -1,
                           .blocking = !config || config->blocking != 0 ||
                                       getenv("NCCL_COMM_BLOCKING"), /* always 1 here */
                           .refs = 1};
    *ret = c;
    return fake_nccl_begun(c);
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
    return ncclCommInitRankConfig(comm, nranks, id, rank, NULL);
}

static struct ncclComm *freed; /* kept, so that a call on one is noticed */

void fake_nccl_unref(struct ncclComm *c)
{
    if (--c->refs > 0)
        return;
    munmap(c->m, sizeof(*c->m));
    if (c->root_fd >= 0)
        close(c->root_fd);
    c->freed = true;
    c->next_freed = freed;
    freed = c;
    live--;
}

ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    LOCKED;
    fake_nccl_check(c, "ncclCommFinalize");
    if (!c || c->state != READY || c->error != ncclSuccess)
        return fake_nccl_fail(ncclInvalidArgument,
                              "fake: ncclCommFinalize of a communicator that is not ready");
    c->state = FINALIZING;
    return fake_nccl_begun(c);
}

static void take_long(void)
{
    const char *ms = getenv("FAKE_NCCL_ABORT_MS");
    if (ms)
        usleep((useconds_t)atoi(ms) * 1000);
}

/* What is queued ends at once. */
static void cut_short(struct ncclComm *c, const char *call)
{
    LOCKED;
    fake_nccl_check(c, call);
    if (c->inside) {
        fprintf(stderr, "fake: %s while another thread is inside a call\n", call);
        abort();
    }
    c->aborted = true;
    fake_nccl_drop_waiting(c);
}

ncclResult_t ncclCommAbort(ncclComm_t c)
{
    if (!c)
        return ncclSuccess;
    cut_short(c, "ncclCommAbort");
    if (!c->revoked)
        take_long();
    LOCKED;
    fake_nccl_unref(c);
    return ncclSuccess;
}

ncclResult_t ncclCommRevoke(ncclComm_t c, int flags)
{
    if (!c || flags != 0)
        return fake_nccl_fail(ncclInvalidArgument, "fake: ncclCommRevoke of nothing");
    cut_short(c, "ncclCommRevoke");
    take_long();
    LOCKED;
    c->revoked = true;
    return ncclSuccess;
}

/* Without a finalize before, the real one would wait for the others in here. */
ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    ncclResult_t e = ncclSuccess;

    if (!c)
        return ncclSuccess;
    LOCKED;
    fake_nccl_check(c, "ncclCommDestroy");
    if (c->state == READY) {
        c->state = FINALIZING;
        c->blocking = true;
        e = fake_nccl_begun(c);
    }
    fake_nccl_unref(c);
    return e;
}

ncclResult_t ncclCommCount(const ncclComm_t c, int *count)
{
    *count = c->nranks;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t c, int *rank)
{
    *rank = c->rank;
    return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void **ptr, size_t bytes)
{
    return cudaMalloc(ptr, bytes) == cudaSuccess
               ? ncclSuccess
               : fake_nccl_fail(ncclUnhandledCudaError, "Cuda failure 'out of memory'");
}

ncclResult_t ncclMemFree(void *ptr)
{
    return cudaFree(ptr) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

const unsigned char *fake_nccl_scalar(const struct ncclComm *c, ncclRedOp_t op)
{
    int i = (int)op - ncclNumOps;
    return i >= 0 && i < OPS_MAX && c->ops[i].made ? c->ops[i].scalar : NULL;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t c)
{
    LOCKED;
    fake_nccl_check(c, "ncclRedOpCreatePreMulSum");
    for (int i = 0; residence == ncclScalarHostImmediate && i < OPS_MAX; i++) {
        if (c->ops[i].made)
            continue;
        c->ops[i].made = true;
        memcpy(c->ops[i].scalar, scalar, fake_nccl_type_bytes(type));
        *op = (ncclRedOp_t)(ncclNumOps + i);
        return ncclSuccess;
    }
    return fake_nccl_fail(ncclInvalidArgument, "fake: too many operations, or a device's scalar");
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t c)
{
    LOCKED;
    if (!fake_nccl_scalar(c, op))
        return fake_nccl_fail(ncclInvalidArgument, "fake: there is no such operation");
    c->ops[op - ncclNumOps].made = false;
    return ncclSuccess;
}
