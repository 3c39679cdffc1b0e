/* SPDX-License-Identifier: MIT */
/* A group of forked workers over a real board, with the test in the agent's part. For tests of
 * worker/. */
#ifndef LAUNCH_TESTS_WORKER_GROUP_H
#define LAUNCH_TESTS_WORKER_GROUP_H

#include "../harness.h"

#include "../../proto/board.h"
#include "../../proto/env.h"
#include "../../proto/status.h"
#include "../../worker/launch.h"

#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#define GROUP_MAX 32

struct group {
    struct board board;
    int bell;
    uint32_t world_size;
    pid_t pid[GROUP_MAX];
};

typedef void group_job(struct launch *l, void *user);

/* rendezvous_timeout_ms 0: none. */
static inline void group_open(struct group *g, uint32_t world_size, uint32_t rendezvous_timeout_ms)
{
    struct board_config config = {.world_size = world_size,
                                  .generation = 1,
                                  .restart_count = 3,
                                  .rendezvous_timeout_ms = rendezvous_timeout_ms};
    struct err err = {0};
    *g = (struct group){.world_size = world_size};
    if (board_create(&g->board, &config, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    g->bell = eventfd(0, EFD_CLOEXEC);
    CHECK_INT(g->bell, >=, 0);
}

static inline void group_close(struct group *g)
{
    board_close(&g->board);
    close_fd(&g->bell);
}

static inline void set_number(const char *name, long value)
{
    char text[24];
    snprintf(text, sizeof text, "%ld", value);
    setenv(name, text, 1);
}

/* What the agent would put into the environment of a worker. */
static inline void group_environ(const struct group *g, uint32_t rank)
{
    set_number(ENV_BOARD_FD, g->board.fd);
    set_number(ENV_BELL_FD, g->bell);
    set_number(ENV_SLOT, rank);
}

/* Forks a process that calls job() with l NULL: it joins itself. */
static inline pid_t group_fork(struct group *g, uint32_t rank, group_job *job, void *user)
{
    fflush(NULL);
    pid_t pid = fork();
    CHECK_INT(pid, >=, 0);
    if (pid > 0)
        return g->pid[rank] = pid;
    group_environ(g, rank);
    job(NULL, user);
    exit(0); /* not _exit: the leak check runs at exit */
}

struct joined_job {
    group_job *job;
    void *user;
};

static inline void join_and_run(struct launch *l, void *user)
{
    struct joined_job *j = user;
    if (launch_join(&l, 0) != LAUNCH_OK)
        test_fail(__FILE__, __LINE__, "%s", launch_error(NULL));
    j->job(l, j->user);
    launch_leave(l);
}

/* Forks a worker that joins, calls job() and leaves. */
static inline pid_t group_spawn(struct group *g, uint32_t rank, group_job *job, void *user)
{
    struct joined_job j = {job, user};
    return group_fork(g, rank, join_and_run, &j);
}

static inline bool stage_reached(const struct group *g, uint32_t rank, enum stage stage)
{
    struct board_slot *slot = board_slot(&g->board, rank);
    return atomic_load(&slot->stage) >= stage &&
           atomic_load(&slot->generation) == atomic_load(&g->board.head->generation);
}

/* Listens to the bell until the rank is there. */
static inline void group_await(struct group *g, uint32_t rank, enum stage stage)
{
    uint64_t rings;
    while (!stage_reached(g, rank, stage))
        CHECK_INT(read(g->bell, &rings, sizeof rings), ==, sizeof rings);
}

/* The agent's answer when all have joined. */
static inline void group_start(struct group *g)
{
    for (uint32_t i = 0; i < g->world_size; i++)
        group_await(g, i, STAGE_JOINED);
    atomic_store(&g->board.head->running, atomic_load(&g->board.head->generation));
    board_wake(&g->board.head->running);
}

static inline void group_stop(struct group *g)
{
    atomic_store(&g->board.head->stop, SIGTERM);
    board_bump_epoch(&g->board);
}

static inline void group_next_generation(struct group *g)
{
    atomic_fetch_add(&g->board.head->generation, 1);
    board_bump_epoch(&g->board);
}

/* Exit code of one worker, or 128 + its signal. */
static inline int group_reap(struct group *g, uint32_t rank)
{
    int status = 0;
    CHECK_INT(waitpid(g->pid[rank], &status, 0), ==, g->pid[rank]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A whole life: all ranks run the job, all end with 0. */
static inline void group_run(uint32_t world_size, uint32_t spin_ns, group_job *job, void *user)
{
    struct group g;
    group_open(&g, world_size, 0);
    g.board.head->spin_ns = spin_ns;
    for (uint32_t i = 0; i < world_size; i++)
        group_spawn(&g, i, job, user);
    group_start(&g);
    for (uint32_t i = 0; i < world_size; i++)
        CHECK_INT(group_reap(&g, i), ==, 0);
    group_close(&g);
}

#endif
