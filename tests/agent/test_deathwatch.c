/* SPDX-License-Identifier: MIT */
/* Holders of real robust locks that die, leave, exec, or end their main thread, over a real loop. */
#include "../../agent/deathwatch.h"
#include "../harness.h"

#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define RANKS 300 /* three threads */

static uv_loop_t loop;
static uv_timer_t limit;
static struct board board;
static struct deathwatch *watch;
static unsigned lost[RANKS], lost_n, wanted;
static pid_t holder[RANKS];

static void on_lost(void *user, uint32_t rank)
{
    CHECK(user == &board);
    lost[rank]++;
    if (++lost_n >= wanted)
        uv_stop(&loop);
}

static void on_limit(uv_timer_t *timer)
{
    (void)timer;
    test_fail(__FILE__, __LINE__, "no news: %u of %u", lost_n, wanted);
}

static void setup(uint32_t ranks)
{
    struct board_config config = {.world_size = ranks, .generation = 1};
    struct err err;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    CHECK_INT(board_create(&board, &config, &err), ==, 0);
    CHECK_INT(uv_loop_init(&loop), ==, 0);
    uv_timer_init(&loop, &limit);
    CHECK_INT(deathwatch_start(&watch, &loop, &board, ranks, on_lost, &board), ==, 0);
}

static void teardown(void)
{
    deathwatch_stop(&watch);
    CHECK(watch == NULL);
    uv_close((uv_handle_t *)&limit, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(&loop), ==, 0);
    board_close(&board);
}

static void await_lost(unsigned n)
{
    wanted = n;
    if (lost_n >= n)
        return;
    uv_timer_start(&limit, on_limit, 20000, 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_timer_stop(&limit);
}

/* What the kernel knows as the lock; others change it at any time. */
static _Atomic int *lock_word(uint32_t rank)
{
    return (_Atomic int *)&board_slot(&board, rank)->lock.__data.__lock;
}

/* A process that holds the lock of a rank and does `then`; watched from now on. */
static void hold(uint32_t rank, void (*then)(pthread_mutex_t *lock))
{
    int ready[2];
    CHECK_INT(pipe(ready), ==, 0);
    holder[rank] = fork();
    CHECK_INT(holder[rank], >=, 0);
    pthread_mutex_t *lock = &board_slot(&board, rank)->lock;
    if (holder[rank] == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int rc = pthread_mutex_lock(lock);
        if (rc == EOWNERDEAD)
            rc = pthread_mutex_consistent(lock);
        if (rc != 0)
            _exit(99);
        if (write(ready[1], "", 1) != 1)
            _exit(98);
        then(lock);
        _exit(97);
    }
    char byte;
    close(ready[1]);
    CHECK_INT(read(ready[0], &byte, 1), ==, 1);
    close(ready[0]);
    deathwatch_add(watch, rank);
}

static void stay(pthread_mutex_t *lock)
{
    (void)lock;
    for (;;)
        pause();
}

/* Waits for the parent to arm the lock, so that the wake-up itself is tested. */
static void await_armed(pthread_mutex_t *lock)
{
    while (!(__atomic_load_n(&lock->__data.__lock, __ATOMIC_ACQUIRE) & FUTEX_WAITERS))
        usleep(100);
}

static void leave(pthread_mutex_t *lock)
{
    await_armed(lock);
    pthread_mutex_unlock(lock);
    stay(lock);
}

static void be_replaced(pthread_mutex_t *lock)
{
    await_armed(lock);
    execlp("sleep", "sleep", "60", NULL);
}

static void *idle(void *arg)
{
    stay(arg);
    return arg;
}

static void lose_main_thread(pthread_mutex_t *lock)
{
    pthread_t thread;
    await_armed(lock);
    pthread_create(&thread, NULL, idle, lock);
    pthread_exit(NULL);
}

static void end(uint32_t rank)
{
    kill(holder[rank], SIGKILL);
    waitpid(holder[rank], NULL, 0);
}

TEST(a_killed_holder_is_told_once_before_it_is_reaped)
{
    setup(2);
    hold(0, stay);
    hold(1, stay);
    kill(holder[1], SIGKILL);
    await_lost(1);
    CHECK_INT(lost[0], ==, 0);
    CHECK_INT(lost[1], ==, 1);
    end(0);
    await_lost(2);
    CHECK_INT(lost[1], ==, 1);
    waitpid(holder[1], NULL, 0);
    teardown();
}

TEST(whoever_leaves_is_not_told)
{
    setup(2);
    hold(0, leave);
    hold(1, leave);
    while (*lock_word(1) || *lock_word(0))
        usleep(1000);
    end(0);
    hold(0, stay); /* the next holder of the same lock is watched again */
    end(0);
    await_lost(1);
    CHECK_INT(lost[0], ==, 1);
    CHECK_INT(lost[1], ==, 0);
    end(1);
    teardown();
}

TEST(an_exec_and_a_lost_main_thread_are_told_too)
{
    setup(2);
    hold(0, be_replaced);
    await_lost(1);
    CHECK_INT(lost[0], ==, 1);
    hold(1, lose_main_thread);
    await_lost(2);
    CHECK_INT(lost[1], ==, 1);
    CHECK_INT(kill(holder[0], 0), ==, 0);
    CHECK_INT(kill(holder[1], 0), ==, 0);
    end(0);
    end(1);
    teardown();
}

TEST(three_hundred_ranks_die_at_once_and_each_is_told_once)
{
    setup(RANKS);
    for (uint32_t i = 0; i < RANKS; i++)
        hold(i, stay);
    for (uint32_t i = 0; i < RANKS; i++)
        kill(holder[i], SIGKILL);
    await_lost(RANKS);
    for (uint32_t i = 0; i < RANKS; i++) {
        CHECK_INT(lost[i], ==, 1);
        waitpid(holder[i], NULL, 0);
    }
    teardown();
}

TEST(a_death_before_anybody_looked_is_told)
{
    setup(1);
    pthread_mutex_t *lock = &board_slot(&board, 0)->lock;
    pid_t pid = fork();
    if (pid == 0)
        _exit(pthread_mutex_lock(lock));
    waitpid(pid, NULL, 0);
    deathwatch_add(watch, 0);
    await_lost(1);
    teardown();
}

TEST(old_kernels_have_a_thread_for_each_lock)
{
    deathwatch_one_by_one = true;
    setup(3);
    hold(0, stay);
    hold(1, stay);
    hold(2, leave);
    end(1);
    await_lost(1);
    CHECK_INT(lost[1], ==, 1);
    hold(1, stay); /* its thread had ended */
    end(1);
    await_lost(2);
    CHECK_INT(lost[2], ==, 0);
    teardown(); /* with rank 0 still held */
    end(0);
    end(2);
}

TEST(stopping_is_possible_at_any_moment)
{
    for (int i = 0; i < 200; i++) {
        deathwatch_one_by_one = i % 2;
        lost_n = 0;
        setup(2);
        *lock_word(0) = 1; /* held by init: never freed */
        deathwatch_add(watch, 0);
        for (int k = 0; k < i * 50; k++)
            __asm__ volatile("");
        teardown();
    }
    CHECK_INT(lost_n, ==, 0);
}

TEST(a_lock_somebody_scribbles_over_does_not_keep_a_cpu_busy_for_ever)
{
    setup(1);
    _Atomic int *word = lock_word(0);
    *word = 1;
    deathwatch_add(watch, 0);
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 1;; i++)
            *word = (i & 0xffff) + 1;
    }
    for (int i = 0; i < 50; i++)
        usleep(1000);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    *word = 0; /* whether the thread still looks or not */
    CHECK_INT(lost_n, ==, 0);
    teardown();
}
