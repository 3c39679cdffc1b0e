/* SPDX-License-Identifier: MIT */
/* Children that a member forks. */
#include "group.h"

#include "../../worker/worker.h"

#include <fcntl.h>

static int try_as_a_rank(struct launch *l, unsigned which)
{
    int64_t one = 1, all[2];
    switch (which) {
    case 0:
        return launch_barrier(l);
    case 1:
        return launch_broadcast(l, &one, sizeof one, 0);
    case 2:
        return launch_all_gather(l, &one, all, sizeof one);
    case 3:
        return launch_all_reduce(l, &one, all, 1, LAUNCH_INT64, LAUNCH_SUM);
    case 4:
        return launch_step(l, 77);
    case 5:
        return launch_commit(l, 77);
    case 6:
        return launch_check(l);
    default:
        return launch_meet(l);
    }
}

/* What a data loader might do that holds itself for its parent's rank. */
static void pretend_to_be_a_rank(struct launch *l)
{
    for (unsigned which = 0; which < 8; which++) {
        CHECK_INT(try_as_a_rank(l, which), ==, LAUNCH_INVALID);
        CHECK(strstr(launch_error(l), "was forked by rank 0 and is no rank"));
    }
    launch_fail(l, LAUNCH_FAILED, "a failure of the child's");
    CHECK_INT(launch_barrier(l), ==, LAUNCH_INVALID);
    CHECK(strstr(launch_error(l), "was forked by rank 0"));
    launch_catch_stop(l);
    CHECK_INT(launch_rank(l), ==, 0);
    CHECK_INT(launch_generation(l), ==, 0);
    exit(0); /* which leaves, in a member */
}

static void fork_a_pretender(struct launch *l, void *user)
{
    (void)user;
    CHECK_INT(launch_step(l, 5), ==, LAUNCH_OK);
    CHECK_INT(launch_barrier(l), ==, LAUNCH_OK);
    struct board_slot before = *launch_device_slot(l);
    fflush(NULL);
    pid_t child = launch_rank(l) == 0 ? fork() : -1;
    if (child == 0)
        pretend_to_be_a_rank(l);
    int status = 0;
    if (child > 0) {
        CHECK_INT(waitpid(child, &status, 0), ==, child);
        CHECK_INT(status, ==, 0);
        const struct board_slot *now = launch_device_slot(l); /* but for what peers write */
        CHECK_INT(now->step, ==, before.step);
        CHECK_INT(now->entered, ==, before.entered);
        CHECK_INT(now->heartbeat, ==, before.heartbeat);
        CHECK_INT(now->state, ==, before.state);
        CHECK_INT(now->stage, ==, before.stage);
        CHECK_INT(now->join_flags, ==, before.join_flags);
        CHECK_INT(now->error_bytes, ==, before.error_bytes);
    }
    CHECK_INT(launch_generation(l), ==, 1);
    CHECK_INT(launch_barrier(l), ==, LAUNCH_OK); /* with nobody's call in between */
    CHECK_INT(launch_meet(l), ==, LAUNCH_OK);
}

TEST(a_forked_child_is_refused_as_a_rank_and_changes_nothing_that_the_ranks_share)
{
    struct group g;
    group_open(&g, 2, 0);
    for (uint32_t i = 0; i < g.world_size; i++)
        group_spawn(&g, i, fork_a_pretender, NULL);
    group_start(&g);
    for (uint32_t i = 0; i < g.world_size; i++)
        CHECK_INT(group_reap(&g, i), ==, 0);
    group_close(&g);
}

/* Forks two, of which one ends at once, tells the test of it, and dies. */
static void die_before_a_child(struct launch *l, void *user)
{
    const int *pipes = user;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    CHECK_INT(waitpid(child, NULL, 0), ==, child);
    CHECK_INT(pthread_mutex_trylock(&launch_device_slot(l)->lock), ==, EBUSY);
    if (fork() > 0)
        raise(SIGKILL);
    char end;
    close(pipes[1]);
    _exit(read(pipes[0], &end, 1) < 0); /* lives until the test lets go */
}

TEST(the_lock_tells_of_a_death_although_a_forked_child_lives)
{
    struct group g;
    int lives[2];
    CHECK_INT(pipe(lives), ==, 0);
    group_open(&g, 1, 0);
    group_spawn(&g, 0, die_before_a_child, lives);
    group_start(&g);
    close_fd(&lives[0]);
    CHECK_INT(group_reap(&g, 0), ==, 128 + SIGKILL);
    CHECK_INT(pthread_mutex_trylock(&board_slot(&g.board, 0)->lock), ==, EOWNERDEAD);
    CHECK_INT(fcntl(lives[1], F_GETFL) & O_ACCMODE, ==, O_WRONLY);
    CHECK_INT(write(lives[1], "", 1), ==, 1); /* there is a reader still: the child */
    close_fd(&lives[1]);
    group_close(&g);
}
