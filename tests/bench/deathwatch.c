/* SPDX-License-Identifier: MIT */
/* SIGKILL to news, for a worker of N MiB resident: by the robust lock (agent/deathwatch.c, on the loop) and by the
 * pidfd. deathwatch [MiB [rounds]]
 * deathwatch look: what the agent's look at the stages of 64 ranks costs. */
#include "../../agent/deathwatch.h"
#include "../../agent/host_board.h"
#include "../../proto/clock.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define ROUNDS_MAX 10000

static uv_loop_t loop;
static uint64_t told_ns;

static void on_lost(void *user, uint32_t rank)
{
    (void)user, (void)rank;
    told_ns = clock_now_ns();
    uv_stop(&loop);
}

static pid_t start_worker(const struct board *board, size_t bytes)
{
    int ready[2];
    if (pipe(ready) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
        if (bytes && mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0) == MAP_FAILED)
            _exit(1);
        pthread_mutex_lock(&board_slot(board, 0)->lock);
        if (write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    char byte;
    close(ready[1]);
    bool ok = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    return ok ? pid : -1;
}

/* One kill; ms until the lock and until the pidfd told. */
static bool round_of(size_t bytes, double *ret_lock, double *ret_pidfd)
{
    struct board board;
    struct board_config config = {.world_size = 1, .generation = 1};
    struct deathwatch *watch;
    if (board_create(&board, &config, NULL) < 0 ||
        deathwatch_start(&watch, &loop, &board, 1, on_lost, NULL) < 0)
        return false;
    pid_t pid = start_worker(&board, bytes);
    if (pid < 0)
        return false;
    deathwatch_add(watch, 0);
    uv_run(&loop, UV_RUN_NOWAIT);
    usleep(2000); /* both sides are asleep */
    struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    uint64_t killed = clock_now_ns();
    kill(pid, SIGKILL);
    uv_run(&loop, UV_RUN_DEFAULT);
    poll(&p, 1, -1);
    *ret_lock = (double)(told_ns - killed) / NS_PER_MS;
    *ret_pidfd = (double)(clock_now_ns() - killed) / NS_PER_MS;
    close(p.fd);
    waitpid(pid, NULL, 0);
    deathwatch_stop(&watch);
    uv_run(&loop, UV_RUN_DEFAULT);
    board_close(&board);
    return true;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(const char *what, double *ms, unsigned n)
{
    qsort(ms, n, sizeof *ms, by_value);
    printf("%-6s p50 %8.3f ms  p99 %8.3f ms  max %8.3f ms\n", what, ms[n / 2],
           ms[(size_t)n * 99 / 100], ms[n - 1]);
}

static void on_stage(void *user, uint32_t rank, enum stage stage)
{
    (void)user, (void)rank, (void)stage;
}

static int look(void)
{
    enum { RANKS = 64, LOOKS = 200000 };
    struct host_board hb = {0};
    struct board_config config = {.world_size = RANKS, .generation = 1};
    struct err err;
    if (host_board_open(&hb, &loop, &config, on_stage, NULL, &err) < 0)
        return 1;
    clock_t start = clock(); /* of this process alone: the machine may be busy */
    for (unsigned i = 0; i < LOOKS; i++)
        for (uint32_t rank = 0; rank < RANKS; rank++)
            host_board_look_at(&hb, rank);
    printf("look %.1f\n", (double)(clock() - start) / CLOCKS_PER_SEC * NS_PER_S / LOOKS);
    host_board_close(&hb);
    return 0;
}

int main(int argc, char **argv)
{
    static double lock[ROUNDS_MAX], pidfd[ROUNDS_MAX];
    size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 4096;
    unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 100;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    uv_loop_init(&loop);
    if (argc > 1 && strcmp(argv[1], "look") == 0)
        return look();
    if (rounds < 1 || rounds > ROUNDS_MAX)
        return 2;
    for (unsigned i = 0; i < rounds; i++) {
        if (!round_of(mib << 20, &lock[i], &pidfd[i])) {
            perror("deathwatch");
            return 1;
        }
    }
    printf("SIGKILL to news, %u kills of a worker of %zu MiB\n", rounds, mib);
    print("lock", lock, rounds);
    print("pidfd", pidfd, rounds);
    return 0;
}
