/* SPDX-License-Identifier: MIT */
/* Worker processes with worker/nccl.c on the fake CUDA and NCCL libraries of tests/fake. The test is the agent: it makes the
 * board, opens the gate and begins generations; the workers are tests/fake/nccl_job.c. */
#ifndef LAUNCH_TESTS_WORKER_CREW_H
#define LAUNCH_TESTS_WORKER_CREW_H

#include "../harness.h"

#include "../../proto/board.h"
#include "../../proto/env.h"
#include "../../proto/status.h"
#include "../../worker/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define RANKS_MAX 8
#define PATIENCE_MS 20000
#define SHORT_MS 50
#define KILLED (128 + SIGKILL)

struct crew {
    struct board board;
    unsigned n;
    int bell;
    pid_t pid[RANKS_MAX];
    int pidfd[RANKS_MAX];
};

/* Where the job and the fake libraries are: beside the test binary, in fake/. */
static inline const char *fake_dir(void)
{
    static char dir[4096];
    ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 16);
    CHECK(n > 0);
    dir[n] = '\0';
    strcpy(strrchr(dir, '/') + 1, "fake");
    return dir;
}

static inline void set_number(const char *name, long number)
{
    char text[24];
    snprintf(text, sizeof(text), "%ld", number);
    setenv(name, text, 1);
}

/* In the child: the agent's environment, then the job. slot: n: of the standby. */
static inline void become_worker(const struct crew *c, unsigned slot, unsigned rank,
                                 const char *job)
{
    char path[4200];
    int board = fcntl(c->board.fd, F_DUPFD, 3), bell = fcntl(c->bell, F_DUPFD, 3);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    set_number(ENV_BOARD_FD, board);
    set_number(ENV_BELL_FD, bell);
    set_number(ENV_SLOT, slot);
    if (slot == c->n)
        set_number(ENV_STANDBY, 2);
    set_number(ENV_GENERATION, 1);
    set_number(ENV_RANK, rank);
    set_number(ENV_LOCAL_RANK, rank);
    set_number(ENV_WORLD_SIZE, c->n);
    set_number(ENV_LOCAL_WORLD_SIZE, c->n);
    if (getenv("TEST_HOSTID")) {
        snprintf(path, sizeof(path), "%s-%u", getenv("TEST_HOSTID"), rank);
        setenv("NCCL_HOSTID", path, 1);
    }
    setenv("LD_LIBRARY_PATH", fake_dir(), 1);
    snprintf(path, sizeof(path), "%s/nccl_job", fake_dir());
    execl(path, path, job, (char *)NULL);
    _exit(127);
}

static inline void start_in_slot(struct crew *c, unsigned slot, unsigned i, const char *job)
{
    c->pid[i] = fork();
    CHECK(c->pid[i] >= 0);
    if (c->pid[i] == 0)
        become_worker(c, slot, i, job);
    c->pidfd[i] = (int)syscall(SYS_pidfd_open, c->pid[i], 0);
    CHECK(c->pidfd[i] >= 0);
}

static inline void start_worker(struct crew *c, unsigned i, const char *job)
{
    start_in_slot(c, i, i, job);
}

/* The crew's only standby, which gets warm, and then place i. */
static inline void start_standby(struct crew *c, unsigned i, const char *job)
{
    struct board_slot *spare = board_slot(&c->board, c->n);
    spare->device = board_slot(&c->board, i)->device;
    atomic_store(&spare->assigned, i + 1);
    start_in_slot(c, c->n, i, job);
}

/* Of a job that ends with its first loss: its communicators block. */
#define BLOCKS (1u << 31)

/* n workers for `gpus` GPUs, worker i on GPU i % gpus; none of them has joined yet. */
static inline void crew_start(struct crew *c, unsigned n, unsigned gpus, uint32_t flags,
                              const char *job)
{
    struct err err;
    flags = flags & BLOCKS ? flags & ~BLOCKS : flags | BOARD_FLAG_OUTLIVES;

    *c = (struct crew){.n = n, .bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    CHECK(c->bell >= 0);
    CHECK_INT(board_create(&c->board,
                           &(struct board_config){.world_size = n,
                                                  .spares = 1,
                                                  .generation = 1,
                                                  .rendezvous_timeout_ms = PATIENCE_MS,
                                                  .gpu_count = gpus,
                                                  .flags = flags,
                                                  .run_id = "test"},
                           &err),
              ==, 0);
    for (unsigned i = 0; i < n; i++)
        board_slot(&c->board, i)->device = gpus ? (int32_t)(i % gpus) : -1;
    for (unsigned i = 0; i < n; i++)
        start_worker(c, i, job);
}

static inline void await_bell(const struct crew *c)
{
    uint64_t rings;
    struct pollfd p = {.fd = c->bell, .events = POLLIN};

    CHECK_INT(poll(&p, 1, PATIENCE_MS), ==, 1);
    CHECK_INT(read(c->bell, &rings, sizeof(rings)), ==, sizeof(rings));
}

static inline bool all_joined(const struct crew *c)
{
    for (unsigned i = 0; i < c->n; i++)
        if (atomic_load(&board_slot(&c->board, i)->stage) < STAGE_JOINED)
            return false;
    return true;
}

/* Returns when `ranks` of them, a bit each, are through: a new generation is news to them from
 * then on. */
static inline void open_gate(struct crew *c, unsigned ranks)
{
    atomic_store(&c->board.head->running, 1);
    board_wake(&c->board.head->running);
    for (unsigned i = 0; i < c->n; i++)
        while ((ranks & 1u << i) && !atomic_load(&board_slot(&c->board, i)->heartbeat))
            await_bell(c);
}

static inline void crew_open_gate(struct crew *c)
{
    while (!all_joined(c))
        await_bell(c);
    open_gate(c, (1u << c->n) - 1);
}

static inline void crew_run(struct crew *c, unsigned n, unsigned gpus, uint32_t flags,
                            const char *job)
{
    crew_start(c, n, gpus, flags, job);
    crew_open_gate(c);
}

/* Exit code of a rank, 128 + n for a signal. */
static inline int crew_end(struct crew *c, unsigned rank)
{
    int status;

    CHECK_INT(waitpid(c->pid[rank], &status, 0), ==, c->pid[rank]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline void check_all_end(struct crew *c, int code)
{
    for (unsigned i = 0; i < c->n; i++)
        CHECK_INT(crew_end(c, i), ==, code);
}

static inline void check_error(const struct crew *c, unsigned rank, const char *part)
{
    char text[BOARD_ERROR_BYTES + 1] = "";

    board_get_error(board_slot(&c->board, rank), text, sizeof(text));
    CHECK_HAS(text, part);
}

static inline void await_entered(const struct crew *c)
{
    while (!atomic_load(&board_slot(&c->board, 0)->step))
        await_bell(c);
}

static inline void next_generation(struct crew *c)
{
    atomic_fetch_add(&c->board.head->generation, 1);
    board_bump_epoch(&c->board);
}

static inline void stop(struct crew *c)
{
    atomic_store(&c->board.head->stop, SIGTERM);
    board_bump_epoch(&c->board);
}

#endif
