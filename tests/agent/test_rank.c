/* SPDX-License-Identifier: MIT */
/* agent/rank.c: a worker from start to reaping, on a real loop with real processes. */
#include "../../agent/rank.h"
#include "procs.h"

#include <signal.h>

static uv_loop_t loop;
static struct spawn_group *group;
static struct rank rank;
static unsigned exits;
static struct err err;

static void on_exit_(void *user, struct rank *r)
{
    CHECK(user == &exits && r == &rank);
    CHECK(r->ended && !rank_alive(r));
    CHECK_INT(r->pidfd, ==, -1);
    CHECK(r->ended_ns >= r->started_ns);
    exits++;
}

static void start(struct spawn_request *request)
{
    uv_loop_init(&loop);
    CHECK_INT(spawn_group_create(&group, 4, &err), ==, 0);
    rank_init(&rank, 3, on_exit_, &exits);
    CHECK(!rank_alive(&rank));
    CHECK_INT(rank_start(&rank, &loop, group, request, &err), ==, 0);
    CHECK(rank_alive(&rank));
    CHECK_INT(rank.last_pid, ==, rank.pid);
    spawn_open_gate(group);
}

static void await_end(void)
{
    uv_run(&loop, UV_RUN_DEFAULT); /* ends by itself: nothing of the rank keeps it alive */
    CHECK_INT(exits, ==, 1);
    CHECK_INT(uv_loop_close(&loop), ==, 0);
    spawn_group_destroy(group);
}

static void finish(enum reason reason, int exit_code, const char *description)
{
    char text[128];
    await_end();
    CHECK_INT(rank.reason, ==, reason);
    CHECK_INT(rank_exit_code(&rank), ==, exit_code);
    rank_describe_end(&rank, text, sizeof text);
    CHECK_STR(text, description);
}

TEST(a_worker_that_ends_with_0_has_not_failed)
{
    start(shell("exit 0"));
    finish(REASON_NONE, 0, "exited with code 0");
}

TEST(a_worker_that_ends_with_another_code_has)
{
    start(shell("exit 77"));
    finish(REASON_EXIT, 77, "exited with code 77");
}

TEST(a_worker_killed_by_somebody_else_died_of_the_signal)
{
    start(shell("ulimit -c 0; kill -SEGV $$"));
    finish(REASON_SIGNAL, 128 + SIGSEGV, "was killed by SIGSEGV (invalid memory access)");
}

TEST(a_worker_that_can_not_be_executed_has_the_code_of_that)
{
    struct spawn_request *request = shell("");
    request->file = "/no/such/program";
    start(request);
    finish(REASON_SPAWN, 127, "could not be started: exec: No such file or directory");
}

TEST(streams_that_can_not_be_connected_are_told_as_such)
{
    struct spawn_request *request = shell("");
    request->stdio[1] = 999;
    start(request);
    finish(REASON_SPAWN, 126, "could not be started: standard streams: Bad file descriptor");
}

TEST(a_worker_that_we_ended_is_no_failure_of_its_own)
{
    static const int signals[] = {SIGTERM, SIGKILL, SIGINT, SIGQUIT, SIGHUP};
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        exits = 0;
        start(shell("ulimit -c 0; exec sleep 300"));
        rank_signal(&rank, signals[i]);
        await_end();
        CHECK_INT(rank.reason, ==, REASON_STOPPED);
        CHECK_INT(rank_exit_code(&rank), ==, 128 + signals[i]);
    }
}

/* A worker that traps a signal and has told that it does. */
static void start_trapping(const char *trap)
{
    int ends[2];
    char script[128];
    CHECK_INT(pipe2(ends, O_CLOEXEC), ==, 0);
    snprintf(script, sizeof script, "trap %s; echo; while :; do sleep 0.01; done", trap);
    struct spawn_request *request = shell(script);
    request->stdio[1] = ends[1];
    start(request);
    CHECK_INT(await_byte(ends[0]), ==, 1);
    close(ends[0]);
    close(ends[1]);
}

TEST(a_code_given_after_our_signal_is_no_failure)
{
    start_trapping("'exit 4' TERM");
    rank_signal(&rank, SIGTERM);
    finish(REASON_STOPPED, 4, "exited with code 4");
}

TEST(an_end_with_0_after_our_signal_is_an_end_with_0)
{
    start_trapping("'exit 0' TERM");
    rank_signal(&rank, SIGTERM);
    finish(REASON_NONE, 0, "exited with code 0");
}

TEST(a_signal_that_asks_for_no_end_does_not_excuse_one)
{
    start_trapping("'exit 9' USR1");
    rank_signal(&rank, SIGUSR1);
    finish(REASON_EXIT, 9, "exited with code 9");
}

TEST(signals_to_a_worker_that_has_gone_go_nowhere)
{
    start(shell("exit 0"));
    await_end();
    rank_signal(&rank, SIGKILL);
    CHECK(!rank.stopped_by_us);
    rank_forget(&rank);
    CHECK(!rank.ended && rank.index == 3 && rank.pidfd == -1 && rank.last_pid == 0);
}

TEST(a_fork_that_fails_leaves_a_rank_without_a_process)
{
    struct spawn_request *request = shell("");
    uv_loop_init(&loop);
    CHECK_INT(spawn_group_create(&group, 4, &err), ==, 0);
    rank_init(&rank, 3, on_exit_, &exits);
    int next = dup(0);
    close(next);
    struct rlimit was, full;
    getrlimit(RLIMIT_NOFILE, &was);
    full = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = was.rlim_max};
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &full), ==, 0);
    CHECK_INT(rank_start(&rank, &loop, group, request, &err), ==, -EMFILE);
    CHECK(!rank_alive(&rank) && !rank.ended);
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &was), ==, 0);
    CHECK_INT(uv_loop_close(&loop), ==, 0);
    spawn_group_destroy(group);
    start(shell("exit 0")); /* and can be started later */
    finish(REASON_NONE, 0, "exited with code 0");
}
