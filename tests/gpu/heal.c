/* SPDX-License-Identifier: MIT */
/* heal FILE ROUNDS PAUSE_MS [sync] [stop|spin]: a job in which, in every round, a rank kills itself (stop: stops; spin: goes
 * round in a loop of its own) while the others are in an all-reduce of NCCL's, asleep in cudaStreamSynchronize() (sync) or in
 * launch_nccl_wait(). FILE is shared by all ranks.
 * Rank 0 prints a line a round, milliseconds after the signal: the first survivor was told, the last one was, the last rank
 * had met the others, had the new communicator, had copied its part to the GPU, was through an all-reduce whose every sum is
 * right; then the GPU's free MiB, the descriptors and the threads of rank 0, and when the signal was, by the clock of logs. A
 * wrong sum ends the rank with 9. */
#include "../../worker/launch_nccl.h"

#include "../../proto/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define RANKS_MAX 64
#define COUNT (1 << 20) /* floats */
#define KILL_DELAY_NS (50 * NS_PER_MS)

struct moments {
    _Atomic uint64_t told, met, comm, copied, through;
};

struct shared {
    _Atomic uint64_t signalled, signalled_at; /* monotonic; since 1970 */
    struct moments of[RANKS_MAX];
};

static struct {
    uint64_t round;
} state;

static struct shared *shared;
static uint64_t rounds, pause_ns;
static bool asleep, stops, spins;
static float *data, host[COUNT];

static void nap(uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    nanosleep(&t, NULL);
}

static int entries(const char *path)
{
    DIR *dir = opendir(path);
    int n = -3; /* . and .. and dir */
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

static double last_of(int n, int but, size_t offset)
{
    uint64_t last = 0;
    for (int i = 0; i < n; i++) {
        uint64_t at = *(_Atomic uint64_t *)((char *)&shared->of[i] + offset);
        if (i != but && at > last)
            last = at;
    }
    return (double)(last - shared->signalled) / 1e6;
}

static void print_round(int n, int victim)
{
    size_t free_bytes = 0, all = 0;
    uint64_t first = UINT64_MAX;
    for (int i = 0; i < n; i++)
        if (i != victim && shared->of[i].told < first)
            first = shared->of[i].told;
    cudaMemGetInfo(&free_bytes, &all);
    printf("round %llu %.1f %.1f %.1f %.1f %.1f %.1f free %zu fds %d threads %d at %.4f\n",
           (unsigned long long)state.round, (double)(first - shared->signalled) / 1e6,
           last_of(n, victim, offsetof(struct moments, told)),
           last_of(n, -1, offsetof(struct moments, met)),
           last_of(n, -1, offsetof(struct moments, comm)),
           last_of(n, -1, offsetof(struct moments, copied)),
           last_of(n, -1, offsetof(struct moments, through)), free_bytes >> 20,
           entries("/proc/self/fd"), entries("/proc/self/task") + 1,
           (double)shared->signalled_at / 1e9);
    fflush(stdout);
}

static int check_cuda(struct launch *l, cudaError_t e)
{
    return e == cudaSuccess ? LAUNCH_OK
                            : launch_fail(l, LAUNCH_FAILED, "CUDA: %s", cudaGetErrorString(e));
}

/* Every rank gives its number plus the element's, small enough to be exact. */
static int reduce(struct launch *l, ncclComm_t comm, cudaStream_t stream, struct moments *m)
{
    for (int i = 0; i < COUNT; i++)
        host[i] = (float)(launch_rank(l) + i % 64);
    int r = check_cuda(l, cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice));
    m->copied = clock_now_ns();
    if (r == LAUNCH_OK)
        r = launch_nccl_call(l, ncclAllReduce(data, data, COUNT, ncclFloat, ncclSum, comm, stream));
    if (r == LAUNCH_OK && asleep)
        r = check_cuda(l, cudaStreamSynchronize(stream));
    if (r == LAUNCH_OK)
        r = asleep ? launch_check(l) : launch_nccl_wait(l);
    m->through = clock_now_ns();
    return r;
}

static int check_sums(struct launch *l)
{
    int n = launch_world_size(l);
    int r = check_cuda(l, cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; r == LAUNCH_OK && i < COUNT; i++) {
        if (host[i] == (float)(n * (n - 1) / 2 + n * (i % 64)))
            continue;
        fprintf(stderr, "rank %d: round %llu: element %d is %g\n", launch_rank(l),
                (unsigned long long)state.round, i, (double)host[i]);
        _exit(9);
    }
    return r;
}

static int end_round(struct launch *l, int victim)
{
    int r = check_sums(l);
    if (r == LAUNCH_OK)
        r = launch_barrier(l); /* all have written down their moments */
    if (r == LAUNCH_OK && launch_rank(l) == 0)
        print_round(launch_world_size(l), victim);
    state.round++;
    return r == LAUNCH_OK ? launch_commit(l, state.round) : r;
}

/* Rank 0, too. */
static int run_round(struct launch *l, bool healed)
{
    ncclComm_t comm;
    cudaStream_t stream;
    /* The others may be in the next round when rank 0 prints: only what healed is written down. */
    struct moments none, *mine = healed ? &shared->of[launch_rank(l)] : &none;
    int victim = (int)((state.round + 1) % (uint64_t)launch_world_size(l));
    int r = launch_nccl_comm(l, &comm, &stream);
    mine->comm = clock_now_ns();
    if (r == LAUNCH_OK)
        r = reduce(l, comm, stream, mine);
    if (r != LAUNCH_OK || healed)
        return r == LAUNCH_OK ? end_round(l, victim) : r;
    nap(pause_ns); /* a standby gets ready */
    r = launch_barrier(l);
    if (r == LAUNCH_OK && launch_rank(l) == victim) {
        nap(KILL_DELAY_NS);
        shared->signalled = clock_now_ns();
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        shared->signalled_at = (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
        while (spins)
            atomic_signal_fence(memory_order_seq_cst);
        raise(stops ? SIGSTOP : SIGKILL);
    }
    return r == LAUNCH_OK ? reduce(l, comm, stream, mine) : r;
}

static int open_shared(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *shared) < 0)
        return -1;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return shared == MAP_FAILED ? -1 : 0;
}

int launch_main(struct launch *l, int argc, char **argv)
{
    if (argc < 4 || launch_world_size(l) > RANKS_MAX || open_shared(argv[1]) < 0)
        return 2;
    rounds = strtoull(argv[2], NULL, 10);
    pause_ns = strtoull(argv[3], NULL, 10) * NS_PER_MS;
    for (int i = 4; i < argc; i++) {
        asleep |= strcmp(argv[i], "sync") == 0;
        stops |= strcmp(argv[i], "stop") == 0;
        spins |= strcmp(argv[i], "spin") == 0;
    }
    int r = check_cuda(l, cudaSetDevice(launch_device(l)));
    if (r == LAUNCH_OK)
        r = check_cuda(l, cudaMalloc((void **)&data, sizeof host));
    if (r != LAUNCH_OK)
        return r;
    launch_keep(l, &state, sizeof state);
    r = LAUNCH_AGAIN;
    for (bool first = true; r == LAUNCH_AGAIN; first = false) {
        struct moments *mine = &shared->of[launch_rank(l)];
        mine->told = clock_now_ns();
        r = launch_meet(l);
        mine->met = clock_now_ns();
        bool healed = launch_generation(l) > 1 && (!first || launch_is_fresh(l, launch_rank(l)));
        for (; r == LAUNCH_OK && state.round < rounds; healed = false)
            r = run_round(l, healed);
    }
    return r;
}
