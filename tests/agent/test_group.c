/* SPDX-License-Identifier: MIT */
/* agent/group.c: when the whole group is done, and who gets a signal. */
#include "../../agent/group.h"
#include "procs.h"

#include <signal.h>

#define N 3

static struct group g;

static void on_exit_(void *user, struct rank *rank)
{
    (void)user, (void)rank;
}

static void begin(bool has_pipes)
{
    CHECK_INT(group_init(&g, N, 0, on_exit_, NULL, NULL), ==, 0);
    group_begin(&g, has_pipes);
    for (uint32_t i = 0; i < N; i++) {
        CHECK_INT(g.ranks[i].index, ==, i);
        g.ranks[i].pid = (pid_t)(1000000 + i); /* above any pid there is: signals reach nobody */
    }
    CHECK_INT(group_alive(&g), ==, N);
}

static bool exited(uint32_t rank)
{
    g.ranks[rank].pid = 0;
    return group_note_exit(&g, rank);
}

TEST(without_pipes_the_last_exit_is_the_end)
{
    begin(false);
    CHECK(!exited(1));
    CHECK(!exited(0));
    CHECK_INT(group_alive(&g), ==, 1);
    CHECK(exited(2));
    CHECK_INT(group_alive(&g), ==, 0);
    group_finish(&g);
}

/* Every order of three exits and three ends of output, each exactly once. */
TEST(with_pipes_the_end_is_the_last_of_all_exits_and_outputs_in_any_order)
{
    for (unsigned order = 0; order < 720; order++) {
        unsigned left[2 * N] = {0, 1, 2, 3, 4, 5}, code = order;
        begin(true);
        for (unsigned n = 2 * N; n > 0; n--) {
            unsigned pick = code % n, what = left[pick];
            code /= n;
            left[pick] = left[n - 1];
            bool last = what < N ? exited(what) : group_note_drained(&g, what - N);
            CHECK_INT(last, ==, n == 1);
        }
        group_finish(&g);
    }
}

TEST(a_group_begins_afresh)
{
    begin(false);
    for (uint32_t i = 0; i < N; i++)
        exited(i);
    g.ranks[1].ended = true;
    group_begin(&g, true);
    CHECK_INT(g.unfinished, ==, N);
    CHECK(!g.ranks[1].ended && !g.drained[1]);
    group_finish(&g);
    group_finish(&g);
}

TEST(only_processes_that_are_not_reaped_are_ours)
{
    begin(false);
    CHECK(group_owns(&g, 1000001));
    CHECK(!group_owns(&g, getpid()));
    exited(1);
    CHECK(!group_owns(&g, 1000001));
    group_finish(&g);
}

/* Three workers whose stdout is a pipe; returns its read end when each has written `lines`. */
static int start_three(uv_loop_t *loop, struct spawn_group **spawn, const char *script,
                       unsigned lines)
{
    struct err err;
    int ends[2];
    uv_loop_init(loop);
    CHECK_INT(pipe2(ends, O_CLOEXEC), ==, 0);
    CHECK_INT(spawn_group_create(spawn, N, &err), ==, 0);
    CHECK_INT(group_init(&g, N, 0, on_exit_, NULL, NULL), ==, 0);
    group_begin(&g, false);
    struct spawn_request *request = shell(script);
    request->stdio[1] = ends[1];
    for (uint32_t i = 0; i < N; i++)
        CHECK_INT(rank_start(&g.ranks[i], loop, *spawn, request, &err), ==, 0);
    spawn_open_gate(*spawn);
    close(ends[1]);
    for (unsigned i = 0; i < N * lines; i++)
        CHECK_INT(await_byte(ends[0]), ==, 1);
    return ends[0];
}

/* Ends when nobody of the three, nor below them, lives any more. */
static void await_end(uv_loop_t *loop, struct spawn_group *spawn, int out)
{
    while (group_alive(&g))
        uv_run(loop, UV_RUN_ONCE);
    CHECK_INT(await_byte(out), ==, 0);
    uv_run(loop, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(loop), ==, 0);
    spawn_group_destroy(spawn);
}

TEST(a_signal_goes_to_every_worker_and_everything_below_it)
{
    uv_loop_t loop;
    struct spawn_group *spawn;
    int out =
        start_three(&loop, &spawn, "setsid sh -c 'echo; exec sleep 300' & echo; exec sleep 300", 2);
    group_signal(&g, SIGKILL);
    await_end(&loop, spawn, out);
    for (int i = 0; i < N; i++)
        CHECK_INT(g.ranks[i].reason, ==, REASON_STOPPED);
    group_finish(&g);
}

TEST(a_signal_that_is_passed_on_reaches_the_workers_only)
{
    uv_loop_t loop;
    struct spawn_group *spawn;
    int out = start_three(
        &loop, &spawn,
        "p=$$; (trap 'echo; exit' USR1; echo; while kill -0 $p; do sleep 0.01; done) 2>&- & "
        "trap 'exit 6' USR1; echo; while :; do sleep 0.01; done",
        2);
    group_pass_on(&g, SIGUSR1);
    await_end(&loop, spawn, out); /* another line would not be the end */
    for (int i = 0; i < N; i++) {
        CHECK_INT(g.ranks[i].reason, ==, REASON_EXIT);
        CHECK_INT(g.ranks[i].code, ==, 6);
    }
    group_finish(&g);
}

static unsigned buried;

static void on_buried(void *user)
{
    (void)user;
    buried++;
}

TEST(a_buried_process_is_killed_with_all_below_it_and_stays_ours_until_it_is_reaped)
{
    uv_loop_t loop;
    struct spawn_group *spawn;
    int out =
        start_three(&loop, &spawn, "setsid sh -c 'echo; exec sleep 300' & echo; exec sleep 300", 2);
    g.on_buried = on_buried;
    pid_t pid = g.ranks[1].pid;
    g.ranks[1].suspected = true;
    CHECK_INT(group_bury(&g, &g.ranks[1]), ==, 0);
    CHECK(!rank_alive(&g.ranks[1]) && group_owns(&g, pid));
    CHECK_INT(g.ranks[1].index, ==, 1);
    CHECK_INT(group_alive(&g), ==, 2);
    while (!buried)
        uv_run(&loop, UV_RUN_ONCE);
    CHECK(!group_owns(&g, pid) && !g.dying);
    CHECK(!g.ranks[1].ended);
    group_signal(&g, SIGKILL);
    await_end(&loop, spawn, out); /* what was below it, too */
    group_finish(&g);
}

TEST(a_rank_that_had_finished_counts_again_when_it_gets_a_process)
{
    begin(true);
    CHECK(!exited(0));
    CHECK(!group_note_drained(&g, 0));
    CHECK_INT(g.unfinished, ==, N - 1);
    group_revive(&g, 0, true);
    CHECK_INT(g.unfinished, ==, N);
    CHECK(!exited(1)); /* its output has not ended: it has not finished */
    group_revive(&g, 1, true);
    CHECK_INT(g.unfinished, ==, N);
    CHECK(!g.drained[1]);
    group_finish(&g);
}

TEST(a_standby_is_ours_and_no_rank)
{
    CHECK_INT(group_init(&g, N, 2, on_exit_, on_buried, NULL), ==, 0);
    group_begin(&g, false);
    CHECK_INT(g.spares[1].index, ==, N + 1);
    g.spares[1].pid = 1000007;
    CHECK(group_owns(&g, 1000007));
    CHECK_INT(group_alive(&g), ==, 0);
    g.spares[1].pid = 0;
    group_finish(&g);
}
