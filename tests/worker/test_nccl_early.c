/* SPDX-License-Identifier: MIT */
/* A communicator that is begun while a dead rank keeps its GPU still. */
#include "crew.h"

#define LAST 2 /* the rank that dies */

static uint32_t generation_of(const struct crew *c)
{
    return atomic_load(&c->board.head->generation);
}

static bool all_have_met(const struct crew *c)
{
    for (unsigned i = 0; i < c->n; i++) {
        const struct board_slot *slot = board_slot(&c->board, i);
        if (atomic_load(&slot->generation) != generation_of(c) ||
            atomic_load(&slot->stage) < STAGE_JOINED)
            return false;
    }
    return true;
}

/* All are there, and the dead one keeps its GPU still. */
static void gather(struct crew *c)
{
    while (!all_have_met(c))
        await_bell(c);
    atomic_store(&c->board.head->gathered, generation_of(c));
    board_bump_epoch(&c->board);
}

/* The last rank has died, and has a new process. */
static void gather_again(struct crew *c, bool warm, const char *job)
{
    crew_run(c, LAST + 1, LAST + 1, 0, job);
    CHECK_INT(crew_end(c, LAST), ==, KILLED);
    next_generation(c);
    if (warm)
        start_standby(c, LAST, "heals");
    else
        start_worker(c, LAST, "heals");
    gather(c);
}

/* Has it taken the id of the generation, whose first rank has made it? */
static bool has_begun(const struct crew *c, unsigned i)
{
    const struct board_head *h = c->board.head;
    return atomic_load(&h->id_generation) == generation_of(c) &&
           atomic_load(&board_slot(&c->board, i)->id_seen_ns) >= h->id_published_ns;
}

static void await_begun(const struct crew *c, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        for (int ms = 0; !has_begun(c, i) && ms < PATIENCE_MS; ms++)
            usleep(1000);
        CHECK(has_begun(c, i));
    }
}

/* The id is still that of generation 1. */
static void check_nobody_begins(const struct crew *c)
{
    usleep(20000); /* too short a wait only hides a fault */
    CHECK_INT(atomic_load(&c->board.head->id_generation), ==, 1);
}

static void release(struct crew *c)
{
    atomic_store(&c->board.head->running, generation_of(c));
    board_wake(&c->board.head->running);
    board_bump_epoch(&c->board);
    check_all_end(c, LAUNCH_OK);
}

TEST(nccl_ranks_that_have_met_begin_while_the_dead_are_dying)
{
    struct crew c;
    gather_again(&c, true, "heals");
    await_begun(&c, LAST + 1);
    release(&c);
}

TEST(nccl_a_cold_process_does_not_touch_its_gpu_in_launch_join)
{
    struct crew c;
    gather_again(&c, false, "heals"); /* which looks */
    await_begun(&c, LAST);
    release(&c);
}

TEST(nccl_a_cold_first_rank_makes_the_id_when_all_may_go)
{
    struct crew c;
    crew_run(&c, LAST + 1, LAST + 1, 0, "heals-the-first");
    CHECK_INT(crew_end(&c, 0), ==, KILLED);
    next_generation(&c);
    start_worker(&c, 0, "heals-the-first");
    gather(&c);
    release(&c);
}

TEST(nccl_a_gpu_that_the_dead_fill_is_not_touched_before_they_are_gone)
{
    struct crew c;
    setenv("FAKE_GPU_MIB", "1000", 1);
    gather_again(&c, true, "heals");
    check_nobody_begins(&c);
    release(&c);
    CHECK_INT(atomic_load(&c.board.head->id_generation), ==, 2);
}

TEST(nccl_ranks_that_share_a_gpu_share_its_room_too)
{
    struct crew c;
    setenv("FAKE_GPU_MIB", "3000", 1); /* for three */
    setenv("TEST_HOSTID", "launch-test", 1);
    crew_run(&c, LAST + 1, 1, BOARD_FLAG_SHARE_GPUS, "heals");
    CHECK_INT(crew_end(&c, LAST), ==, KILLED);
    next_generation(&c);
    start_standby(&c, LAST, "heals");
    gather(&c);
    check_nobody_begins(&c);
    release(&c);
}

/* All have begun, and one more is lost, whose place has a new process. */
static void lose_another(struct crew *c)
{
    gather_again(c, true, "heals");
    await_begun(c, LAST + 1);
    kill(c->pid[LAST], SIGKILL);
    CHECK_INT(crew_end(c, LAST), ==, KILLED);
    next_generation(c);
    start_worker(c, LAST, "heals");
}

TEST(nccl_a_second_death_is_no_news_to_those_that_have_begun)
{
    struct crew c;
    lose_another(&c);
    gather(&c);
    await_begun(&c, LAST); /* once more */
    release(&c);
}

TEST(nccl_a_second_death_that_has_gone_at_once_is_no_news_either)
{
    struct crew c;
    lose_another(&c);
    while (!all_have_met(&c))
        await_bell(&c);
    release(&c);
}

TEST(nccl_a_stop_ends_ranks_that_have_begun)
{
    struct crew c;
    setenv("FAKE_LEAKS", "1", 1);
    gather_again(&c, true, "heals");
    await_begun(&c, LAST + 1);
    stop(&c);
    CHECK_INT(crew_end(&c, 0), ==, -LAUNCH_STOP);
    CHECK_INT(crew_end(&c, 1), ==, -LAUNCH_STOP);
    CHECK_INT(crew_end(&c, LAST), ==, 110 - LAUNCH_STOP); /* in launch_join() */
}

TEST(nccl_a_beginning_that_failed_is_forgotten_when_a_later_one_succeeds)
{
    struct crew c;
    gather_again(&c, false, "heals-in-need");
    usleep(20000); /* too short a wait only hides a fault */
    release(&c);
    for (unsigned i = 0; i < LAST; i++)
        CHECK_INT(atomic_load(&board_slot(&c.board, i)->error_bytes), ==, 0);
}
