/* SPDX-License-Identifier: MIT */
/* heal FILE ROUNDS PAUSE_MS: a job in which a rank kills itself in every round. FILE is shared by all ranks. Rank 0 prints a
 * line a round, microseconds after the SIGKILL: the first survivor was told, the last one was, the last rank had met the
 * others, the last one was through the next barrier. Then "store NS": what launch_step() costs. */
#include "../../worker/launch.h"

#include "../../proto/clock.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define RANKS_MAX 4096
#define STEPS 10000000

struct moments {
    _Atomic uint64_t told, met, through;
};

struct shared {
    _Atomic uint64_t killed;
    struct moments of[RANKS_MAX];
};

static struct {
    uint64_t round;
} state;

static struct shared *shared;
static uint64_t rounds, pause_ns;

static void print_round(int n, int victim)
{
    uint64_t first = UINT64_MAX, told = 0, met = 0, through = 0, t0 = shared->killed;
    for (int i = 0; i < n; i++) {
        const struct moments *m = &shared->of[i];
        if (i != victim && m->told < first)
            first = m->told;
        if (i != victim && m->told > told)
            told = m->told;
        if (m->met > met)
            met = m->met;
        if (m->through > through)
            through = m->through;
    }
    printf("round %llu %.1f %.1f %.1f %.1f\n", (unsigned long long)state.round,
           (double)(first - t0) / 1e3, (double)(told - t0) / 1e3, (double)(met - t0) / 1e3,
           (double)(through - t0) / 1e3);
}

/* One round: some rank, never 0, dies while the others are in a barrier. */
static int run_round(struct launch *l, bool healed)
{
    int n = launch_world_size(l), me = launch_rank(l),
        victim = 1 + (int)(state.round % (uint64_t)(n - 1));
    struct timespec t = {.tv_sec = (time_t)(pause_ns / NS_PER_S),
                         .tv_nsec = (long)(pause_ns % NS_PER_S)};
    int r = launch_barrier(l);
    if (r != LAUNCH_OK)
        return r;
    if (healed) {
        shared->of[me].through = clock_now_ns();
        r = launch_barrier(l);
        if (r != LAUNCH_OK)
            return r;
        if (me == 0)
            print_round(n, victim);
        state.round++;
        return launch_commit(l, state.round);
    }
    if (me == victim) {
        nanosleep(&t, NULL);
        shared->killed = clock_now_ns();
        kill(getpid(), SIGKILL);
    }
    return launch_barrier(l);
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void print_store(struct launch *l)
{
    uint64_t start = cpu_ns(); /* the other ranks have the CPUs as well */
    for (uint64_t i = 0; i < STEPS; i++)
        (void)launch_step(l, i);
    printf("store %.2f\n", (double)(cpu_ns() - start) / STEPS);
}

int launch_main(struct launch *l, int argc, char **argv)
{
    if (argc != 4)
        return 2;
    int fd = open(argv[1], O_RDWR | O_CLOEXEC | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *shared) < 0)
        return 2;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (shared == MAP_FAILED)
        return 2;
    rounds = strtoull(argv[2], NULL, 10);
    pause_ns = strtoull(argv[3], NULL, 10) * NS_PER_MS;

    launch_keep(l, &state, sizeof state);
    int r = launch_meet(l);
    while (state.round < rounds && (r == LAUNCH_OK || r == LAUNCH_AGAIN)) {
        shared->of[launch_rank(l)].told = clock_now_ns();
        bool healed = r == LAUNCH_AGAIN || launch_is_fresh(l, launch_rank(l));
        r = launch_meet(l);
        shared->of[launch_rank(l)].met = clock_now_ns();
        for (bool first = healed && launch_generation(l) > 1;
             r == LAUNCH_OK && state.round < rounds; first = false)
            r = run_round(l, first);
    }
    if (r == LAUNCH_OK && launch_rank(l) == 0)
        print_store(l);
    return r;
}
