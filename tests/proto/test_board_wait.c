/* SPDX-License-Identifier: MIT */
/* proto/board.c between processes: waiting, waking, deadlines, the robust lock of a killed worker. */
#include "../../proto/board.h"
#include "../../proto/clock.h"
#include "../harness.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void make(struct board *b, uint32_t spin_ns)
{
    struct err err = {0};
    struct board_config config = {.world_size = 2, .generation = 1, .spin_ns = spin_ns};
    if (board_create(b, &config, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

static int exit_code(pid_t pid)
{
    int status;
    CHECK_INT(waitpid(pid, &status, 0), ==, pid);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(a_word_that_has_changed_is_not_waited_for)
{
    struct board b;
    make(&b, 0);
    b.head->running = 1;
    CHECK_INT(board_wait(&b, &b.head->running, 0, 0, CLOCK_NEVER), ==, 0);
    CHECK_INT(board_wait(&b, &b.head->running, 0, 0, 1), ==,
              0); /* past deadline: the news is better */
}

TEST(another_epoch_cancels_at_once)
{
    struct board b;
    make(&b, 0);
    board_bump_epoch(&b);
    CHECK_INT(b.head->epoch, ==, 1);
    CHECK_INT(board_wait(&b, &b.head->running, 0, 0, CLOCK_NEVER), ==, -ECANCELED);
}

TEST(a_deadline_ends_the_wait)
{
    static const uint32_t spins[] = {0, 1000,
                                     UINT32_MAX}; /* the last one is what a broken peer writes */
    for (size_t i = 0; i < ARRAY_LEN(spins); i++) {
        struct board b;
        make(&b, spins[i]);
        uint64_t deadline = clock_deadline_ns(5);
        CHECK_INT(board_wait(&b, &b.head->running, 0, 0, deadline), ==, -ETIMEDOUT);
        CHECK(clock_now_ns() >= deadline);
        CHECK_INT(board_wait(&b, &b.head->running, 0, 0, 0), ==, -ETIMEDOUT);
        board_close(&b);
    }
}

/* Two processes hand a word back and forth; each maps the board itself. */
static void ping_pong(uint32_t spin_ns)
{
    struct board b, mine;
    struct err err;
    enum { TURNS = 500 };
    make(&b, spin_ns);
    pid_t pid = fork();
    CHECK_INT(board_open(&mine, b.fd, &err), ==, 0);
    _Atomic uint32_t *there = &board_slot(&mine, pid ? 0 : 1)->arrive[0];
    _Atomic uint32_t *here = &board_slot(&mine, pid ? 1 : 0)->arrive[0];
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        if (pid) {
            atomic_store(there, turn + 1);
            board_wake(there);
        }
        CHECK_INT(board_wait(&mine, here, turn, 0, CLOCK_NEVER), ==, 0);
        if (!pid) {
            atomic_store(there, turn + 1);
            board_wake(there);
        }
    }
    if (!pid)
        _exit(0);
    CHECK_INT(exit_code(pid), ==, 0);
}

TEST(processes_wake_each_other)
{
    ping_pong(0);
}

TEST(processes_that_look_before_they_sleep_wake_each_other)
{
    ping_pong(20000);
}

/* A child that sleeps on the running word; returns when it is really in the system call. */
static pid_t sleeper(const struct board *b, long syscall_nr)
{
    pid_t pid = fork();
    if (pid == 0) {
        int rc = board_wait(b, &b->head->running, 0, 0, CLOCK_NEVER);
        _exit(rc == 0 ? 0 : rc == -ECANCELED ? 1 : 2);
    }
    char path[64], text[64];
    snprintf(path, sizeof path, "/proc/%d/syscall", (int)pid);
    for (;;) {
        FILE *f = fopen(path, "r");
        if (!f)
            break; /* not all kernels have it: then the race is part of the test */
        long nr = -1;
        if (fgets(text, sizeof text, f) && sscanf(text, "%ld", &nr) == 1 && nr == syscall_nr) {
            fclose(f);
            break;
        }
        fclose(f);
        sched_yield();
    }
    return pid;
}

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

TEST(a_new_epoch_wakes_every_sleeper)
{
    struct board b;
    make(&b, 0);
    pid_t pids[4];
    for (size_t i = 0; i < ARRAY_LEN(pids); i++)
        pids[i] = sleeper(&b, SYS_futex_waitv);
    board_bump_epoch(&b);
    for (size_t i = 0; i < ARRAY_LEN(pids); i++)
        CHECK_INT(exit_code(pids[i]), ==, 1);
}

TEST(one_wake_reaches_every_sleeper_on_the_word)
{
    struct board b;
    make(&b, 0);
    pid_t pids[4];
    for (size_t i = 0; i < ARRAY_LEN(pids); i++)
        pids[i] = sleeper(&b, SYS_futex_waitv);
    atomic_store(&b.head->running, 1);
    board_wake(&b.head->running);
    for (size_t i = 0; i < ARRAY_LEN(pids); i++)
        CHECK_INT(exit_code(pids[i]), ==, 0);
}

/* From here on this process lives on a kernel that answers futex_waitv with `error`. */
static void without_futex_waitv(unsigned error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* offset of nr */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex_waitv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = ARRAY_LEN(code), .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        test_skip("no seccomp filters here");
}

static void on_an_old_kernel(unsigned error)
{
    without_futex_waitv(error);
    struct board b;
    make(&b, 0);
    CHECK_INT(board_wait(&b, &b.head->running, 0, 0, clock_deadline_ns(5)), ==, -ETIMEDOUT);
    pid_t pid = sleeper(&b, SYS_futex);
    board_bump_epoch(&b); /* seen at the next look */
    CHECK_INT(exit_code(pid), ==, 1);
    b.head->epoch = 0;
    pid = sleeper(&b, SYS_futex);
    atomic_store(&b.head->running, 1);
    board_wake(&b.head->running);
    CHECK_INT(exit_code(pid), ==, 0);
}

TEST(a_kernel_without_futex_waitv_will_do)
{
    on_an_old_kernel(ENOSYS);
}

TEST(a_sandbox_that_forbids_futex_waitv_will_do)
{
    on_an_old_kernel(EPERM);
}

TEST(the_lock_of_a_killed_worker_tells_its_death)
{
    struct board b;
    make(&b, 0);
    struct board_slot *slot = board_slot(&b, 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (pthread_mutex_lock(&slot->lock) != 0)
            _exit(1);
        atomic_store(&slot->stage, 1);
        board_wake(&slot->stage);
        for (;;)
            pause();
    }
    CHECK_INT(board_wait(&b, &slot->stage, 0, 0, CLOCK_NEVER), ==, 0);
    CHECK_INT(pthread_mutex_trylock(&slot->lock), ==, EBUSY);
    CHECK_INT(kill(pid, SIGKILL), ==, 0);
    CHECK_INT(pthread_mutex_lock(&slot->lock), ==, EOWNERDEAD);
    CHECK_INT(pthread_mutex_consistent(&slot->lock), ==, 0);
    CHECK_INT(pthread_mutex_unlock(&slot->lock), ==, 0);
    CHECK_INT(waitpid(pid, NULL, 0), ==, pid);
    CHECK_INT(pthread_mutex_lock(&slot->lock), ==, 0); /* good for the next generation */
    CHECK_INT(pthread_mutex_unlock(&slot->lock), ==, 0);
}
