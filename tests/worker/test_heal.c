/* SPDX-License-Identifier: MIT */
/* worker/heal.c: meeting again after a loss, with the test in the agent's part. */
#include "group.h"

#include "../../worker/worker.h"

#include <sched.h>

#define LAST 5
#define FILLER 200000 /* several chunks */

struct kept {
    uint64_t step;
    int32_t filler[FILLER];
};

static struct kept kept;

/* What the agent does when all have joined. root -1: nobody has a state. */
static void let_go(struct group *g, int root, bool restore)
{
    struct board_head *h = g->board.head;
    for (uint32_t i = 0; i < g->world_size; i++)
        if (board_slot(&g->board, i)->rank != BOARD_NO_RANK)
            group_await(g, i, STAGE_JOINED);
    h->root = (uint32_t)(root + 1);
    h->root_state = root < 0 ? 0 : board_slot(&g->board, (uint32_t)root)->state;
    h->restore = restore;
    atomic_store(&h->running, atomic_load(&h->generation));
    board_wake(&h->running);
}

static int one_step(struct launch *l, int victim)
{
    if (launch_rank(l) == victim && launch_generation(l) == 1 && kept.step == 2)
        raise(SIGKILL);
    int r = launch_barrier(l);
    if (r != LAUNCH_OK)
        return r;
    kept.step++;
    for (size_t i = 0; i < FILLER; i++)
        kept.filler[i]++;
    return launch_commit(l, kept.step);
}

static void check_kept(void)
{
    for (size_t i = 0; i < FILLER; i++)
        CHECK_INT(kept.filler[i], ==, kept.step);
}

/* user: the rank that dies; NULL: 1. */
static void survive(struct launch *l, void *user)
{
    int victim = user ? *(int *)user : 1, r;
    CHECK_INT(launch_keep(l, &kept, sizeof kept), ==, LAUNCH_OK);
    do {
        r = launch_meet(l);
        check_kept();
        while (r == LAUNCH_OK && kept.step < LAST)
            r = one_step(l, victim);
    } while (r == LAUNCH_AGAIN);
    CHECK_INT(r, ==, LAUNCH_OK);
    CHECK_STR(launch_error(l), "");
    CHECK_INT(kept.step, ==, LAST);
}

/* Three ranks of which rank 1 has died; the others wait for the next generation. */
static void lose_rank_1(struct group *g)
{
    for (uint32_t i = 0; i < 3; i++)
        group_spawn(g, i, survive, NULL);
    let_go(g, -1, false);
    CHECK_INT(group_reap(g, 1), ==, 128 + SIGKILL);
    group_next_generation(g);
    group_await(g, 0, STAGE_JOINED);
    group_await(g, 2, STAGE_JOINED);
}

static int newest(const struct group *g)
{
    return board_slot(&g->board, 0)->state >= board_slot(&g->board, 2)->state ? 0 : 2;
}

static void expect_success(struct group *g, uint32_t rank)
{
    CHECK_INT(group_reap(g, rank), ==, 0);
}

TEST(a_new_process_gets_what_the_survivors_keep)
{
    struct group g;
    group_open(&g, 3, 0);
    lose_rank_1(&g);
    group_spawn(&g, 1, survive, NULL);
    let_go(&g, newest(&g), true);
    for (uint32_t i = 0; i < 3; i++)
        expect_success(&g, i);
    CHECK_INT(board_slot(&g.board, 0)->born, ==, 1);
    CHECK_INT(board_slot(&g.board, 1)->born, ==, 2);
    CHECK_INT(board_slot(&g.board, 1)->state, ==, LAST + 2);
    group_close(&g);
}

/* What ranks are compared by, when one hangs. */
static void check_counts(const struct board_slot *slot, uint64_t step, uint64_t collectives)
{
    CHECK_INT(slot->step, ==, step);
    CHECK_INT(slot->entered, ==, collectives);
    CHECK_INT(slot->finished, ==, collectives);
}

/* Once the others have got so far. */
static void die_behind(const struct launch *l, uint64_t step)
{
    for (uint32_t i = 0; i < 3; i++)
        while (i != 1 && atomic_load(&worker_peer(l, i)->step) != step)
            sched_yield();
    raise(SIGKILL);
}

static void count_a_barrier(struct launch *l, void *user)
{
    (void)user;
    CHECK_INT(launch_meet(l), ==, LAUNCH_OK);
    if (launch_generation(l) == 1) {
        CHECK_INT(launch_barrier(l), ==, LAUNCH_OK);
        CHECK_INT(launch_commit(l, 7), ==, LAUNCH_OK);
        check_counts(l->slot, 7, 1);
        if (launch_rank(l) == 1)
            die_behind(l, 9);
        CHECK_INT(launch_step(l, 9), ==, LAUNCH_OK); /* further than what is kept */
        CHECK_INT(launch_barrier(l), ==, LAUNCH_AGAIN);
        CHECK_INT(launch_meet(l), ==, LAUNCH_OK);
    }
    check_counts(l->slot, 7, 0);
    CHECK_INT(launch_barrier(l), ==, LAUNCH_OK);
    check_counts(l->slot, 7, 1);
}

TEST(a_generation_counts_its_collectives_and_begins_at_the_step_that_was_committed)
{
    struct group g;
    group_open(&g, 3, 0);
    for (uint32_t i = 0; i < 3; i++)
        group_spawn(&g, i, count_a_barrier, NULL);
    let_go(&g, -1, false);
    CHECK_INT(group_reap(&g, 1), ==, 128 + SIGKILL);
    group_next_generation(&g);
    group_spawn(&g, 1, count_a_barrier, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        group_await(&g, i, STAGE_JOINED);
        check_counts(board_slot(&g.board, i), 0, 0); /* nobody knows yet whose state it will be */
    }
    let_go(&g, newest(&g), true);
    for (uint32_t i = 0; i < 3; i++)
        expect_success(&g, i);
    group_close(&g);
}

/* Only rank 0 has made the first step, which is number 0, when rank 2 dies. */
static void commit_step_0(struct launch *l, void *user)
{
    (void)user;
    CHECK_INT(launch_keep(l, &kept, sizeof kept), ==, LAUNCH_OK);
    CHECK_INT(launch_meet(l), ==, LAUNCH_OK);
    if (launch_generation(l) == 1) {
        kept.filler[0] = launch_rank(l) == 0;
        if (launch_rank(l) == 0)
            CHECK_INT(launch_commit(l, 0), ==, LAUNCH_OK);
        while (launch_rank(l) == 2 && !atomic_load(&worker_peer(l, 0)->entered))
            sched_yield();
        if (launch_rank(l) == 2)
            raise(SIGKILL);
        CHECK_INT(launch_barrier(l), ==, LAUNCH_AGAIN);
        CHECK_INT(launch_meet(l), ==, LAUNCH_OK);
    }
    CHECK_INT(kept.filler[0], ==, 1);
    CHECK_INT(l->slot->step, ==, 0);
}

TEST(a_commit_number_0_is_another_state_than_the_one_that_all_begin_with)
{
    struct group g;
    group_open(&g, 3, 0);
    for (uint32_t i = 0; i < 3; i++)
        group_spawn(&g, i, commit_step_0, NULL);
    let_go(&g, -1, false);
    CHECK_INT(group_reap(&g, 2), ==, 128 + SIGKILL);
    CHECK_INT(board_slot(&g.board, 0)->state, >, board_slot(&g.board, 1)->state);
    group_next_generation(&g);
    group_spawn(&g, 2, commit_step_0, NULL);
    let_go(&g, 0, true);
    for (uint32_t i = 0; i < 3; i++)
        expect_success(&g, i);
    group_close(&g);
}

TEST(a_smaller_world_counts_its_ranks_anew)
{
    struct group g;
    group_open(&g, 3, 0);
    for (uint32_t i = 0; i < 3; i++)
        group_spawn(&g, i, survive, NULL);
    let_go(&g, -1, false);
    CHECK_INT(group_reap(&g, 1), ==, 128 + SIGKILL);
    group_next_generation(&g);
    group_await(&g, 0, STAGE_JOINED);
    group_await(&g, 2, STAGE_JOINED);
    board_slot(&g.board, 1)->rank = BOARD_NO_RANK;
    board_slot(&g.board, 2)->rank = 1;
    g.board.head->members = 2;
    int root = newest(&g);
    g.board.head->root = root ? 2 : 1;
    g.board.head->root_state = board_slot(&g.board, (uint32_t)root)->state;
    g.board.head->restore = 1;
    atomic_store(&g.board.head->running, 2);
    board_wake(&g.board.head->running);
    expect_success(&g, 0);
    expect_success(&g, 2);
    group_close(&g);
}

static void be_refused_again(struct launch *l, void *user)
{
    int r = launch_meet(l);
    while (r == LAUNCH_OK)
        r = launch_barrier(l);
    if (r == LAUNCH_AGAIN) /* else the next generation was there before we first met */
        r = launch_meet(l);
    CHECK_INT(r, ==, LAUNCH_FAILED);
    CHECK_HAS(launch_error(l), user);
    /* Who does not listen is told again. */
    CHECK_INT(launch_barrier(l), ==, LAUNCH_INVALID);
    CHECK_HAS(launch_error(l), user);
    CHECK_INT(launch_state_root(l), ==, -1);
    for (int rank = -1; rank < 3; rank++)
        (void)launch_is_fresh(l, rank);
}

TEST(a_table_of_ranks_that_makes_no_sense_is_refused)
{
    static const struct {
        uint32_t rank[2], members, root;
    } rows[] = {{{0, 0}, 2, 0},
                {{1, 2}, 2, 0},
                {{0, 1}, 0, 0},
                {{0, 1}, 3, 0},
                {{0, 1}, 1, 0},
                {{0, BOARD_NO_RANK}, 2, 0},
                {{BOARD_NO_RANK, BOARD_NO_RANK}, 1, 0},
                {{0, 1}, 2, 3},
                {{0, 1}, 2, 0x80000000}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct group g;
        group_open(&g, 2, 0);
        for (uint32_t rank = 0; rank < 2; rank++)
            group_spawn(&g, rank, be_refused_again, "contradict each other");
        group_start(&g);
        for (uint32_t rank = 0; rank < 2; rank++)
            group_await(&g, rank, STAGE_RUNNING);
        group_next_generation(&g);
        for (uint32_t rank = 0; rank < 2; rank++)
            group_await(&g, rank, STAGE_JOINED); /* nobody looks at the old table any more */
        for (uint32_t rank = 0; rank < 2; rank++)
            board_slot(&g.board, rank)->rank = rows[i].rank[rank];
        g.board.head->members = rows[i].members;
        g.board.head->root = rows[i].root;
        atomic_store(&g.board.head->running, 2);
        board_wake(&g.board.head->running);
        for (uint32_t rank = 0; rank < 2; rank++)
            expect_success(&g, rank);
        group_close(&g);
    }
}

static void count_from(struct launch *l, void *user)
{
    l->barriers = *(uint32_t *)user;
    CHECK_INT(launch_barrier(l), ==, LAUNCH_AGAIN);
}

/* The test is rank 1, goes on to the next generation, where its words are 0, and its news come before the agent's. */
static void go_on(struct group *g)
{
    _Atomic uint32_t *word = &board_slot(&g->board, 1)->arrive[0];
    while (!(atomic_load(word) & 1)) /* rank 0 sleeps on it, or is about to */
        sched_yield();
    atomic_fetch_add(&g->board.head->generation, 1);
    atomic_store(word, 0);
    board_wake(word);
    board_bump_epoch(&g->board);
}

TEST(a_rank_that_has_gone_on_to_the_next_generation_has_not_come_whatever_the_count)
{
    static uint32_t counts[] = {0, 0x7ffffffc, 0x7ffffffe, 0x80000000, 0xfffffff0, 0xfffffffc};
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        struct group g;
        group_open(&g, 2, 0);
        atomic_store(&board_slot(&g.board, 1)->arrive[0], counts[i]);
        atomic_store(&board_slot(&g.board, 1)->generation, 1);
        atomic_store(&board_slot(&g.board, 1)->stage, STAGE_RUNNING);
        group_spawn(&g, 0, count_from, &counts[i]);
        group_start(&g);
        go_on(&g);
        CHECK_INT(group_reap(&g, 0), ==, 0);
        group_close(&g);
    }
}

/* user: the last generation. */
static void say_who_is_fresh(struct launch *l, void *user)
{
    int me = launch_rank(l);
    bool first = launch_generation(l) == 1;
    CHECK_INT(launch_meet(l), ==, LAUNCH_OK);
    CHECK_INT(launch_state_root(l), ==, first ? -1 : 0);
    for (int i = 0; i < 2; i++)
        CHECK_INT(launch_is_fresh(l, i), ==, first || i == 1);
    CHECK_INT(launch_is_fresh(l, -1), ==, 0);
    CHECK_INT(launch_is_fresh(l, 2), ==, 0);
    if (!first)
        return;
    while (me == 1 && !(atomic_load(&worker_peer(l, 0)->join_flags) & BOARD_JOIN_CAN_HEAL))
        sched_yield(); /* it has been here as well */
    if (me == 1)
        raise(SIGKILL);
    CHECK_INT(launch_barrier(l), ==, LAUNCH_AGAIN);
    CHECK_INT(launch_meet(l), ==, LAUNCH_OK);
    CHECK_INT(launch_meet(l), ==, LAUNCH_OK); /* once is enough */
    CHECK_INT(launch_generation(l), ==, *(uint32_t *)user);
    CHECK_INT(launch_state_root(l), ==, 0);
    CHECK(!launch_is_fresh(l, 0) && launch_is_fresh(l, 1));
}

/* last: the generation that runs again. */
static void ask_who_is_fresh(uint32_t last)
{
    struct group g;
    group_open(&g, 2, 0);
    group_spawn(&g, 0, say_who_is_fresh, &last);
    group_spawn(&g, 1, say_who_is_fresh, &last);
    let_go(&g, -1, false);
    CHECK_INT(group_reap(&g, 1), ==, 128 + SIGKILL);
    CHECK(atomic_load(&board_slot(&g.board, 1)->join_flags) & BOARD_JOIN_CAN_HEAL);
    group_next_generation(&g);
    group_spawn(&g, 1, say_who_is_fresh, &last);
    for (uint32_t generation = 3; generation <= last; generation++) {
        group_await(&g, 1, STAGE_JOINED);
        group_next_generation(&g);
    }
    let_go(&g, 0, true);
    expect_success(&g, 0);
    expect_success(&g, 1);
    group_close(&g);
}

TEST(who_is_new_and_whose_state_was_taken_can_be_asked)
{
    ask_who_is_fresh(2);
}

TEST(a_process_that_came_in_a_generation_which_never_ran_is_new_in_the_next)
{
    ask_who_is_fresh(3);
}

static void keep_different_things(struct launch *l, void *user)
{
    static char memory[8];
    (void)user;
    CHECK_INT(launch_keep(l, NULL, 3), ==, LAUNCH_INVALID);
    CHECK_INT(launch_keep(l, memory, 4), ==, LAUNCH_OK);
    CHECK_INT(launch_keep(l, memory, launch_rank(l) ? 8 : 7), ==, LAUNCH_OK); /* the same piece */
    int r = launch_meet(l);
    if (launch_generation(l) == 1) {
        CHECK_INT(r, ==, LAUNCH_OK);
        if (launch_rank(l) == 1)
            raise(SIGKILL);
        CHECK_INT(launch_barrier(l), ==, LAUNCH_AGAIN);
        r = launch_meet(l);
    }
    CHECK_INT(r, ==, LAUNCH_INVALID);
    CHECK_HAS(launch_error(l), "collectives differ");
}

TEST(ranks_that_keep_different_things_are_told)
{
    struct group g;
    group_open(&g, 2, 0);
    group_spawn(&g, 0, keep_different_things, NULL);
    group_spawn(&g, 1, keep_different_things, NULL);
    let_go(&g, -1, false);
    CHECK_INT(group_reap(&g, 1), ==, 128 + SIGKILL);
    group_next_generation(&g);
    group_spawn(&g, 1, keep_different_things, NULL);
    let_go(&g, 0, true);
    expect_success(&g, 0);
    expect_success(&g, 1);
    group_close(&g);
}

static void open_with_a_spare(struct group *g)
{
    struct board_config config = {.world_size = 3, .spares = 1, .generation = 1};
    struct err err = {0};
    *g = (struct group){.world_size = 3};
    CHECK_INT(board_create(&g->board, &config, &err), ==, 0);
    g->bell = eventfd(0, EFD_CLOEXEC);
}

static void become_rank_1(struct launch *l, void *user)
{
    CHECK_INT(launch_rank(l), ==, 1);
    CHECK_STR(getenv("RANK"), "1");
    CHECK_STR(getenv("ROLE_RANK"), "1");
    CHECK_STR(getenv("LOCAL_RANK"), "0"); /* it was set */
    survive(l, user);
}

TEST(a_standby_waits_for_a_place_and_becomes_that_rank)
{
    struct group g;
    open_with_a_spare(&g);
    setenv("LOCAL_RANK", "0", 1);
    group_spawn(&g, 3, become_rank_1, NULL);
    lose_rank_1(&g);
    atomic_store(&board_slot(&g.board, 3)->assigned, 2);
    board_wake(&board_slot(&g.board, 3)->assigned);
    let_go(&g, newest(&g), true);
    expect_success(&g, 0);
    expect_success(&g, 2);
    expect_success(&g, 3);
    CHECK_INT(board_slot(&g.board, 1)->pid, ==, g.pid[3]);
    CHECK_INT(board_slot(&g.board, 3)->stage, ==, STAGE_JOINED); /* it was warm */
    group_close(&g);
}

static void not_needed(struct launch *l, void *user)
{
    CHECK_INT(launch_join(&l, 0), ==, *(int *)user);
}

TEST(a_standby_that_is_not_needed_is_told_to_stop_and_a_wrong_place_is_refused)
{
    struct group g;
    int stop = LAUNCH_STOP, failed = LAUNCH_FAILED;
    open_with_a_spare(&g);
    atomic_store(&board_slot(&g.board, 3)->assigned, 5);
    group_fork(&g, 3, not_needed, &failed);
    expect_success(&g, 3);
    atomic_store(&board_slot(&g.board, 3)->assigned, 0);
    group_fork(&g, 3, not_needed, &stop);
    group_stop(&g);
    expect_success(&g, 3);
    group_close(&g);
}

TEST(a_job_that_nobody_launched_is_not_kept_waiting)
{
    struct launch *l;
    unsetenv(ENV_BOARD_FD);
    CHECK_INT(launch_join(&l, 0), ==, LAUNCH_OK);
    CHECK_INT(launch_keep(l, &kept, sizeof kept), ==, LAUNCH_OK);
    CHECK_INT(launch_meet(l), ==, LAUNCH_OK);
    CHECK_INT(launch_commit(l, 7), ==, LAUNCH_OK);
    CHECK_INT(launch_state_root(l), ==, -1);
    launch_leave(l);
}
