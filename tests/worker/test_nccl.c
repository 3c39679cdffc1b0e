/* SPDX-License-Identifier: MIT */
/* worker/nccl.c in several processes. */
#include "crew.h"

static void check_ranks_meet_through_the_board_and_sum(uint32_t flags)
{
    for (unsigned n = 1; n <= RANKS_MAX; n++) {
        struct crew c;
        crew_run(&c, n, n, flags, "sum");
        check_all_end(&c, LAUNCH_OK);
        for (unsigned i = 0; i < n; i++)
            CHECK(atomic_load(&board_slot(&c.board, i)->id_seen_ns) >=
                  c.board.head->id_published_ns);
        CHECK_INT(c.board.head->id_nranks, ==, n);
        board_close(&c.board);
    }
}

TEST(nccl_ranks_meet_through_the_board_and_sum)
{
    check_ranks_meet_through_the_board_and_sum(0);
    check_ranks_meet_through_the_board_and_sum(BLOCKS);
}

static void check_every_operation_of_the_fake_computes(uint32_t flags)
{
    struct crew c;
    crew_run(&c, 3, 3, flags, "every-operation");
    check_all_end(&c, LAUNCH_OK);
    board_close(&c.board);
}

TEST(nccl_every_operation_of_the_fake_computes)
{
    check_every_operation_of_the_fake_computes(0);
    check_every_operation_of_the_fake_computes(BLOCKS);
}

static void check_a_generation_has_one_communicator(uint32_t flags)
{
    struct crew c;
    crew_run(&c, 2, 2, flags, "same-twice");
    check_all_end(&c, LAUNCH_OK);
    board_close(&c.board);
}

TEST(nccl_a_generation_has_one_communicator)
{
    check_a_generation_has_one_communicator(0);
    check_a_generation_has_one_communicator(BLOCKS);
}

TEST(nccl_a_job_without_gpus_is_told_so)
{
    struct crew c;
    crew_run(&c, 2, 0, 0, "sum");
    check_all_end(&c, -LAUNCH_INVALID);
    check_error(&c, 0, "no GPU");
}

TEST(nccl_more_workers_than_gpus_are_told_of_share_gpus)
{
    struct crew c;
    crew_run(&c, 3, 2, 0, "sum");
    check_all_end(&c, -LAUNCH_INVALID);
    check_error(&c, 1, "3 workers for 2 GPUs");
    check_error(&c, 1, "--share-gpus");
}

static void check_duplicate_gpu_of_nccl_is_told_of_share_gpus(uint32_t flags)
{
    struct crew c;
    setenv("CUDA_VISIBLE_DEVICES", "5,5", 1);
    crew_run(&c, 2, 2, flags, "sum");
    check_all_end(&c, -LAUNCH_INVALID);
    check_error(&c, 0, "--share-gpus");
    check_error(&c, 0, "Duplicate GPU detected : rank 0 and rank 1");
    board_close(&c.board);
}

TEST(nccl_duplicate_gpu_of_nccl_is_told_of_share_gpus)
{
    check_duplicate_gpu_of_nccl_is_told_of_share_gpus(0);
    check_duplicate_gpu_of_nccl_is_told_of_share_gpus(BLOCKS);
}

static void check_ranks_share_a_gpu_as_if_on_different_hosts(uint32_t flags)
{
    struct crew c;
    setenv("TEST_HOSTID", "launch-test", 1);
    crew_run(&c, 4, 1, BOARD_FLAG_SHARE_GPUS | flags, "sum");
    check_all_end(&c, LAUNCH_OK);
    board_close(&c.board);
}

TEST(nccl_ranks_share_a_gpu_as_if_on_different_hosts)
{
    check_ranks_share_a_gpu_as_if_on_different_hosts(0);
    check_ranks_share_a_gpu_as_if_on_different_hosts(BLOCKS);
}

TEST(nccl_ranks_share_a_gpu_by_the_switch_of_a_newer_nccl)
{
    struct crew c;
    setenv("TEST_HOSTID", "launch-test", 1);
    setenv("FAKE_NCCL_VERSION", "23003", 1);
    crew_run(&c, 4, 1, BOARD_FLAG_SHARE_GPUS, "sum");
    check_all_end(&c, LAUNCH_OK);
}

TEST(nccl_sharing_that_nccl_refuses_is_not_told_of_share_gpus_again)
{
    struct crew c;
    setenv("NCCL_HOSTID", "one-for-all", 1);
    crew_run(&c, 2, 1, BOARD_FLAG_SHARE_GPUS, "sum");
    check_all_end(&c, -LAUNCH_INVALID);
    check_error(&c, 0, "in spite of --share-gpus");
}

static void check_a_rank_that_never_asks_is_named_at_the_deadline(uint32_t flags)
{
    struct crew c;
    crew_start(&c, 3, 3, flags, "only-rank-0");
    while (!all_joined(&c))
        await_bell(&c);
    c.board.head->rendezvous_timeout_ms = SHORT_MS;
    crew_open_gate(&c);
    CHECK_INT(crew_end(&c, 0), ==, -LAUNCH_TIMEOUT);
    check_error(&c, 0, "rank 1, 2 did not ask");
    stop(&c);
    CHECK_INT(crew_end(&c, 1), ==, -LAUNCH_STOP);
    CHECK_INT(crew_end(&c, 2), ==, -LAUNCH_STOP);
    board_close(&c.board);
}

TEST(nccl_a_rank_that_never_asks_is_named_at_the_deadline)
{
    check_a_rank_that_never_asks_is_named_at_the_deadline(0);
    check_a_rank_that_never_asks_is_named_at_the_deadline(BLOCKS);
    setenv("NCCL_COMM_BLOCKING", "1", 1);
    check_a_rank_that_never_asks_is_named_at_the_deadline(0);
}

static void check_ranks_that_hang_in_init_are_given_up_at_the_deadline(uint32_t flags)
{
    struct crew c;
    setenv("FAKE_NCCL_INIT_HANG", "1", 1);
    crew_start(&c, 2, 2, flags, "sum");
    while (!all_joined(&c))
        await_bell(&c);
    c.board.head->rendezvous_timeout_ms = SHORT_MS * 10;
    crew_open_gate(&c);
    check_all_end(&c, -LAUNCH_TIMEOUT);
    check_error(&c, 0, "all ranks are in ncclCommInitRank");
    board_close(&c.board);
}

TEST(nccl_ranks_that_hang_in_init_are_given_up_at_the_deadline)
{
    check_ranks_that_hang_in_init_are_given_up_at_the_deadline(0);
    check_ranks_that_hang_in_init_are_given_up_at_the_deadline(BLOCKS);
}

TEST(nccl_a_failed_init_reports_the_words_of_nccl)
{
    struct crew c;
    setenv("FAKE_NCCL_INIT_ERROR", "1", 1);
    crew_run(&c, 2, 2, 0, "sum");
    CHECK_INT(crew_end(&c, 1), ==, -LAUNCH_FAILED);
    check_error(&c, 1,
                "ncclCommInitRankConfig: unhandled system error: fake: FAKE_NCCL_INIT_ERROR");
    next_generation(&c);
    CHECK_INT(crew_end(&c, 0), ==, -LAUNCH_AGAIN);
}

static void check_a_cuda_call_that_fails_is_named(uint32_t flags)
{
    static const char *const CALLS[] = {"cudaSetDevice", "cudaStreamCreateWithFlags",
                                        "cudaStreamIsCapturing", "cudaStreamQuery"};
    for (size_t i = 0; i < sizeof(CALLS) / sizeof(CALLS[0]); i++) {
        struct crew c;
        setenv("FAKE_CUDA_FAIL", CALLS[i], 1);
        crew_run(&c, 1, 1, flags, "sum");
        CHECK_INT(crew_end(&c, 0), ==, -LAUNCH_FAILED);
        check_error(&c, 0, CALLS[i]);
        check_error(&c, 0, "unknown error");
        board_close(&c.board);
    }
}

TEST(nccl_a_cuda_call_that_fails_is_named)
{
    check_a_cuda_call_that_fails_is_named(0);
    check_a_cuda_call_that_fails_is_named(BLOCKS);
}

TEST(nccl_a_device_that_does_not_exist_is_an_error)
{
    struct crew c;
    setenv("FAKE_GPUS", "1", 1);
    crew_run(&c, 2, 2, 0, "sum");
    CHECK_INT(crew_end(&c, 1), ==, -LAUNCH_FAILED);
    check_error(&c, 1, "invalid device ordinal");
    next_generation(&c);
    CHECK_INT(crew_end(&c, 0), ==, -LAUNCH_AGAIN);
}

TEST(nccl_an_asynchronous_error_ends_the_wait)
{
    struct crew c;
    setenv("FAKE_NCCL_ASYNC_ERROR", "0@1", 1);
    crew_run(&c, 2, 2, 0, "sum");
    CHECK_INT(crew_end(&c, 0), ==, -LAUNCH_FAILED);
    check_error(&c, 0, "FAKE_NCCL_ASYNC_ERROR of rank 0");
    next_generation(&c);
    CHECK_INT(crew_end(&c, 1), ==, -LAUNCH_AGAIN);
}

TEST(nccl_an_asynchronous_error_of_later_work_ends_the_wait)
{
    struct crew c;
    setenv("FAKE_NCCL_ASYNC_ERROR", "0@2", 1);
    crew_run(&c, 2, 2, 0, "two-sums");
    CHECK_INT(crew_end(&c, 0), ==, -LAUNCH_FAILED);
    check_error(&c, 0, "FAKE_NCCL_ASYNC_ERROR of rank 0");
    next_generation(&c);
    CHECK_INT(crew_end(&c, 1), ==, -LAUNCH_AGAIN);
}

static void check_no_second_communicator_in_a_generation_whose_first_failed(uint32_t flags)
{
    struct crew c;
    setenv("FAKE_NCCL_ASYNC_ERROR", "0@1", 1);
    crew_run(&c, 1, 1, flags, "again-after-failure");
    CHECK_INT(crew_end(&c, 0), ==, -LAUNCH_FAILED);
    board_close(&c.board);
}

TEST(nccl_no_second_communicator_in_a_generation_whose_first_failed)
{
    check_no_second_communicator_in_a_generation_whose_first_failed(0);
    check_no_second_communicator_in_a_generation_whose_first_failed(BLOCKS);
}

TEST(nccl_a_wait_without_a_communicator_is_refused)
{
    struct crew c;
    crew_run(&c, 1, 1, 0, "wait-first");
    CHECK_INT(crew_end(&c, 0), ==, -LAUNCH_INVALID);
    check_error(&c, 0, "launch_nccl_comm");
}

static void check_a_rank_that_waits_for_others_is_freed_by_a_stop(uint32_t flags)
{
    struct crew c;
    crew_run(&c, 3, 3, flags, "others-stay");
    await_entered(&c);
    stop(&c);
    check_all_end(&c, -LAUNCH_STOP);
    board_close(&c.board);
}

TEST(nccl_a_rank_that_waits_for_others_is_freed_by_a_stop)
{
    check_a_rank_that_waits_for_others_is_freed_by_a_stop(0);
    check_a_rank_that_waits_for_others_is_freed_by_a_stop(BLOCKS);
}

TEST(nccl_a_rank_that_waits_for_the_dead_is_freed_by_a_new_generation)
{
    struct crew c;
    crew_run(&c, 3, 3, 0, "others-die");
    await_entered(&c);
    CHECK_INT(crew_end(&c, 1), ==, KILLED);
    CHECK_INT(crew_end(&c, 2), ==, KILLED);
    next_generation(&c);
    CHECK_INT(crew_end(&c, 0), ==, -LAUNCH_AGAIN);
}

TEST(nccl_a_rank_asleep_in_cuda_is_freed_and_what_it_has_is_not_taken_for_a_sum)
{
    struct crew c;
    crew_run(&c, 3, 3, 0, "sleeps");
    await_entered(&c);
    next_generation(&c);
    check_all_end(&c, -LAUNCH_AGAIN);
}

static void check_whoever_enters_leaves_once(uint32_t flags)
{
    struct crew c;
    crew_run(&c, 2, 2, flags, "enters-twice");
    check_all_end(&c, LAUNCH_OK);
    board_close(&c.board);
}

TEST(nccl_whoever_enters_leaves_once)
{
    check_whoever_enters_leaves_once(0);
    check_whoever_enters_leaves_once(BLOCKS);
}

TEST(nccl_whoever_never_leaves_is_told_and_ends_all_the_same)
{
    static const char *const versions[] = {"22809",
                                           "22603"}; /* with ncclCommRevoke(), and without */
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        struct crew c;
        setenv("FAKE_NCCL_VERSION", versions[i], 1);
        crew_run(&c, 2, 2, 0, "never-leaves");
        check_all_end(&c, LAUNCH_OK);
        crew_run(&c, 2, 2, 0, "fails-inside");
        check_all_end(&c, LAUNCH_OK);
    }
}

TEST(nccl_a_wait_for_a_stream_that_is_captured_is_refused)
{
    struct crew c;
    setenv("FAKE_CUDA_CAPTURE", "1", 1);
    crew_run(&c, 1, 1, 0, "sum");
    CHECK_INT(crew_end(&c, 0), ==, -LAUNCH_INVALID);
    check_error(&c, 0, "end the capture first");
}

TEST(nccl_a_stream_that_never_finishes_is_left_by_a_new_generation)
{
    struct crew c;
    setenv("FAKE_CUDA_HANG", "1", 1);
    crew_run(&c, 1, 1, 0,
             "others-never-connect"); /* no others: connected at once, then on the stream */
    await_entered(&c);
    next_generation(&c);
    check_all_end(&c, -LAUNCH_AGAIN);
}

TEST(nccl_ranks_that_never_connect_are_left_by_a_new_generation)
{
    struct crew c;
    crew_run(&c, 2, 2, 0, "others-never-connect");
    await_entered(&c);
    next_generation(&c);
    check_all_end(&c, -LAUNCH_AGAIN);
}

TEST(nccl_a_wait_also_waits_for_calls_that_are_not_on_the_stream_yet)
{
    struct crew c;
    crew_run(&c, 3, 3, 0, "wait-only");
    check_all_end(&c, LAUNCH_OK);
}

TEST(nccl_a_call_that_nccl_refuses_is_an_error_with_its_words)
{
    struct crew c;
    crew_run(&c, 1, 1, 0, "wrong-call");
    check_all_end(&c, -LAUNCH_FAILED);
    check_error(&c, 0, "invalid argument: fake: no such stream, type, root or peer");
}

/* Rank 0 is killed before the gate opens, and the test writes in its place. */
static void rank_1_alone(struct crew *c, uint32_t id_generation, uint32_t id_nranks)
{
    crew_start(c, 2, 2, 0, "sum");
    kill(c->pid[0], SIGKILL);
    CHECK_INT(crew_end(c, 0), ==, KILLED);
    while (atomic_load(&board_slot(&c->board, 1)->stage) < STAGE_JOINED)
        await_bell(c);
    c->board.head->rendezvous_timeout_ms = SHORT_MS;
    c->board.head->id_nranks = id_nranks;
    atomic_store(&c->board.head->id_generation, id_generation);
    open_gate(c, 1u << 1);
}

TEST(nccl_an_error_in_a_generation_that_is_over_is_none)
{
    struct crew c;
    crew_run(&c, 1, 1, 0, "fails-late");
    await_entered(&c);
    next_generation(&c);
    CHECK_INT(crew_end(&c, 0), ==, -LAUNCH_AGAIN);
}

TEST(nccl_an_error_before_the_agent_tells_of_a_death_is_none)
{
    for (int remote = 0; remote < 2; remote++) {
        struct crew c;
        if (remote)
            setenv("FAKE_NCCL_REMOTE", "1", 1);
        crew_run(&c, 1, 1, 0, "fails-early");
        await_entered(&c);
        next_generation(&c);
        CHECK_INT(crew_end(&c, 0), ==, -LAUNCH_AGAIN);
    }
}

TEST(nccl_an_error_while_the_job_ends_is_none)
{
    struct crew c;
    crew_run(&c, 1, 1, 0, "fails-early");
    await_entered(&c);
    stop(&c);
    CHECK_INT(crew_end(&c, 0), ==, -LAUNCH_STOP);
}

TEST(nccl_an_error_that_no_death_explains_is_told)
{
    struct crew c;
    setenv("FAKE_NCCL_INIT_ERROR", "0", 1);
    setenv("FAKE_NCCL_REMOTE", "1", 1);
    crew_start(&c, 1, 1, 0, "sum");
    while (!all_joined(&c))
        await_bell(&c);
    c.board.head->rendezvous_timeout_ms = SHORT_MS;
    crew_open_gate(&c);
    CHECK_INT(crew_end(&c, 0), ==, -LAUNCH_FAILED);
    check_error(&c, 0, "remote process exited: fake: FAKE_NCCL_INIT_ERROR of rank 0");
}

/* No deadline passes: the clock of whoever leaves stands. */
static void check_who_leaves_is_freed_by(void (*news)(struct crew *c))
{
    struct crew c;
    crew_run(&c, 2, 2, 0, "leaves-alone");
    await_entered(&c);
    news(&c);
    CHECK_INT(crew_end(&c, 0), ==, LAUNCH_OK);
    CHECK_INT(atomic_load(&board_slot(&c.board, 0)->stage), ==, STAGE_LEFT);
    kill(c.pid[1], SIGKILL);
    CHECK_INT(crew_end(&c, 1), ==, KILLED);
    board_close(&c.board);
}

TEST(nccl_who_leaves_does_not_wait_for_ranks_that_were_lost_or_are_ended)
{
    check_who_leaves_is_freed_by(next_generation);
    check_who_leaves_is_freed_by(stop);
}

TEST(nccl_an_id_for_another_number_of_ranks_is_refused)
{
    struct crew c;
    rank_1_alone(&c, 1, 7);
    CHECK_INT(crew_end(&c, 1), ==, -LAUNCH_INVALID);
    check_error(&c, 1, "for 7 ranks");
}

TEST(nccl_an_id_of_another_generation_is_not_used)
{
    struct crew c;
    rank_1_alone(&c, 9, 2);
    CHECK_INT(crew_end(&c, 1), ==, -LAUNCH_TIMEOUT);
    check_error(&c, 1, "rank 0 did not ask");
}
