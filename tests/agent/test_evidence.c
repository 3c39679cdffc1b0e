/* SPDX-License-Identifier: MIT */
/* agent/evidence.[ch] on a made-up /proc, and on real children of the test. */
#include "../../agent/evidence.h"
#include "../../proto/clock.h"
#include "../harness.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void put(const char *file, const char *content)
{
    char path[64];
    snprintf(path, sizeof path, "proc/77/%s", file);
    test_write(path, content);
}

TEST(state_wait_call_and_time_are_read)
{
    struct evidence_proc p;
    put("status", "Name:\ttrain\nUmask:\t0022\nState:\tD (disk sleep)\nCoreDumping:\t0\n");
    put("wchan", "rpc_wait_bit_killable");
    put("syscall", "0 0x3 0x7f 0x1000 0x0 0x0 0x0 0x7ffd 0x7f01\n");
    put("stat", "77 (a) b (c) D 1 77 77 0 -1 4194560 1 2 3 4 150 50 7 8 20 0 1 0 99 0 0\n");
    evidence_read(test_dir(), 77, &p);
    CHECK_INT(p.state, ==, 'D');
    CHECK_STR(p.name, "train");
    CHECK_STR(p.wait, "rpc_wait_bit_killable");
    CHECK_STR(p.call, "read");
    CHECK(!p.core);
    CHECK_INT(p.cpu_s * (double)sysconf(_SC_CLK_TCK), ==, 200);
}

TEST(a_core_dump_a_running_rank_and_an_unknown_call_are_told)
{
    struct evidence_proc p;
    put("status", "Name:\tx\x1b[31m\nState:\tR (running)\nCoreDumping:\t1\n");
    put("wchan", "0");
    put("syscall", "running\n");
    evidence_read(test_dir(), 77, &p);
    CHECK(p.core);
    CHECK_STR(p.call, "running");
    CHECK_STR(p.wait, "");
    CHECK_STR(p.name, "x?[31m");
    put("syscall", "99999 0x0\n");
    evidence_read(test_dir(), 77, &p);
    CHECK_STR(p.call, "system call 99999");
    put("syscall", "-1 0x0 0x0\n");
    evidence_read(test_dir(), 77, &p);
    CHECK_STR(p.call, "");
}

TEST(nonsense_in_proc_does_no_harm)
{
    static const char *const nonsense[] = {"",         "\n",
                                           ")",        "77 (x) ",
                                           "State:\n", "State:\t\n",
                                           "\xff\xfe", "77 (x) R 1 2 3",
                                           "-",        "1 2 3 4 5 6 7 8"};
    struct evidence_proc p;
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        put("status", nonsense[i]);
        put("wchan", nonsense[i]);
        put("syscall", nonsense[i]);
        put("stat", nonsense[i]);
        evidence_read(test_dir(), 77, &p);
        CHECK_INT(p.state, ==, '?');
    }
    evidence_read(test_dir(), 78, &p);
    CHECK_INT(p.state, ==, '?');
    CHECK_INT(p.pid, ==, 78);
}

TEST(the_worker_is_what_a_script_runs)
{
    test_write("proc/10/task/10/children", "11 ");
    test_write("proc/11/task/11/children", "12 ");
    test_write("proc/12/task/12/children", "");
    CHECK_INT(evidence_worker(test_dir(), 10), ==, 12);
    test_write("proc/12/task/12/children", "13 14 ");
    CHECK_INT(evidence_worker(test_dir(), 10), ==, 12);
    /* What has ended and is not waited for does no work. */
    test_write("proc/13/status", "Name:\tloader\nState:\tZ (zombie)\n");
    CHECK_INT(evidence_worker(test_dir(), 10), ==, 14);
    test_write("proc/12/task/12/children", "13 ");
    CHECK_INT(evidence_worker(test_dir(), 10), ==, 12);
    /* A parent that does not wait does the work itself. */
    test_write("proc/11/wchan", "hrtimer_nanosleep");
    CHECK_INT(evidence_worker(test_dir(), 10), ==, 11);
    test_write("proc/11/wchan", "do_wait");
    CHECK_INT(evidence_worker(test_dir(), 10), ==, 12);
    test_write("proc/12/task/12/children", "10 "); /* a circle can't be, and must not hold us */
    CHECK(evidence_worker(test_dir(), 10) > 0);
    test_write("proc/12/task/12/children", "-5 ");
    CHECK_INT(evidence_worker(test_dir(), 10), ==, 12);
    CHECK_INT(evidence_worker(test_dir(), 99), ==, 99);
}

/* ---- real processes ---- */

static uv_loop_t loop;
static uv_timer_t timer;
static struct evidence evidence;
static bool taken;

static void on_taken(void *user)
{
    CHECK(user == &taken);
    CHECK(!taken);
    taken = true;
}

__attribute__((noinline)) static void hang_here(void)
{
    for (;;)
        pause();
}

static void *hang_there(void *user)
{
    pause();
    return user;
}

/* Until the test's limit. */
static void wait_for_state(pid_t pid, char state)
{
    struct evidence_proc p;
    do
        evidence_glance("", pid, &p);
    while (p.state != state);
}

/* A child that hangs in hang_here(), with some threads; returns when it does. */
static pid_t start_child(unsigned threads)
{
    int up[2];
    CHECK_INT(pipe(up), ==, 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_PTRACER, getppid());
        pthread_t thread;
        while (threads-- > 0)
            pthread_create(&thread, NULL, hang_there, NULL);
        if (write(up[1], "", 1) < 0)
            _exit(1);
        hang_here();
    }
    char c;
    CHECK_INT(read(up[0], &c, 1), ==, 1);
    wait_for_state(pid, 'S');
    close(up[0]);
    close(up[1]);
    return pid;
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    CHECK_INT(waitpid(pid, NULL, 0), ==, pid);
}

static void take(const pid_t *pids, uint32_t n, uint32_t first)
{
    struct err err = {0};
    CHECK_INT(uv_loop_init(&loop), ==, 0);
    CHECK_INT(uv_timer_init(&loop, &timer), ==, 0);
    if (evidence_take(&evidence, &loop, &timer, pids, n, first, on_taken, &taken, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

TEST(a_helper_looks_at_every_rank_and_ends)
{
    if (UNDER_TSAN)
        test_skip("TSan has threads of its own in every process");
    pid_t pids[3] = {start_child(0), 0, start_child(3)};
    take(pids, 3, 2);
    while (!taken)
        uv_run(&loop, UV_RUN_ONCE);
    CHECK_INT(evidence.ranks[0].parts, ==, 2);
    CHECK_INT(evidence.ranks[1].parts, ==, 0);
    CHECK_INT(evidence.ranks[2].parts, ==, 2);
    CHECK_INT(evidence.ranks[2].proc.pid, ==, pids[2]);
    CHECK_INT(evidence.ranks[2].stacks.threads, ==, 4);
    evidence_drop(&evidence);
    evidence_drop(&evidence);
    end_child(pids[0]);
    end_child(pids[2]);
}

TEST(a_helper_that_is_not_needed_any_more_is_killed)
{
    static pid_t pids[2000]; /* work for longer than we wait */
    pids[0] = start_child(0);
    for (size_t i = 1; i < ARRAY_LEN(pids); i++)
        pids[i] = pids[0];
    int status;
    take(pids, ARRAY_LEN(pids), 0);
    struct pollfd end = {.fd = dup(evidence.pidfd), .events = POLLIN};
    evidence_drop(&evidence);
    CHECK_INT(poll(&end, 1, 10000), ==, 1);
    close(end.fd);
    /* Reaped as well, unless that took long; the child hangs on. */
    pid_t late = waitpid(-1, &status, WNOHANG);
    CHECK(late == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    end_child(pids[0]);
    uv_run(&loop, UV_RUN_DEFAULT); /* ends: nothing is active */
    CHECK(!taken);
}

TEST(a_helper_that_gets_stuck_costs_no_more_than_the_budget)
{
    pid_t pids[1] = {start_child(0)};
    take(pids, 1, 0);
    CHECK_INT(syscall(SYS_pidfd_send_signal, evidence.pidfd, SIGSTOP, NULL, 0), ==, 0);
    while (!taken)
        uv_run(&loop, UV_RUN_ONCE);
    evidence_drop(&evidence);
    end_child(pids[0]);
}

/* ---- stacks ---- */

static void stacks_of(pid_t pid, struct stacks *s)
{
    stacks_take(pid, clock_now_ns() + NS_PER_S, s);
    if (s->n == 0)
        test_skip("no stacks here: %s", s->why);
}

TEST(stacks_name_the_functions_and_count_equal_threads)
{
    if (UNDER_TSAN)
        test_skip("TSan has threads of its own in every process");
    struct stacks s;
    pid_t pid = start_child(5);
    stacks_of(pid, &s);
    CHECK_HAS(s.stack[0].text, "pause < hang_here < start_child");
    CHECK_INT(s.stack[0].threads, ==, 1);
    CHECK_INT(s.threads, ==, 6);
    uint32_t threads = 0;
    for (uint32_t i = 1; i < s.n; i++)
        threads += s.stack[i].threads;
    CHECK(threads >= 1 && threads <= 5);
    CHECK_INT(waitpid(pid, NULL, WNOHANG), ==, 0); /* it goes on hanging */
    end_child(pid);
}

TEST(a_stopped_process_has_stacks_and_stays_stopped)
{
    struct stacks s;
    int status;
    pid_t pid = start_child(0);
    kill(pid, SIGSTOP);
    CHECK_INT(waitpid(pid, &status, WUNTRACED), ==, pid);
    stacks_of(pid, &s);
    CHECK_HAS(s.stack[0].text, "hang_here");
    wait_for_state(pid, 'T'); /* on its way back for a moment */
    end_child(pid);
}

TEST(a_process_that_is_gone_has_no_stack_but_a_reason)
{
    struct stacks s;
    pid_t pid = start_child(0);
    end_child(pid);
    stacks_take(pid, clock_now_ns() + NS_PER_S, &s);
    CHECK_INT(s.n, ==, 0);
    CHECK(s.why[0]);
}
