/* SPDX-License-Identifier: MIT */
/* agent/guard.c: its own status is the agent's, and nothing below the agent outlives it. */
#include "../../agent/guard.h"
#include "procs.h"

#include <signal.h>

static int ends[2];
static const struct cgroup no_cgroup = {.parent_fd = -1, .fd = -1};

static int guarded(int (*agent)(void *user, int guard_pidfd), void *user)
{
    struct err err;
    int status = guard_run(agent, user, &no_cgroup, &err);
    if (status < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return status;
}

static int exits(void *user, int guard_pidfd)
{
    return guard_pidfd > 2 ? *(int *)user : 200;
}

TEST(the_status_is_the_agents)
{
    static const int codes[] = {0, 1, 2, 125, 255};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        CHECK_INT(guarded(exits, (void *)&codes[i]), ==, codes[i]);
}

static _Noreturn void stay(void)
{
    CHECK_INT(write(ends[1], "", 1), ==, 1);
    for (;;)
        pause();
}

/* Leaves a child, and an orphan in a session of its own, and is killed. */
static int is_killed(void *user, int guard_pidfd)
{
    (void)user, (void)guard_pidfd;
    if (fork() == 0)
        stay();
    if (fork() == 0) {
        if (fork() == 0) {
            setsid();
            stay();
        }
        _exit(0);
    }
    await_byte(ends[0]);
    await_byte(ends[0]);
    raise(SIGKILL);
    return 0;
}

TEST(when_the_agent_is_killed_all_it_left_is_killed_and_reaped)
{
    CHECK_INT(pipe2(ends, O_CLOEXEC), ==, 0);
    CHECK_INT(guarded(is_killed, NULL), ==, 128 + SIGKILL);
    close(ends[1]);
    CHECK_INT(await_byte(ends[0]), ==, 0);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), ==, -1);
}

static int waits_for_usr2(void *user, int guard_pidfd)
{
    (void)guard_pidfd;
    sigset_t set;
    int sig = 0;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGUSR1);
    kill(*(pid_t *)user, SIGUSR2); /* to the guard */
    CHECK_INT(sigwait(&set, &sig), ==, 0);
    return sig;
}

TEST(a_signal_to_the_guard_alone_is_forwarded)
{
    pid_t self = getpid();
    CHECK_INT(guarded(waits_for_usr2, &self), ==, SIGUSR2);
}

static int sees_guard_die(void *user, int guard_pidfd)
{
    (void)user;
    kill(getppid(), SIGKILL);
    await_byte(guard_pidfd); /* readable; what read() says does not matter */
    CHECK_INT(write(ends[1], "", 1), ==, 1);
    return 0;
}

TEST(the_agent_learns_of_the_guards_death)
{
    CHECK_INT(pipe2(ends, O_CLOEXEC), ==, 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(guarded(sees_guard_die, NULL));
    CHECK_INT(ended(pid), ==, 1000 + SIGKILL);
    CHECK_INT(await_byte(ends[0]), ==, 1);
    close(ends[1]);
    CHECK_INT(await_byte(ends[0]), ==, 0);
}
