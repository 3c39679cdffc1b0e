/* SPDX-License-Identifier: MIT */
/* A communicator that is begun while a dead rank keeps its GPU still. */
#include "crew.h"

static bool all_in_generation(const struct crew *c, uint32_t generation)
{
    for (unsigned i = 0; i < c->n; i++) {
        const struct board_slot *slot = board_slot(&c->board, i);
        if (atomic_load(&slot->generation) != generation ||
            atomic_load(&slot->stage) < STAGE_JOINED)
            return false;
    }
    return true;
}

/* Have all taken the id of generation 2, whose first rank has made it? */
static bool all_begun(const struct crew *c)
{
    const struct board_head *h = c->board.head;
    bool all = atomic_load(&h->id_generation) == 2;
    for (unsigned i = 0; i < c->n; i++)
        all = all && atomic_load(&board_slot(&c->board, i)->id_seen_ns) >= h->id_published_ns;
    return all;
}

/* The last rank has died and has a new process; all are there, and the dead one keeps its GPU still. */
static void gather_again(struct crew *c)
{
    crew_run(c, 3, 3, 0, "heals");
    CHECK_INT(crew_end(c, 2), ==, KILLED);
    next_generation(c);
    start_worker(c, 2, "heals");
    while (!all_in_generation(c, 2))
        await_bell(c);
    atomic_store(&c->board.head->gathered, 2);
    board_bump_epoch(&c->board);
}

static void release(struct crew *c)
{
    atomic_store(&c->board.head->running, 2);
    board_wake(&c->board.head->running);
    board_bump_epoch(&c->board);
    check_all_end(c, LAUNCH_OK);
}

TEST(nccl_ranks_that_have_met_begin_while_the_dead_are_dying)
{
    struct crew c;
    gather_again(&c);
    for (int ms = 0; !all_begun(&c) && ms < PATIENCE_MS; ms++)
        usleep(1000);
    CHECK(all_begun(&c));
    release(&c);
}

TEST(nccl_a_gpu_that_the_dead_fill_is_not_touched_before_they_are_gone)
{
    struct crew c;
    setenv("FAKE_GPU_MIB", "1000", 1);
    gather_again(&c);
    usleep(20000); /* too short a wait only hides a fault */
    CHECK_INT(atomic_load(&c.board.head->id_generation), ==, 1);
    release(&c);
    CHECK_INT(atomic_load(&c.board.head->id_generation), ==, 2);
}
