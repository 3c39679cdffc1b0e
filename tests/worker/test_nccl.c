/* SPDX-License-Identifier: MIT */
/* worker/nccl.c in several processes, on the fake CUDA and NCCL libraries of tests/fake. The
 * test is the agent: it makes the board, opens the gate and begins generations; the workers
 * are tests/fake/nccl_job.c. */
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
static const char *fake_dir(void)
{
    static char dir[4096];
    ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 16);
    CHECK(n > 0);
    dir[n] = '\0';
    strcpy(strrchr(dir, '/') + 1, "fake");
    return dir;
}

static void set_number(const char *name, long number)
{
    char text[24];
    snprintf(text, sizeof(text), "%ld", number);
    setenv(name, text, 1);
}

/* In the child: the agent's environment, then the job. */
static void become_worker(const struct crew *c, unsigned rank, const char *job)
{
    char path[4200];
    int board = fcntl(c->board.fd, F_DUPFD, 3), bell = fcntl(c->bell, F_DUPFD, 3);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    set_number(ENV_BOARD_FD, board);
    set_number(ENV_BELL_FD, bell);
    set_number(ENV_SLOT, rank);
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

/* n workers for `gpus` GPUs, worker i on GPU i % gpus; none of them has joined yet. */
static void crew_start(struct crew *c, unsigned n, unsigned gpus, uint32_t flags, const char *job)
{
    struct err err;

    *c = (struct crew){.n = n, .bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    CHECK(c->bell >= 0);
    CHECK_INT(board_create(&c->board,
                           &(struct board_config){.world_size = n,
                                                  .generation = 1,
                                                  .rendezvous_timeout_ms = PATIENCE_MS,
                                                  .gpu_count = gpus,
                                                  .flags = flags,
                                                  .run_id = "test"},
                           &err),
              ==, 0);
    for (unsigned i = 0; i < n; i++)
        board_slot(&c->board, i)->device = gpus ? (int32_t)(i % gpus) : -1;
    for (unsigned i = 0; i < n; i++) {
        c->pid[i] = fork();
        CHECK(c->pid[i] >= 0);
        if (c->pid[i] == 0)
            become_worker(c, i, job);
        c->pidfd[i] = (int)syscall(SYS_pidfd_open, c->pid[i], 0);
        CHECK(c->pidfd[i] >= 0);
    }
}

static void await_bell(const struct crew *c)
{
    uint64_t rings;
    struct pollfd p = {.fd = c->bell, .events = POLLIN};

    CHECK_INT(poll(&p, 1, PATIENCE_MS), ==, 1);
    CHECK_INT(read(c->bell, &rings, sizeof(rings)), ==, sizeof(rings));
}

static bool all_joined(const struct crew *c)
{
    for (unsigned i = 0; i < c->n; i++)
        if (atomic_load(&board_slot(&c->board, i)->stage) < STAGE_JOINED)
            return false;
    return true;
}

/* Returns when `ranks` of them, a bit each, are through: a new generation is news to them from
 * then on. */
static void open_gate(struct crew *c, unsigned ranks)
{
    atomic_store(&c->board.head->running, 1);
    board_wake(&c->board.head->running);
    for (unsigned i = 0; i < c->n; i++)
        while ((ranks & 1u << i) && !atomic_load(&board_slot(&c->board, i)->heartbeat))
            await_bell(c);
}

static void crew_open_gate(struct crew *c)
{
    while (!all_joined(c))
        await_bell(c);
    open_gate(c, (1u << c->n) - 1);
}

static void crew_run(struct crew *c, unsigned n, unsigned gpus, uint32_t flags, const char *job)
{
    crew_start(c, n, gpus, flags, job);
    crew_open_gate(c);
}

/* Exit code of a rank, 128 + n for a signal. */
static int crew_end(struct crew *c, unsigned rank)
{
    int status;

    CHECK_INT(waitpid(c->pid[rank], &status, 0), ==, c->pid[rank]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void check_all_end(struct crew *c, int code)
{
    for (unsigned i = 0; i < c->n; i++)
        CHECK_INT(crew_end(c, i), ==, code);
}

static void check_error(const struct crew *c, unsigned rank, const char *part)
{
    char text[BOARD_ERROR_BYTES + 1] = "";

    board_get_error(board_slot(&c->board, rank), text, sizeof(text));
    CHECK_HAS(text, part);
}

static void await_entered(const struct crew *c)
{
    while (!atomic_load(&board_slot(&c->board, 0)->step))
        await_bell(c);
}

static void next_generation(struct crew *c)
{
    atomic_store(&c->board.head->generation, 2);
    board_bump_epoch(&c->board);
}

static void stop(struct crew *c)
{
    atomic_store(&c->board.head->stop, SIGTERM);
    board_bump_epoch(&c->board);
}

TEST(nccl_ranks_meet_through_the_board_and_sum)
{
    for (unsigned n = 1; n <= RANKS_MAX; n++) {
        struct crew c;
        crew_run(&c, n, n, 0, "sum");
        check_all_end(&c, LAUNCH_OK);
        for (unsigned i = 0; i < n; i++)
            CHECK(atomic_load(&board_slot(&c.board, i)->id_seen_ns) >=
                  c.board.head->id_published_ns);
        CHECK_INT(c.board.head->id_nranks, ==, n);
        board_close(&c.board);
    }
}

TEST(nccl_every_operation_of_the_fake_computes)
{
    struct crew c;
    crew_run(&c, 3, 3, 0, "every-operation");
    check_all_end(&c, LAUNCH_OK);
}

TEST(nccl_a_generation_has_one_communicator)
{
    struct crew c;
    crew_run(&c, 2, 2, 0, "same-twice");
    check_all_end(&c, LAUNCH_OK);
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

TEST(nccl_duplicate_gpu_of_nccl_is_told_of_share_gpus)
{
    struct crew c;
    setenv("CUDA_VISIBLE_DEVICES", "5,5", 1);
    crew_run(&c, 2, 2, 0, "sum");
    check_all_end(&c, -LAUNCH_INVALID);
    check_error(&c, 0, "--share-gpus");
    check_error(&c, 0, "Duplicate GPU detected : rank 0 and rank 1");
}

TEST(nccl_ranks_share_a_gpu_as_if_on_different_hosts)
{
    struct crew c;
    setenv("TEST_HOSTID", "launch-test", 1);
    crew_run(&c, 4, 1, BOARD_FLAG_SHARE_GPUS, "sum");
    check_all_end(&c, LAUNCH_OK);
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

TEST(nccl_a_rank_that_never_asks_is_named_at_the_deadline)
{
    struct crew c;
    crew_start(&c, 3, 3, 0, "only-rank-0");
    while (!all_joined(&c))
        await_bell(&c);
    c.board.head->rendezvous_timeout_ms = SHORT_MS;
    crew_open_gate(&c);
    CHECK_INT(crew_end(&c, 0), ==, -LAUNCH_TIMEOUT);
    check_error(&c, 0, "rank 1, 2 did not ask");
    stop(&c);
    CHECK_INT(crew_end(&c, 1), ==, -LAUNCH_STOP);
    CHECK_INT(crew_end(&c, 2), ==, -LAUNCH_STOP);
}

TEST(nccl_ranks_that_hang_in_init_are_given_up_at_the_deadline)
{
    struct crew c;
    setenv("FAKE_NCCL_INIT_HANG", "1", 1);
    crew_start(&c, 2, 2, 0, "sum");
    while (!all_joined(&c))
        await_bell(&c);
    c.board.head->rendezvous_timeout_ms = SHORT_MS * 10;
    crew_open_gate(&c);
    check_all_end(&c, -LAUNCH_TIMEOUT);
    check_error(&c, 0, "all ranks are in ncclCommInitRank");
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

TEST(nccl_a_cuda_call_that_fails_is_named)
{
    static const char *const CALLS[] = {"cudaSetDevice", "cudaStreamCreateWithFlags",
                                        "cudaStreamQuery"};
    for (size_t i = 0; i < sizeof(CALLS) / sizeof(CALLS[0]); i++) {
        struct crew c;
        setenv("FAKE_CUDA_FAIL", CALLS[i], 1);
        crew_run(&c, 1, 1, 0, "sum");
        CHECK_INT(crew_end(&c, 0), ==, -LAUNCH_FAILED);
        check_error(&c, 0, CALLS[i]);
        check_error(&c, 0, "unknown error");
        board_close(&c.board);
    }
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

TEST(nccl_no_second_communicator_in_a_generation_whose_first_failed)
{
    struct crew c;
    setenv("FAKE_NCCL_ASYNC_ERROR", "0@1", 1);
    crew_run(&c, 1, 1, 0, "again-after-failure");
    CHECK_INT(crew_end(&c, 0), ==, -LAUNCH_FAILED);
}

TEST(nccl_a_wait_without_a_communicator_is_refused)
{
    struct crew c;
    crew_run(&c, 1, 1, 0, "wait-first");
    CHECK_INT(crew_end(&c, 0), ==, -LAUNCH_INVALID);
    check_error(&c, 0, "launch_nccl_comm");
}

TEST(nccl_a_rank_that_waits_for_others_is_freed_by_a_stop)
{
    struct crew c;
    crew_run(&c, 3, 3, 0, "others-stay");
    await_entered(&c);
    stop(&c);
    check_all_end(&c, -LAUNCH_STOP);
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

TEST(nccl_whoever_enters_leaves_once)
{
    struct crew c;
    crew_run(&c, 2, 2, 0, "enters-twice");
    check_all_end(&c, LAUNCH_OK);
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
