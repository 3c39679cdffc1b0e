/* SPDX-License-Identifier: MIT */
/* Over host memory: liblaunch's own collectives, and no others: what it has not is not put together from what it has, for
 * that would be another collective's time. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CGROUP_PATH_BYTES 4096

static const enum launch_type TYPES[BENCH_TYPES_N] = {
    [BENCH_TYPE_INT32] = LAUNCH_INT32,
    [BENCH_TYPE_INT64] = LAUNCH_INT64,
    [BENCH_TYPE_FLOAT] = LAUNCH_FLOAT,
    [BENCH_TYPE_DOUBLE] = LAUNCH_DOUBLE,
};
static const enum launch_op OPS[BENCH_OPS_N] = {
    [BENCH_OP_SUM] = LAUNCH_SUM,
    [BENCH_OP_PROD] = LAUNCH_PROD,
    [BENCH_OP_MIN] = LAUNCH_MIN,
    [BENCH_OP_MAX] = LAUNCH_MAX,
};

/* The least limit from a cgroup up to the root; UINT64_MAX: none. path: below `mount`, is eaten up. */
static uint64_t limit_above(const char *mount, char *path, const char *name)
{
    uint64_t least = UINT64_MAX;
    for (char *slash = path + strlen(path);; slash = strrchr(path, '/')) {
        char file[CGROUP_PATH_BYTES + 64];
        unsigned long long limit;
        if (slash)
            *slash = '\0';
        snprintf(file, sizeof file, "%s%s/%s", mount, path, name);
        FILE *in = fopen(file, "re");
        if (in && fscanf(in, "%llu", &limit) == 1 && limit < least) /* v2 writes "max" for none */
            least = limit;
        if (in)
            fclose(in);
        if (!*path || !slash)
            return least;
    }
}

/* A container's memory is often less than the machine's. */
static uint64_t cgroup_limit(void)
{
    char line[CGROUP_PATH_BYTES];
    uint64_t least = UINT64_MAX;
    FILE *in = fopen("/proc/self/cgroup", "re");
    while (in && fgets(line, sizeof line, in)) {
        char *path = strchr(line, ':');
        bool v2 = strncmp(line, "0::", 3) == 0;
        if (!path || (!v2 && strncmp(path, ":memory:", 8) != 0))
            continue;
        path += v2 ? 2 : 8;
        path[strcspn(path, "\n")] = '\0';
        uint64_t limit = v2 ? limit_above("/sys/fs/cgroup", path, "memory.max")
                            : limit_above("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes");
        least = limit < least ? limit : least;
    }
    if (in)
        fclose(in);
    return least;
}

static int host_open(struct bench *b, struct bench_device *ret)
{
    long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t free_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0,
             limit = cgroup_limit();
    (void)b;
    ret->memory_bytes = free_bytes < limit ? free_bytes : limit;
    return LAUNCH_OK;
}

static void host_close(struct bench *b)
{
    free(b->window);
    b->window = NULL;
}

static void host_restore(struct bench *b)
{
    (void)b;
}

static void host_versions(int *ret_library, int *ret_headers, int *ret_runtime, int *ret_driver)
{
    *ret_library = *ret_headers = *ret_runtime = *ret_driver = 0;
}

/* Of the memory that is free now, or may be used, all ranks together take at most half. */
static uint64_t host_room(const struct bench_device *device, int sharers, int copies)
{
    return device->memory_bytes / 2 / (uint64_t)copies / (uint64_t)sharers;
}

static int host_alloc(struct bench *b, char **ret, size_t bytes)
{
    *ret = calloc(1, bytes ? bytes : 1);
    if (!b->window)
        b->window = malloc(BENCH_WINDOW_BYTES);
    return *ret && b->window ? LAUNCH_OK
                             : launch_fail(b->l, LAUNCH_FAILED, "no %zu bytes of memory", bytes);
}

static void host_free(char *data)
{
    free(data);
}

static int host_prepare(struct bench *b, const struct bench_plan *p)
{
    (void)b;
    (void)p;
    return LAUNCH_OK;
}

static int call_once(struct bench *b, const struct bench_call *call, const char *in, char *out)
{
    const struct bench_plan *p = &call->plan;
    size_t bytes = p->count * bench_type_size(p->type);
    switch (p->collective) {
    case BENCH_ALL_REDUCE:
        return launch_all_reduce(b->l, in, out, p->count, TYPES[p->type], OPS[p->op]);
    case BENCH_ALL_GATHER:
        return launch_all_gather(b->l, in, out, bytes);
    case BENCH_BROADCAST:
        if (b->rank == p->root && in != out)
            memcpy(out, in, bytes);
        return launch_broadcast(b->l, out, bytes, p->root);
    default:
        return launch_fail(b->l, LAUNCH_INVALID, "%s: not over host memory",
                           bench_collective_text(p->collective));
    }
}

static int host_run(struct bench *b, const struct bench_call *call, unsigned n)
{
    int r = LAUNCH_OK;
    for (unsigned i = 0; r == LAUNCH_OK && i < n; i++) {
        size_t shift = call->shift * (i % call->steps);
        r = call_once(b, call, call->in + shift, call->out + shift);
    }
    return r;
}

static int host_settle(struct bench *b)
{
    (void)b;
    return LAUNCH_OK;
}

static int host_put(struct bench *b, char *to, const void *from, size_t bytes)
{
    (void)b;
    memcpy(to, from, bytes);
    return LAUNCH_OK;
}

static int host_get(struct bench *b, void *to, const char *from, size_t bytes)
{
    (void)b;
    memcpy(to, from, bytes);
    return LAUNCH_OK;
}

static int host_move(struct bench *b, char *to, const char *from, size_t bytes)
{
    return host_put(b, to, from, bytes);
}

static int host_zero(struct bench *b, char *to, size_t bytes)
{
    (void)b;
    memset(to, 0, bytes);
    return LAUNCH_OK;
}

static int host_sum(struct bench *b, int64_t mine, int64_t *ret)
{
    return launch_all_reduce(b->l, &mine, ret, 1, LAUNCH_INT64, LAUNCH_SUM);
}

const struct bench_backend BENCH_BACKEND = {
    .name = "host",
    .words = "host memory",
    .collectives = 1u << BENCH_ALL_REDUCE | 1u << BENCH_ALL_GATHER | 1u << BENCH_BROADCAST,
    .types = 1u << BENCH_TYPE_INT32 | 1u << BENCH_TYPE_INT64 | 1u << BENCH_TYPE_FLOAT |
             1u << BENCH_TYPE_DOUBLE,
    .ops = 1u << BENCH_OP_SUM | 1u << BENCH_OP_PROD | 1u << BENCH_OP_MIN | 1u << BENCH_OP_MAX,
    .open = host_open,
    .close = host_close,
    .versions = host_versions,
    .room = host_room,
    .alloc = host_alloc,
    .free = host_free,
    .prepare = host_prepare,
    .restore = host_restore,
    .run = host_run,
    .settle = host_settle,
    .put = host_put,
    .get = host_get,
    .move = host_move,
    .zero = host_zero,
    .sum = host_sum,
};
