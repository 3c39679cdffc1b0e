/* SPDX-License-Identifier: MIT */
/* Times all-reduces of float sums and verifies every element. A program with its own main():
 * it joins the group itself. Usage: allreduce [SIZE[K|M|G]] [TIMES] */
#include "launch.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef LAUNCH_WITH_NCCL
#include "launch_nccl.h"
#endif

#define SIZE_DEFAULT "16M"
#define TIMES_DEFAULT "20"
#define WARM_UPS 3
#define EXIT_USAGE 2

/* One all-reduce out of place, on the host or on the GPU. in and out: `count` floats each. */
struct bench {
    struct launch *l;
    size_t count;
    float *in, *out; /* host */
#ifdef LAUNCH_WITH_NCCL
    float *gpu_in, *gpu_out; /* NULL: the host does the work */
    ncclComm_t comm;         /* l's */
    cudaStream_t stream;     /* l's */
#endif
};

/* Whole positive number, with a binary suffix if `suffix`; 0 if the text is anything else. */
static unsigned long long parse(const char *text, int suffix)
{
    char *end;
    int shift = 0;

    if (*text < '0' || *text > '9')
        return 0;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (suffix && *end) {
        shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
        end += shift ? 1 : 0;
    }
    return errno || *end || number > SIZE_MAX >> 1 >> shift ? 0 : number << shift;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Small whole numbers: their sums are exact in a float, in whatever order they are added. */
static float input(size_t i, int rank)
{
    return (float)((i + 7 * (size_t)rank) % 8);
}

static float expected(size_t i, int nranks)
{
    float sum = 0;
    for (int rank = 0; rank < nranks; rank++)
        sum += input(i, rank);
    return sum;
}

static size_t count_wrong(const struct bench *b)
{
    float want[8]; /* the pattern repeats */
    size_t wrong = 0;

    for (size_t i = 0; i < 8; i++)
        want[i] = expected(i, launch_world_size(b->l));
    for (size_t i = 0; i < b->count; i++)
        wrong += b->out[i] != want[i % 8];
    return wrong;
}

#ifdef LAUNCH_WITH_NCCL
static int failed(struct bench *b, const char *call, cudaError_t e)
{
    return launch_fail(b->l, LAUNCH_FAILED, "%s: %s", call, cudaGetErrorString(e));
}

static int gpu_open(struct bench *b)
{
    size_t bytes = b->count * sizeof(float);

    int r = launch_nccl_comm(b->l, &b->comm, &b->stream);
    if (r != LAUNCH_OK)
        return r;
    cudaError_t e = cudaMalloc((void **)&b->gpu_in, bytes);
    if (e == cudaSuccess)
        e = cudaMalloc((void **)&b->gpu_out, bytes);
    if (e == cudaSuccess)
        e = cudaMemcpy(b->gpu_in, b->in, bytes, cudaMemcpyHostToDevice);
    return e == cudaSuccess ? LAUNCH_OK : failed(b, "device memory", e);
}

static int gpu_fetch(struct bench *b)
{
    cudaError_t e =
        cudaMemcpy(b->out, b->gpu_out, b->count * sizeof(float), cudaMemcpyDeviceToHost);
    return e == cudaSuccess ? LAUNCH_OK : failed(b, "cudaMemcpy", e);
}

static int gpu_run(struct bench *b, unsigned times)
{
    int r = LAUNCH_OK;

    for (unsigned i = 0; r == LAUNCH_OK && i < times; i++)
        r = launch_nccl_call(b->l, ncclAllReduce(b->gpu_in, b->gpu_out, b->count, ncclFloat,
                                                 ncclSum, b->comm, b->stream));
    return r == LAUNCH_OK ? launch_nccl_wait(b->l) : r;
}
#endif

static int bench_open(struct bench *b)
{
    b->in = malloc(b->count * sizeof(float));
    b->out = malloc(b->count * sizeof(float));
    if (!b->in || !b->out)
        return launch_fail(b->l, LAUNCH_FAILED, "out of memory");
    for (size_t i = 0; i < b->count; i++)
        b->in[i] = input(i, launch_rank(b->l));
#ifdef LAUNCH_WITH_NCCL
    if (launch_device(b->l) >= 0)
        return gpu_open(b);
#endif
    return LAUNCH_OK;
}

static void bench_close(struct bench *b)
{
#ifdef LAUNCH_WITH_NCCL
    cudaFree(b->gpu_in);
    cudaFree(b->gpu_out);
#endif
    free(b->in);
    free(b->out);
}

static int run(struct bench *b, unsigned times)
{
#ifdef LAUNCH_WITH_NCCL
    if (b->gpu_in)
        return gpu_run(b, times);
#endif
    int r = LAUNCH_OK;
    for (unsigned i = 0; r == LAUNCH_OK && i < times; i++)
        r = launch_all_reduce(b->l, b->in, b->out, b->count, LAUNCH_FLOAT, LAUNCH_SUM);
    return r;
}

/* The slowest rank's time counts: a barrier at both ends. */
static int measure(struct bench *b, unsigned times, double *ret_s)
{
    int r = run(b, WARM_UPS);
    if (r == LAUNCH_OK)
        r = launch_barrier(b->l);
    double start_s = now_s();
    if (r == LAUNCH_OK)
        r = run(b, times);
    if (r == LAUNCH_OK)
        r = launch_barrier(b->l);
    *ret_s = (now_s() - start_s) / times;
#ifdef LAUNCH_WITH_NCCL
    if (r == LAUNCH_OK && b->gpu_in)
        r = gpu_fetch(b);
#endif
    return r;
}

/* GB = 1e9 bytes. busbw: what each link of a ring would have carried. */
static void report(const struct bench *b, double time_s, unsigned long long wrong)
{
    int n = launch_world_size(b->l);
    double algbw = (double)(b->count * sizeof(float)) / time_s / 1e9;

    printf("%d ranks, %zu bytes, %s: time %.1f us, algbw %.2f GB/s, busbw %.2f GB/s, wrong %llu\n",
           n, b->count * sizeof(float), launch_device(b->l) >= 0 ? "device" : "host", time_s * 1e6,
           algbw, algbw * 2 * (n - 1) / n, wrong);
}

static int allreduce(struct launch *l, size_t count, unsigned times)
{
    struct bench b = {.l = l, .count = count};
    double time_s = 0;

    int r = bench_open(&b);
    if (r == LAUNCH_OK)
        r = measure(&b, times, &time_s);
    if (r == LAUNCH_OK) {
        int64_t wrong = (int64_t)count_wrong(&b);
        r = launch_all_reduce(l, &wrong, &wrong, 1, LAUNCH_INT64, LAUNCH_SUM);
        if (r == LAUNCH_OK && launch_rank(l) == 0)
            report(&b, time_s, (unsigned long long)wrong);
        if (r == LAUNCH_OK && wrong)
            r = LAUNCH_FAILED;
    }
    bench_close(&b);
    return r;
}

int main(int argc, char **argv)
{
    struct launch *l;
    size_t count = parse(argc > 1 ? argv[1] : SIZE_DEFAULT, 1) / sizeof(float);
    unsigned long long times = parse(argc > 2 ? argv[2] : TIMES_DEFAULT, 0);

    if (argc > 3 || count == 0 || times == 0 || times > UINT32_MAX) {
        fprintf(stderr, "usage: allreduce [SIZE[K|M|G]] [TIMES]; SIZE: 4 bytes or more\n");
        return EXIT_USAGE;
    }
    int r = launch_join(&l, 0);
    if (r == LAUNCH_OK)
        r = allreduce(l, count, (unsigned)times);
    if (r != LAUNCH_OK && *launch_error(l))
        fprintf(stderr, "allreduce: %s\n", launch_error(l));
    launch_leave(l);
    return r == LAUNCH_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
