/* SPDX-License-Identifier: MIT */
/* What /proc tells of processes that live, die, or have lost their main thread; real ones and invented ones. */
#include "../../agent/procstate.h"
#include "../harness.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t fork_or_fail(void)
{
    pid_t pid = fork();
    CHECK_INT(pid, >=, 0);
    return pid;
}

/* Waits until pid is a zombie, leaves it one. */
static void await_end(pid_t pid)
{
    siginfo_t info;
    CHECK_INT(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), ==, 0);
}

TEST(a_process_that_runs_or_is_stopped_lives)
{
    int status = -1;
    CHECK_INT(procstate_of("", getpid(), &status), ==, PROC_LIVES);
    pid_t pid = fork_or_fail();
    if (pid == 0)
        for (;;)
            pause();
    siginfo_t info;
    kill(pid, SIGSTOP);
    CHECK_INT(waitid(P_PID, (id_t)pid, &info, WSTOPPED), ==, 0);
    CHECK_INT(procstate_of("", pid, &status), ==, PROC_LIVES);
    CHECK_INT(procstate_parent(pid), ==, getpid());
    CHECK_INT(status, ==, -1);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    CHECK_INT(procstate_of("", pid, &status), ==, PROC_GONE);
    CHECK_INT(procstate_parent(pid), ==, 0);
}

TEST(a_dead_process_tells_its_wait_status)
{
    int status = -1;
    pid_t pid = fork_or_fail();
    if (pid == 0)
        _exit(7);
    await_end(pid);
    CHECK_INT(procstate_of("", pid, &status), ==, PROC_ENDING);
    CHECK_INT(WEXITSTATUS(status), ==, 7);
    waitpid(pid, NULL, 0);

    pid = fork_or_fail();
    if (pid == 0)
        for (;;)
            pause();
    kill(pid, SIGKILL);
    await_end(pid);
    CHECK_INT(procstate_of("", pid, &status), ==, PROC_ENDING);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    waitpid(pid, NULL, 0);
}

static void *go_on(void *arg)
{
    for (;;)
        pause();
    return arg;
}

TEST(a_process_whose_main_thread_has_ended_alone_is_headless)
{
    int status = -1;
    pid_t pid = fork_or_fail();
    if (pid == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, go_on, NULL);
        pthread_exit(NULL);
    }
    enum procstate state;
    while ((state = procstate_of("", pid, &status)) == PROC_LIVES)
        usleep(1000);
    CHECK_INT(state, ==, PROC_HEADLESS);
    kill(pid, SIGKILL);
    await_end(pid);
    CHECK_INT(procstate_of("", pid, &status), ==, PROC_ENDING);
    CHECK_INT(WTERMSIG(status), ==, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* flags: field 9, pending: field 31, exit code: field 52 */
static void write_stat(const char *path, const char *name, char state, unsigned flags,
                       unsigned pending, int code)
{
    char text[512];
    snprintf(text, sizeof text,
             "9 (%s) %c 1 9 9 0 -1 %u 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0 1 0 0 0 0 0 %u 0 0 0 0 0 0 "
             "17 0 0 0 0 0 0 0 0 0 0 0 0 0 %d\n",
             name, state, flags, pending, code);
    test_write(path, text);
}

TEST(threads_with_a_fatal_signal_do_not_go_on)
{
    int status = 0;
    write_stat("proc/9/stat", "a) R 1 (", 'D', 0x4, 0, 11);
    write_stat("proc/9/task/9/stat", "a", 'D', 0x4, 0, 11);
    CHECK_INT(procstate_of(test_dir(), 9, &status), ==, PROC_ENDING);
    CHECK_INT(status, ==, 11);
    write_stat("proc/9/task/10/stat", "a", 'S', 0, 0x100, 0);
    write_stat("proc/9/task/11/stat", "a", 'R', 0x400, 0, 0);
    CHECK_INT(procstate_of(test_dir(), 9, &status), ==, PROC_ENDING);
    write_stat("proc/9/task/12/stat", "a", 'S', 0x40, 0x80, 0);
    CHECK_INT(procstate_of(test_dir(), 9, &status), ==, PROC_HEADLESS);
}

TEST(a_stat_file_that_makes_no_sense_is_a_process_that_is_gone)
{
    static const char *const bad[] = {"", "9", "9 (a)", "9 (a) ", "9 (a) Z 1 2 3", "\n"};
    int status = 77;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        test_write("proc/9/stat", bad[i]);
        CHECK_INT(procstate_of(test_dir(), 9, &status), ==, PROC_GONE);
    }
    CHECK_INT(status, ==, 77);
}
