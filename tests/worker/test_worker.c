/* SPDX-License-Identifier: MIT */
/* Joining, the rendezvous, errors and leaving. */
#include "group.h"

#include "../../worker/run.h"
#include "../../worker/worker.h"

#include <fcntl.h>

static void idle(struct launch *l, void *user)
{
    (void)l, (void)user;
}

/* Expects launch_join() to fail as `user` says. */
struct refusal {
    int result;
    const char *text;
};

static void be_refused(struct launch *l, void *user)
{
    const struct refusal *want = user;
    l = (struct launch *)&l;
    CHECK_INT(launch_join(&l, 0), ==, want->result);
    CHECK(l == NULL);
    CHECK_HAS(launch_error(NULL), want->text);
}

TEST(without_a_launcher_a_process_is_rank_0_of_1)
{
    struct launch *l;
    unsetenv(ENV_BOARD_FD);
    CHECK_INT(launch_join(&l, 0), ==, LAUNCH_OK);
    CHECK_INT(launch_rank(l), ==, 0);
    CHECK_INT(launch_world_size(l), ==, 1);
    CHECK_INT(launch_local_rank(l), ==, 0);
    CHECK_INT(launch_local_world_size(l), ==, 1);
    CHECK_INT(launch_generation(l), ==, 1);
    CHECK_INT(launch_device(l), ==, -1);
    CHECK_INT(launch_step(l, 7), ==, LAUNCH_OK);
    CHECK_INT(launch_barrier(l), ==, LAUNCH_OK);
    CHECK_STR(launch_error(l), "");
    CHECK_STR(launch_error(NULL), "");
    launch_leave(l);
    launch_leave(NULL);
}

TEST(a_process_joins_once_with_and_without_a_launcher)
{
    struct launch *l, *again = (struct launch *)&l;
    unsetenv(ENV_BOARD_FD);
    CHECK_INT(launch_join(&l, 0), ==, LAUNCH_OK);
    CHECK_INT(launch_join(&again, 0), ==, LAUNCH_INVALID);
    CHECK(again == NULL);
    CHECK_HAS(launch_error(NULL), "already joined");
    launch_leave(l);
    CHECK_INT(launch_join(&l, 0), ==, LAUNCH_INVALID);
    CHECK_INT(launch_join(NULL, 0), ==, LAUNCH_INVALID);
}

TEST(unknown_flags_are_refused)
{
    struct launch *l;
    CHECK_INT(launch_join(&l, 0x10), ==, LAUNCH_INVALID);
    CHECK_HAS(launch_error(NULL), "0x10");
}

static void *join_elsewhere(void *result)
{
    struct launch *l;
    *(int *)result = launch_join(&l, 0);
    return NULL;
}

TEST(only_the_main_thread_may_join)
{
    pthread_t thread;
    int result = 0;
    CHECK_INT(pthread_create(&thread, NULL, join_elsewhere, &result), ==, 0);
    pthread_join(thread, NULL);
    CHECK_INT(result, ==, LAUNCH_INVALID);
    CHECK_HAS(launch_error(NULL), "main thread");
}

static void check_place(struct launch *l, void *user)
{
    struct group *g = user;
    int rank = launch_rank(l);
    CHECK_INT(launch_world_size(l), ==, 3);
    CHECK_INT(launch_local_rank(l), ==, 2 - rank);
    CHECK_INT(launch_device(l), ==, 2 - rank);
    CHECK_INT(launch_restart_count(l), ==, 3);
    CHECK_INT(atomic_load(&board_slot(&g->board, (uint32_t)rank)->stage), ==, STAGE_RUNNING);
    CHECK_INT(atomic_load(&board_slot(&g->board, (uint32_t)rank)->pid), ==, getpid());
    CHECK_INT(launch_step(l, 41), ==, LAUNCH_OK);
    CHECK(fcntl(g->board.fd, F_GETFD) & FD_CLOEXEC);
    CHECK(fcntl(g->bell, F_GETFD) & FD_CLOEXEC);
}

TEST(a_member_knows_its_place_and_hides_its_descriptors_from_children)
{
    struct group g;
    group_open(&g, 3, 0);
    for (uint32_t i = 0; i < 3; i++) {
        board_slot(&g.board, i)->local_rank = 2 - i;
        board_slot(&g.board, i)->device = 2 - (int32_t)i;
    }
    fcntl(g.board.fd, F_SETFD, 0);
    fcntl(g.bell, F_SETFD, 0);
    for (uint32_t i = 0; i < 3; i++)
        group_spawn(&g, i, check_place, &g);
    group_start(&g);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_INT(group_reap(&g, i), ==, 0);
        CHECK_INT(atomic_load(&board_slot(&g.board, i)->stage), ==, STAGE_LEFT);
        CHECK_INT(atomic_load(&board_slot(&g.board, i)->step), ==, 41);
    }
    group_close(&g);
}

TEST(the_bell_rings_for_joined_and_left_only)
{
    struct group g;
    uint64_t rings;
    group_open(&g, 1, 0);
    atomic_store(&g.board.head->running, 1);
    group_spawn(&g, 0, idle, NULL);
    CHECK_INT(group_reap(&g, 0), ==, 0);
    CHECK_INT(read(g.bell, &rings, sizeof rings), ==, sizeof rings);
    CHECK_INT(rings, ==, 2);
    group_close(&g);
}

TEST(a_bad_variable_is_named)
{
    static const struct {
        const char *name, *value, *text; /* value NULL: not set */
    } rows[] = {
        {ENV_BOARD_FD, "", "LAUNCH_BOARD_FD= is not a number"},
        {ENV_BOARD_FD, "x", "LAUNCH_BOARD_FD=x is not a number"},
        {ENV_BOARD_FD, "-1", "LAUNCH_BOARD_FD=-1"},
        {ENV_BOARD_FD, "+3", "LAUNCH_BOARD_FD=+3"},
        {ENV_BOARD_FD, " 3", "LAUNCH_BOARD_FD= 3"},
        {ENV_BOARD_FD, "3 ", "LAUNCH_BOARD_FD=3 "},
        {ENV_BOARD_FD, "18446744073709551619", "LAUNCH_BOARD_FD=18446744073709551619"},
        {ENV_BOARD_FD, "1000000", "LAUNCH_BOARD_FD=1000000 is not open"},
        {ENV_BOARD_FD, "0", "LAUNCH_BOARD_FD=0: board: "},
        {ENV_BELL_FD, NULL, "LAUNCH_BELL_FD is not set"},
        {ENV_BELL_FD, "0", "LAUNCH_BELL_FD=0 is no eventfd"},
        {ENV_BELL_FD, "1000000", "LAUNCH_BELL_FD=1000000 is no eventfd"},
        {ENV_SLOT, NULL, "LAUNCH_SLOT is not set"},
        {ENV_SLOT, "8192", "LAUNCH_SLOT=8192 is not a number from 0 to 8191"},
        {ENV_SLOT, "2", "LAUNCH_SLOT=2, but there are only 2 ranks"},
    };
    struct group g;
    struct launch *l;
    group_open(&g, 2, 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        group_environ(&g, 0);
        if (rows[i].value)
            setenv(rows[i].name, rows[i].value, 1);
        else
            unsetenv(rows[i].name);
        CHECK_INT(launch_join(&l, 0), ==, LAUNCH_FAILED);
        CHECK_HAS(launch_error(NULL), rows[i].text);
    }
    group_close(&g);
}

TEST(a_slot_that_makes_no_sense_is_refused)
{
    struct group g;
    struct launch *l;
    group_open(&g, 2, 0);
    struct board_slot *slot = board_slot(&g.board, 1);
    group_environ(&g, 1);
    slot->rank = 2;
    CHECK_INT(launch_join(&l, 0), ==, LAUNCH_FAILED);
    CHECK_HAS(launch_error(NULL), "slot 1 has rank 2");
    slot->rank = 1;
    slot->local_rank = 2;
    CHECK_INT(launch_join(&l, 0), ==, LAUNCH_FAILED);
    slot->local_rank = 1;
    slot->device = -2;
    CHECK_INT(launch_join(&l, 0), ==, LAUNCH_FAILED);
    slot->device = -1;
    for (unsigned kind = 0; kind < 1024; kind++) {
        if (kind == (unsigned)board_slot(&g.board, 0)->lock.__data.__kind)
            continue;
        slot->lock.__data.__kind = (int)kind;
        CHECK_INT(launch_join(&l, 0), ==, LAUNCH_FAILED);
        CHECK_HAS(launch_error(NULL), "the lock of rank 1 is damaged");
    }
    memset(&slot->lock, 0xff, sizeof slot->lock);
    CHECK_INT(launch_join(&l, 0), !=, LAUNCH_OK);
    g.board.head->world_size = 5000;
    CHECK_INT(launch_join(&l, 0), ==, LAUNCH_FAILED);
    group_close(&g);
}

static void exit_as_member(struct launch *l, void *user)
{
    (void)user;
    launch_catch_stop(l);
    exit(0);
}

TEST(the_library_and_the_launcher_are_of_one_release)
{
    CHECK_STR(LAUNCH_VERSION, LAUNCH_RELEASE);
}

TEST(a_member_that_calls_exit_has_left_and_one_that_is_killed_has_not)
{
    struct group g;
    group_open(&g, 1, 0);
    group_spawn(&g, 0, exit_as_member, NULL);
    group_start(&g);
    CHECK_INT(group_reap(&g, 0), ==, 0);
    const struct board_slot *slot = board_slot(&g.board, 0);
    CHECK_INT(atomic_load(&slot->stage), ==, STAGE_LEFT);
    CHECK_INT(atomic_load(&slot->join_flags), ==, BOARD_JOIN_CATCHES_STOP);
    group_close(&g);
}

TEST(a_rank_that_is_taken_is_refused_until_the_next_generation)
{
    struct group g;
    char text[96];
    group_open(&g, 2, 0);
    pid_t first = group_spawn(&g, 0, idle, NULL);
    group_await(&g, 0, STAGE_JOINED);
    snprintf(text, sizeof text, "rank 0 has already been joined by process %d", first);
    struct refusal taken = {LAUNCH_INVALID, text};
    group_fork(&g, 0, be_refused, &taken); /* the first one lives */
    CHECK_INT(group_reap(&g, 0), ==, 0);
    kill(first, SIGKILL);
    g.pid[0] = first;
    CHECK_INT(group_reap(&g, 0), ==, 128 + SIGKILL);
    group_fork(&g, 0, be_refused, &taken); /* it is dead; we are told by the lock ... */
    CHECK_INT(group_reap(&g, 0), ==, 0);
    group_fork(&g, 0, be_refused, &taken); /* ... and now by the slot */
    CHECK_INT(group_reap(&g, 0), ==, 0);
    group_next_generation(&g);
    group_spawn(&g, 0, idle, NULL);
    group_spawn(&g, 1, idle, NULL);
    group_start(&g);
    CHECK_INT(group_reap(&g, 0), ==, 0);
    struct refusal left = {LAUNCH_INVALID, "already been joined"};
    group_fork(&g, 0, be_refused, &left); /* it came and left */
    CHECK_INT(group_reap(&g, 0), ==, 0);
    CHECK_INT(group_reap(&g, 1), ==, 0);
    group_close(&g);
}

TEST(a_rank_that_never_joins_is_named_by_the_others)
{
    struct group g;
    char text[128];
    struct refusal late = {LAUNCH_TIMEOUT,
                           "rendezvous: rank 1 never called launch_join() within 1 ms"};
    group_open(&g, 3, 1);
    group_fork(&g, 0, be_refused, &late);
    group_fork(&g, 2, be_refused, &late);
    CHECK_INT(group_reap(&g, 0), ==, 0);
    CHECK_INT(group_reap(&g, 2), ==, 0);
    CHECK_INT(atomic_load(&board_slot(&g.board, 0)->stage), ==, STAGE_FAILED);
    CHECK(board_get_error(board_slot(&g.board, 0), text, sizeof text) > 0);
    CHECK_STR(text, late.text);
    group_close(&g);
}

TEST(the_list_of_missing_ranks_is_cut_after_eight)
{
    struct group g;
    char text[128];
    group_open(&g, 20, 0);
    struct launch l = {.board = g.board, .places = 20, .generation = 1};
    CHECK_INT(worker_missing(&l, text, sizeof text), ==, 20);
    CHECK_STR(text, "0, 1, 2, 3, 4, 5, 6, 7 and 12 more");
    for (uint32_t i = 0; i < 20; i++) {
        atomic_store(&board_slot(&g.board, i)->stage, STAGE_JOINED);
        atomic_store(&board_slot(&g.board, i)->generation, i == 13 ? 7 : 1); /* another life */
    }
    atomic_store(&board_slot(&g.board, 5)->stage, STAGE_NONE);
    CHECK_INT(worker_missing(&l, text, sizeof text), ==, 2);
    CHECK_STR(text, "5, 13");
    CHECK_INT(worker_missing(&l, text, 4), ==, 2);
    CHECK_STR(text, "5, ");
    group_close(&g);
}

TEST(a_stop_ends_the_rendezvous)
{
    struct group g;
    struct refusal stop = {LAUNCH_STOP, "asks the job to end"};
    group_open(&g, 2, 0);
    group_fork(&g, 0, be_refused, &stop);
    group_await(&g, 0, STAGE_JOINED);
    group_stop(&g);
    CHECK_INT(group_reap(&g, 0), ==, 0);
    group_close(&g);
}

static void be_in_generation_3(struct launch *l, void *user)
{
    (void)user;
    CHECK_INT(launch_generation(l), ==, 3);
}

TEST(a_generation_that_ends_during_the_rendezvous_is_left_for_the_next)
{
    struct group g;
    group_open(&g, 2, 0);
    group_spawn(&g, 0, be_in_generation_3, NULL);
    group_await(&g, 0, STAGE_JOINED);
    group_next_generation(&g);
    group_await(&g, 0, STAGE_JOINED);
    group_next_generation(&g);
    group_spawn(&g, 1, be_in_generation_3, NULL);
    group_start(&g);
    CHECK_INT(group_reap(&g, 0), ==, 0);
    CHECK_INT(group_reap(&g, 1), ==, 0);
    group_close(&g);
}

TEST(check_and_step_tell_of_a_new_generation_and_of_a_stop)
{
    struct group g;
    struct launch *l;
    group_open(&g, 1, 0);
    group_environ(&g, 0);
    atomic_store(&g.board.head->running, 1);
    CHECK_INT(launch_join(&l, 0), ==, LAUNCH_OK);
    CHECK_INT(launch_check(l), ==, LAUNCH_OK);
    group_next_generation(&g);
    CHECK_INT(launch_check(l), ==, LAUNCH_AGAIN);
    CHECK_INT(launch_step(l, 1), ==, LAUNCH_AGAIN);
    CHECK_INT(launch_barrier(l), ==, LAUNCH_AGAIN);
    CHECK_HAS(launch_error(l), "generation 1 is over");
    group_stop(&g);
    CHECK_INT(launch_step(l, 2), ==, LAUNCH_STOP);
    CHECK_INT(launch_barrier(l), ==, LAUNCH_STOP);
    launch_leave(l);
    group_close(&g);
}

/* A request to end comes while launch_main() is on its way out for a new generation. */
static int be_asked_to_end(struct launch *l, int argc, char **argv)
{
    struct board_head *h = launch_device_board(l)->head;
    const struct board_slot *slot = launch_device_slot(l);
    (void)argc, (void)argv;
    if (atomic_load(&h->stop)) {
        CHECK_INT(launch_meet(l), ==, LAUNCH_STOP);
        CHECK_INT(slot->obeyed, ==, SIGTERM);
        return LAUNCH_STOP;
    }
    CHECK_INT(launch_check(l), ==, LAUNCH_OK);
    atomic_fetch_add(&h->generation, 1);
    int r = launch_check(l);
    CHECK_INT(slot->obeyed, ==, 0);
    atomic_store(&h->stop, SIGTERM);
    return r;
}

TEST(a_job_that_is_asked_to_end_after_a_loss_is_called_again_so_that_it_can_save)
{
    CHECK_INT(launch_run_main(be_asked_to_end, 0, NULL), ==, 0);
}

static int closed_with = -1;

static void on_close(void *device, int peers_alive)
{
    CHECK(device == &closed_with);
    closed_with = peers_alive;
}

static const struct device_ops fake_ops = {.name = "fake", .close = on_close};

static void leave_with_device(bool new_generation, bool failed, int peers_alive)
{
    struct group g;
    struct launch *l;
    group_open(&g, 1, 0);
    group_environ(&g, 0);
    atomic_store(&g.board.head->running, 1);
    CHECK_INT(launch_join(&l, 0), ==, LAUNCH_OK);
    CHECK(launch_device_object(l) == NULL);
    launch_device_attach(l, &fake_ops, &closed_with);
    CHECK(launch_device_object(l) == &closed_with);
    CHECK(launch_device_board(l)->head != NULL);
    if (new_generation)
        group_next_generation(&g);
    if (failed)
        launch_device_set_stage(l, STAGE_FAILED);
    launch_leave(l);
    CHECK_INT(closed_with, ==, peers_alive);
    CHECK_INT(atomic_load(&board_slot(&g.board, 0)->stage), ==, failed ? STAGE_FAILED : STAGE_LEFT);
    group_close(&g);
}

TEST(leaving_closes_the_device_of_a_whole_group)
{
    leave_with_device(false, false, 1);
}

TEST(leaving_after_a_death_tells_the_device_so)
{
    leave_with_device(true, false, 0);
}

TEST(leaving_after_a_failure_tells_the_device_so_and_keeps_the_stage)
{
    leave_with_device(false, true, 0);
}

TEST(leaving_follows_no_pointer_that_a_peer_wrote_into_the_lock)
{
    struct group g;
    struct launch *l;
    group_open(&g, 1, 0);
    group_environ(&g, 0);
    atomic_store(&g.board.head->running, 1);
    CHECK_INT(launch_join(&l, 0), ==, LAUNCH_OK);
    pthread_mutex_t *lock = &board_slot(&g.board, 0)->lock;
    memset(&lock->__data.__list, 0x41, sizeof lock->__data.__list);
    launch_leave(l);
    CHECK_INT(atomic_load(&board_slot(&g.board, 0)->stage), ==, STAGE_LEFT);
}

TEST(a_failure_is_kept_in_the_slot_but_the_end_of_the_group_is_not)
{
    struct group g;
    struct launch *l;
    char text[64];
    group_open(&g, 1, 0);
    group_environ(&g, 0);
    atomic_store(&g.board.head->running, 1);
    CHECK_INT(launch_join(&l, 0), ==, LAUNCH_OK);
    CHECK_INT(launch_fail(l, LAUNCH_FAILED, "no %s", "luck"), ==, LAUNCH_FAILED);
    CHECK_INT(launch_fail(l, LAUNCH_AGAIN, "over: %s", launch_error(l)), ==, LAUNCH_AGAIN);
    CHECK_STR(launch_error(l), "over: no luck");
    CHECK(board_get_error(launch_device_slot(l), text, sizeof text) > 0);
    CHECK_STR(text, "no luck");
    launch_leave(l);
    group_close(&g);
}

static void leave_in_child(struct launch *l, void *user)
{
    struct group *g = user;
    pid_t child = fork();
    if (child == 0) {
        launch_leave(l);
        _exit(0);
    }
    CHECK_INT(waitpid(child, NULL, 0), ==, child);
    CHECK_INT(atomic_load(&board_slot(&g->board, 0)->stage), ==, STAGE_RUNNING);
    CHECK_INT(pthread_mutex_trylock(&launch_device_slot(l)->lock), ==, EBUSY);
}

TEST(a_forked_child_that_leaves_changes_nothing)
{
    struct group g;
    group_open(&g, 1, 0);
    group_spawn(&g, 0, leave_in_child, &g);
    group_start(&g);
    CHECK_INT(group_reap(&g, 0), ==, 0);
    group_close(&g);
}

/* Each byte in turn, but for the word that the kernel knows. */
static void leave_with_a_spoilt_lock(struct launch *l, void *user)
{
    const size_t *at = user;
    ((unsigned char *)&launch_device_slot(l)->lock)[*at] ^= 0x5a;
}

TEST(a_member_whose_lock_was_spoilt_leaves_all_the_same)
{
    for (size_t at = sizeof(uint32_t); at < sizeof(pthread_mutex_t); at++) {
        struct group g;
        group_open(&g, 1, 0);
        group_spawn(&g, 0, leave_with_a_spoilt_lock, &at);
        group_start(&g);
        CHECK_INT(group_reap(&g, 0), ==, 0);
        CHECK_INT(atomic_load(&board_slot(&g.board, 0)->stage), ==, STAGE_LEFT);
        group_close(&g);
    }
}
