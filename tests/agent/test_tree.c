/* SPDX-License-Identifier: MIT */
/* agent/tree.c on real process trees. Every process holds the write end of a pipe: its end of file says that all are
 * gone. */
#include "../../agent/tree.h"
#include "procs.h"

#include <signal.h>

#define CROWD 700 /* their pids are more text than one read of the kernel's list */

static int ends[2];

static void open_pipe(void)
{
    CHECK_INT(pipe2(ends, O_CLOEXEC), ==, 0);
}

static void gone(void)
{
    close(ends[1]);
    CHECK_INT(await_byte(ends[0]), ==, 0);
}

static _Noreturn void stay(void)
{
    if (write(ends[1], "", 1) != 1)
        _exit(9);
    for (;;)
        pause();
}

/* A child, a grandchild in its group, and one in a session of its own; all are up when it returns. */
static pid_t plant(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        if (fork() == 0)
            stay();
        if (fork() == 0) {
            setsid();
            if (fork() == 0)
                stay();
            stay();
        }
        stay();
    }
    for (int i = 0; i < 4; i++)
        CHECK_INT(await_byte(ends[0]), ==, 1);
    return pid;
}

static void block_child(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

TEST(a_signal_reaches_descendants_that_left_the_process_group)
{
    open_pipe();
    pid_t pid = plant();
    tree_signal(pid, SIGTERM);
    CHECK_INT(ended(pid), ==, 1000 + SIGTERM);
    gone();
}

TEST(without_pidfds_descendants_are_signalled_as_well)
{
    refuse(SYS_pidfd_open, SYS_pidfd_send_signal);
    open_pipe();
    pid_t pid = plant();
    tree_signal(pid, SIGTERM);
    CHECK_INT(ended(pid), ==, 1000 + SIGTERM);
    gone();
}

TEST(a_pid_that_is_no_longer_below_whom_it_was_seen_is_left_alone)
{
    open_pipe();
    pid_t pid = fork();
    if (pid == 0)
        stay();
    /* Our parent stands for a process that has got the pid of a child of `pid`. */
    CHECK(!tree_signal_child_of(pid, getppid(), SIGCONT));
    CHECK(tree_signal_child_of(getppid(), pid, SIGTERM)); /* it came to us meanwhile */
    CHECK_INT(ended(pid), ==, 1000 + SIGTERM);
    CHECK(!tree_signal_child_of(getpid(), pid, SIGTERM));
}

TEST(a_tree_of_which_only_a_zombie_is_left_is_no_trouble)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(3);
    siginfo_t info;
    CHECK_INT(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), ==, 0);
    tree_signal(pid, SIGKILL);
    CHECK_INT(ended(pid), ==, 3);
}

static bool is_kept(void *user, pid_t pid)
{
    return *(pid_t *)user == pid;
}

TEST(all_children_but_those_kept_are_signalled_with_their_trees)
{
    open_pipe();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t first = plant(), second = plant();
    CHECK_INT(tree_signal_children(SIGKILL, is_kept, &first), >=, 1);
    CHECK_INT(ended(second), ==, 1000 + SIGKILL);
    /* Those below it that were not reached before it ended are our children now. */
    while (tree_signal_children(SIGKILL, is_kept, &first) > 0)
        CHECK_INT(waitpid(-1, NULL, 0), >, 0);
    CHECK_INT(waitpid(first, NULL, WNOHANG), ==, 0);
    CHECK_INT(tree_first_child(NULL, NULL), ==, first);
    CHECK_INT(tree_signal_children(SIGTERM, NULL, NULL), >=, 1);
    CHECK_INT(ended(first), ==, 1000 + SIGTERM);
    while (waitpid(-1, NULL, 0) > 0)
        ; /* those below it, too */
    gone();
    CHECK_INT(tree_first_child(NULL, NULL), ==, 0);
    CHECK_INT(tree_signal_children(SIGTERM, NULL, NULL), ==, 0);
}

static void plant_with_an_orphan(void)
{
    open_pipe();
    block_child();
    plant();
    pid_t parent = fork();
    if (parent == 0) {
        if (fork() == 0) {
            setsid();
            signal(SIGTERM, SIG_IGN);
            stay();
        }
        _exit(0);
    }
    CHECK_INT(await_byte(ends[0]), ==, 1);
}

static void end_everything(void)
{
    CHECK_INT(tree_end_all(&(struct tree_old){0}, PATIENCE_MS), ==, 0);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), ==, -1);
    CHECK_INT(errno, ==, ECHILD);
    gone();
    CHECK_INT(tree_end_all(&(struct tree_old){0}, 0), ==, 0);
}

TEST(everything_below_is_ended_and_reaped_orphans_included)
{
    plant_with_an_orphan();
    end_everything();
}

TEST(without_proc_everything_below_is_ended_as_well)
{
    plant_with_an_orphan();
    refuse(SYS_openat, SYS_openat);
    CHECK_INT(tree_first_child(NULL, NULL), >, 0);
    end_everything();
}

TEST(a_long_list_of_children_is_read_whole)
{
    static pid_t crowd[CROWD];
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = fork();
        if (crowd[i] < 0)
            test_skip("no %d processes here", CROWD);
        if (crowd[i] == 0)
            for (;;)
                pause();
    }
    CHECK_INT(tree_signal_children(SIGKILL, NULL, NULL), ==, CROWD);
    for (int i = 0; i < CROWD; i++)
        CHECK_INT(ended(crowd[i]), ==, 1000 + SIGKILL);
}

TEST(a_name_is_fit_for_a_message_whatever_the_process_calls_itself)
{
    char name[16];
    prctl(PR_SET_NAME, "a\nb");
    tree_name(getpid(), name);
    CHECK_STR(name, "a");
    prctl(PR_SET_NAME, "\033[31m x\x01\xc3\xa9");
    tree_name(getpid(), name);
    CHECK_STR(name, "?[31m x???");
    prctl(PR_SET_NAME, "123456789012345678");
    tree_name(getpid(), name);
    CHECK_STR(name, "123456789012345");
    tree_name(0x7ffffff0, name);
    CHECK_STR(name, "?");
}
