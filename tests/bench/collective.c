/* SPDX-License-Identifier: MIT */
/* collective LATENCY_ROUNDS LARGE_ROUNDS: barrier, all-reduce of 8 bytes and of 64 MiB of host memory, timed by rank
 * 0, one call at a time: lines "NAME NANOSECONDS". One source, built as a job of ours and, with -DWITH_MPI, as an MPI
 * program, so that both measure the same. */
#include "../../proto/clock.h"

#include <stdio.h>
#include <stdlib.h>

#define LARGE_BYTES (64u * 1024u * 1024u)

#ifdef WITH_MPI
#include <mpi.h>
#define CONTEXT int
static int barrier(int unused)
{
    (void)unused;
    return MPI_Barrier(MPI_COMM_WORLD);
}
static int sum(int unused, float *data, size_t n)
{
    (void)unused;
    return MPI_Allreduce(MPI_IN_PLACE, data, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
#else
#include "../../worker/launch.h"
#define CONTEXT struct launch *
static int barrier(struct launch *l)
{
    return launch_barrier(l);
}
static int sum(struct launch *l, float *data, size_t n)
{
    return launch_all_reduce(l, data, data, n, LAUNCH_FLOAT, LAUNCH_SUM);
}
#endif

static int time_barrier(CONTEXT l, int rank, int rounds)
{
    for (int i = -rounds / 10; i < rounds; i++) {
        uint64_t start = clock_now_ns();
        int rc = barrier(l);
        if (rc)
            return rc;
        if (rank == 0 && i >= 0)
            printf("barrier %llu\n", (unsigned long long)(clock_now_ns() - start));
    }
    return 0;
}

static int time_sum(CONTEXT l, int rank, int rounds, const char *name, size_t bytes)
{
    size_t n = bytes / sizeof(float);
    float *data = malloc(bytes);
    if (!data)
        return -5;
    int rc = 0;
    for (int i = -1 - rounds / 10; i < rounds && rc == 0; i++) {
        for (size_t k = 0; k < n; k++)
            data[k] = 1;
        rc = barrier(l);
        uint64_t start = clock_now_ns();
        if (rc == 0)
            rc = sum(l, data, n);
        if (rank == 0 && i >= 0)
            printf("%s %llu\n", name, (unsigned long long)(clock_now_ns() - start));
    }
    free(data);
    return rc;
}

static int measure(CONTEXT l, int rank, int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1000, large = argc > 2 ? atoi(argv[2]) : 5;
    int rc = time_barrier(l, rank, rounds);
    if (rc == 0)
        rc = time_sum(l, rank, rounds, "all_reduce_8B", 8);
    if (rc == 0 && large)
        rc = time_sum(l, rank, large, "all_reduce_64MiB", LARGE_BYTES);
    return rc;
}

#ifdef WITH_MPI
int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int rc = measure(0, rank, argc, argv);
    MPI_Finalize();
    return rc != 0;
}
#else
int launch_main(struct launch *l, int argc, char **argv)
{
    return measure(l, launch_rank(l), argc, argv);
}
#endif
