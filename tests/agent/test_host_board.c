/* SPDX-License-Identifier: MIT */
/* agent/host_board.c: what workers write, seen through a second mapping of the same memory. */
#include "../../agent/host_board.h"
#include "../harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#define N 3

static uv_loop_t loop;
static struct host_board hb;
static struct board worker; /* another process's view */
static struct err err;
static char news[256];

static void on_stage(void *user, uint32_t rank, enum stage stage)
{
    CHECK(user == news);
    size_t used = strlen(news);
    snprintf(news + used, sizeof news - used, "%u:%s ", rank, stage_name(stage));
}

static void open_at(uint32_t generation)
{
    struct board_config config = {.world_size = N, .generation = generation, .run_id = "r"};
    uv_loop_init(&loop);
    CHECK_INT(host_board_open(&hb, &loop, &config, on_stage, news, &err), ==, 0);
    CHECK_INT(board_open(&worker, hb.board.fd, &err), ==, 0);
}

static void write_stage(uint32_t rank, uint32_t generation, uint32_t stage)
{
    atomic_store(&board_slot(&worker, rank)->generation, generation);
    atomic_store(&board_slot(&worker, rank)->stage, stage);
}

/* A rank whose process joined in generation `born` and has that state. */
static void be(uint32_t rank, uint32_t born, uint64_t state)
{
    atomic_store(&board_slot(&worker, rank)->born, born);
    atomic_store(&board_slot(&worker, rank)->state, state);
}

static void ring(void)
{
    CHECK_INT(eventfd_write(hb.bell, 1), ==, 0);
    uv_run(&loop, UV_RUN_ONCE);
}

static void close_all(void)
{
    board_close(&worker);
    host_board_close(&hb);
    host_board_close(&hb);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(&loop), ==, 0);
}

TEST(a_stage_is_told_once_when_the_bell_rings)
{
    open_at(1);
    write_stage(1, 1, STAGE_JOINED);
    CHECK_STR(news, "");
    ring();
    CHECK_STR(news, "1:JOINED ");
    ring();
    CHECK_STR(news, "1:JOINED ");
    write_stage(0, 1, STAGE_JOINED);
    write_stage(1, 1, STAGE_LEFT);
    ring();
    CHECK_STR(news, "1:JOINED 0:JOINED 1:LEFT ");
    close_all();
}

TEST(a_look_does_not_wait_for_the_bell)
{
    open_at(1);
    write_stage(2, 1, STAGE_FAILED);
    host_board_look_at(&hb, 2);
    CHECK_STR(news, "2:JOINED 2:FAILED ");
    CHECK_INT(host_board_stage(&hb, 2), ==, STAGE_FAILED);
    close_all();
    host_board_look_at(&hb, 2); /* closed: nothing to see */
    CHECK_STR(news, "2:JOINED 2:FAILED ");
}

TEST(what_another_generation_or_a_broken_worker_wrote_is_not_believed)
{
    open_at(7);
    write_stage(0, 6, STAGE_JOINED);
    write_stage(1, 8, STAGE_RUNNING);
    write_stage(2, 7, STAGES_N);
    ring();
    write_stage(2, 7, 0xffffffffu);
    ring();
    CHECK_STR(news, "");
    for (uint32_t i = 0; i < N; i++)
        CHECK_INT(host_board_stage(&hb, i), ==, STAGE_NONE);
    close_all();
}

TEST(the_release_and_the_stop_can_be_seen_by_workers)
{
    open_at(4);
    const struct board_head *h = worker.head;
    CHECK_INT(h->running, ==, 0);
    for (uint32_t i = 0; i < N; i++)
        be(i, 4, 0);
    CHECK(host_board_release(&hb));
    CHECK_INT(h->running, ==, 4);
    uint32_t epoch = h->epoch;
    host_board_stop(&hb, 15);
    CHECK_INT(h->stop, ==, 15);
    CHECK_INT(h->epoch, ==, epoch + 1);
    close_all();
    host_board_stop(&hb, 9); /* an attempt that never got a board */
}

static void check_parked(int least)
{
    int fds[] = {hb.board.fd, hb.bell};
    for (int i = 0; i < 2; i++) {
        CHECK_INT(fds[i], >=, least);
        CHECK(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
    }
}

TEST(its_descriptors_are_out_of_the_way_of_shell_scripts)
{
    open_at(1);
    check_parked(100);
    close_all();
    CHECK_INT(fcntl(100, F_GETFD), ==, -1);
    CHECK_INT(fcntl(101, F_GETFD), ==, -1);
}

TEST(under_a_low_limit_they_stay_where_they_are)
{
    struct rlimit limit = {.rlim_cur = 64, .rlim_max = 64};
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    open_at(1);
    check_parked(3);
    close_all();
}

/* Every number of descriptors too few: an error with a text, and nothing is kept. */
TEST(without_descriptors_nothing_is_left_open)
{
    struct board_config config = {.world_size = N, .generation = 1, .run_id = "r"};
    uv_loop_init(&loop);
    int next = dup(0);
    close(next);
    struct rlimit was, few;
    getrlimit(RLIMIT_NOFILE, &was);
    for (int spare = 0; spare < 2; spare++) {
        few = (struct rlimit){.rlim_cur = (rlim_t)(next + spare), .rlim_max = was.rlim_max};
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &few), ==, 0);
        CHECK_INT(host_board_open(&hb, &loop, &config, on_stage, news, &err), ==, -EMFILE);
        CHECK(*err.text);
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &was), ==, 0);
        int now = dup(0);
        close(now);
        CHECK_INT(now, ==, next);
        host_board_close(&hb);
    }
    config.world_size = 0;
    CHECK_INT(host_board_open(&hb, &loop, &config, on_stage, news, &err), ==, -EINVAL);
    host_board_close(&hb);
}

TEST(the_next_generation_has_nobody_in_it_yet)
{
    open_at(1);
    for (uint32_t i = 0; i < N; i++)
        write_stage(i, 1, STAGE_RUNNING);
    ring();
    news[0] = '\0';
    uint32_t epoch = worker.head->epoch;
    host_board_next(&hb, 2, 0);
    CHECK_INT(worker.head->generation, ==, 2);
    CHECK_INT(worker.head->epoch, ==, epoch + 1);
    ring();
    CHECK_STR(news, "");
    write_stage(1, 2, STAGE_JOINED);
    ring();
    CHECK_STR(news, "1:JOINED ");
    CHECK(host_board_is_member(&hb, 1));
    CHECK(!host_board_is_member(&hb, 0));
    close_all();
}

TEST(what_a_rank_told_in_another_generation_is_no_progress_in_this_one)
{
    open_at(1);
    struct board_slot *slot = board_slot(&worker, 1);
    slot->step = 4;
    slot->heartbeat = 3;
    slot->entered = 2;
    slot->finished = 1;
    write_stage(1, 1, STAGE_RUNNING);
    struct progress p = host_board_progress(&hb, 1);
    CHECK(p.stage == STAGE_RUNNING && p.step == 4 && p.heartbeat == 3);
    CHECK(p.entered == 2 && p.finished == 1);
    host_board_next(&hb, 2, 0); /* it has still to come, or another process in its place has */
    p = host_board_progress(&hb, 1);
    CHECK(p.stage == STAGE_NONE && !p.step && !p.heartbeat && !p.entered && !p.finished);
    close_all();
}

TEST(the_newest_state_is_taken_and_of_equal_ones_the_lowest_rank)
{
    static const struct {
        uint64_t state[N];
        uint32_t born[N], root, restore;
    } rows[] = {
        {{5, 5, 5}, {1, 1, 1}, 1, 0}, {{5, 5, 0}, {1, 1, 2}, 1, 1}, {{4, 5, 5}, {1, 1, 1}, 2, 1},
        {{0, 0, 1}, {2, 2, 1}, 3, 1}, {{0, 7, 6}, {2, 1, 1}, 2, 1},
    };
    open_at(2);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (uint32_t r = 0; r < N; r++)
            be(r, rows[i].born[r], rows[i].state[r]);
        CHECK(host_board_release(&hb));
        CHECK_INT(worker.head->root, ==, rows[i].root);
        CHECK_INT(worker.head->restore, ==, rows[i].restore);
        CHECK_INT(worker.head->root_state, ==, rows[i].state[rows[i].root - 1]);
    }
    close_all();
}

TEST(ranks_whose_state_is_lost_are_not_let_go)
{
    open_at(2);
    for (uint32_t i = 0; i < N; i++)
        be(i, i == 1 ? 1 : 2, 0);
    CHECK(!host_board_release(&hb));
    CHECK_INT(worker.head->running, ==, 0);
    for (uint32_t i = 0; i < N; i++)
        be(i, 2, 0); /* all new: nothing was lost */
    CHECK(host_board_release(&hb));
    CHECK_INT(worker.head->root, ==, 0);
    close_all();
}

TEST(a_worker_that_writes_that_all_are_gathered_is_not_believed)
{
    open_at(2);
    for (uint32_t i = 0; i < N; i++)
        be(i, 1, 0);
    worker.head->gathered = 2;
    worker.head->root = N + 7;
    CHECK(!host_board_gather(&hb)); /* the state is lost all the same */
    CHECK(!host_board_release(&hb));
    be(1, 1, 5);
    CHECK(host_board_release(&hb));
    CHECK_INT(worker.head->root, ==, 2);
    close_all();
}

TEST(a_generation_that_was_gathered_is_let_go_and_the_next_one_chooses_anew)
{
    open_at(2);
    for (uint32_t i = 0; i < N; i++)
        be(i, 1, 5 + i);
    CHECK(host_board_gather(&hb));
    CHECK_INT(worker.head->gathered, ==, 2);
    CHECK_INT(worker.head->root, ==, N);
    worker.head->gathered = 0; /* a worker that takes it back, and has lost its state */
    be(N - 1, 1, 0);
    CHECK(host_board_gather(&hb));
    CHECK(host_board_release(&hb));
    CHECK_INT(worker.head->running, ==, 2);
    CHECK_INT(worker.head->root, ==, N); /* as they were told */
    host_board_next(&hb, 3, 0);
    CHECK(host_board_release(&hb));
    CHECK_INT(worker.head->root, ==, N - 1);
    close_all();
}

TEST(a_dropped_place_has_no_rank_and_those_behind_move_up)
{
    open_at(1);
    host_board_drop(&hb, 1);
    CHECK_INT(worker.head->members, ==, N);
    host_board_next(&hb, 2, 0);
    CHECK_INT(hb.members, ==, N - 1);
    CHECK_INT(worker.head->members, ==, N - 1);
    CHECK_INT(board_slot(&worker, 0)->rank, ==, 0);
    CHECK_INT(board_slot(&worker, 1)->rank, ==, BOARD_NO_RANK);
    CHECK_INT(board_slot(&worker, 2)->rank, ==, 1);
    be(0, 1, 3), be(1, 1, 9), be(2, 1, 4); /* the dead one's state is nobody's */
    CHECK(host_board_release(&hb));
    CHECK_INT(worker.head->root, ==, 2);
    close_all();
}

TEST(a_place_that_is_regained_has_its_rank_again_and_those_behind_move_down)
{
    open_at(1);
    host_board_drop(&hb, 0);
    host_board_drop(&hb, 1);
    host_board_next(&hb, 2, 0);
    CHECK_INT(board_slot(&worker, 2)->rank, ==, 0);
    host_board_regain(&hb, 1);
    CHECK_INT(worker.head->members, ==, 1); /* not before the next generation */
    host_board_next(&hb, 3, 0);
    CHECK_INT(worker.head->members, ==, 2);
    CHECK_INT(board_slot(&worker, 0)->rank, ==, BOARD_NO_RANK);
    CHECK_INT(board_slot(&worker, 1)->rank, ==, 0);
    CHECK_INT(board_slot(&worker, 2)->rank, ==, 1);
    be(1, 3, 0), be(2, 1, 4); /* the survivor's state is taken */
    CHECK(host_board_release(&hb));
    CHECK_INT(worker.head->root, ==, 2);
    CHECK_INT(worker.head->restore, ==, 1);
    close_all();
}

/* flags: BOARD_JOIN_*. */
static bool catches(uint32_t generation, enum stage stage, uint32_t flags)
{
    write_stage(1, generation, stage);
    atomic_store(&board_slot(&worker, 1)->join_flags, flags);
    return host_board_catches_stop(&hb, 1);
}

TEST(who_saves_by_itself_need_not_have_met_the_others_again)
{
    open_at(2);
    host_board_occupy(&hb, 1);
    host_board_next(&hb, 3, 0);
    CHECK(catches(3, STAGE_RUNNING, BOARD_JOIN_CATCHES_STOP));
    CHECK(catches(2, STAGE_RUNNING, BOARD_JOIN_CATCHES_STOP));
    CHECK(!catches(2, STAGE_RUNNING, BOARD_JOIN_CAN_HEAL));
    CHECK(!catches(1, STAGE_RUNNING, BOARD_JOIN_CATCHES_STOP)); /* its predecessor did */
    CHECK(!catches(3, STAGE_NONE, BOARD_JOIN_CATCHES_STOP));
    CHECK(!catches(3, STAGE_LEFT, BOARD_JOIN_CATCHES_STOP));
    CHECK(!catches(3, 4711, BOARD_JOIN_CATCHES_STOP));
    close_all();
    CHECK(!host_board_catches_stop(&hb, 1));
}

TEST(who_has_left_has_also_when_the_next_generation_has_begun_and_until_the_place_is_anothers)
{
    open_at(1);
    host_board_occupy(&hb, 1);
    write_stage(1, 1, STAGE_RUNNING);
    CHECK(!host_board_has_left(&hb, 1));
    write_stage(1, 1, STAGE_LEFT);
    host_board_next(&hb, 2, 0);
    CHECK(host_board_has_left(&hb, 1));
    host_board_occupy(&hb, 1);
    CHECK(!host_board_has_left(&hb, 1));
    close_all();
    CHECK(!host_board_has_left(&hb, 1));
}

TEST(a_stop_that_is_not_ours_is_known_by_who_obeyed_it)
{
    open_at(1);
    CHECK_INT(host_board_false_stop(&hb, 1), ==, 0);
    atomic_store(&worker.head->stop, 7);
    CHECK_INT(host_board_false_stop(&hb, 1), ==, 0);
    atomic_store(&board_slot(&worker, 1)->obeyed, 7);
    CHECK_INT(host_board_false_stop(&hb, 1), ==, 7);
    CHECK_INT(host_board_false_stop(&hb, 0), ==, 0);
    host_board_stop(&hb, 15);
    CHECK_INT(host_board_false_stop(&hb, 1), ==, 0);
    close_all();
    CHECK_INT(host_board_false_stop(&hb, 1), ==, 0);
}

TEST(a_place_that_was_dropped_has_no_stage_to_tell)
{
    open_at(1);
    host_board_drop(&hb, 1);
    host_board_next(&hb, 2, 0);
    write_stage(1, 2, STAGE_JOINED);
    write_stage(2, 2, STAGE_JOINED);
    ring();
    CHECK_STR(news, "2:JOINED ");
    close_all();
}

TEST(a_standby_is_warm_once_it_says_so_and_until_another_takes_its_place)
{
    struct board_config config = {.world_size = N, .spares = 2, .generation = 1, .run_id = "r"};
    uv_loop_init(&loop);
    CHECK_INT(host_board_open(&hb, &loop, &config, on_stage, news, &err), ==, 0);
    CHECK_INT(board_open(&worker, hb.board.fd, &err), ==, 0);
    CHECK(!host_board_is_warm(&hb, 1));
    atomic_store(&board_slot(&worker, N + 1)->stage, 4711);
    CHECK(!host_board_is_warm(&hb, 1));
    atomic_store(&board_slot(&worker, N + 1)->stage, STAGE_JOINED);
    CHECK(host_board_is_warm(&hb, 1) && !host_board_is_warm(&hb, 0));
    host_board_vacate(&hb, 1);
    CHECK(!host_board_is_warm(&hb, 1));
    close_all();
}
