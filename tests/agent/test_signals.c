/* SPDX-License-Identifier: MIT */
/* agent/signals.c: names, dispositions, and delivery through the loop. */
#include "../../agent/signals.h"
#include "../harness.h"

#include <signal.h>
#include <unistd.h>

static uv_loop_t loop;
static struct signals signals;
static int seen[8];
static unsigned seen_n;
static bool stop_at_once;

static void on_signal(void *user, const struct signalfd_siginfo *info)
{
    CHECK(user == seen);
    CHECK_INT(info->ssi_pid, ==, getpid());
    seen[seen_n++] = (int)info->ssi_signo;
    if (stop_at_once)
        signals_stop(&signals);
}

static void start(void)
{
    sigset_t all;
    struct err err;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    uv_loop_init(&loop);
    CHECK_INT(signals_start(&signals, &loop, on_signal, seen, &err), ==, 0);
}

TEST(signals_come_from_the_loop_with_their_sender)
{
    start();
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGTERM);
    kill(getpid(), SIGRTMIN + 1);
    CHECK_INT(seen_n, ==, 0);
    uv_run(&loop, UV_RUN_ONCE);
    CHECK_INT(seen_n, ==, 3);
    CHECK_INT(seen[0], ==, SIGUSR1);
    CHECK_INT(seen[1], ==, SIGTERM);
    CHECK_INT(seen[2], ==, SIGRTMIN + 1);
    signals_stop(&signals);
    signals_stop(&signals);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(&loop), ==, 0);
}

TEST(after_a_stop_from_inside_the_callback_nothing_more_comes)
{
    stop_at_once = true;
    start();
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR2);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(seen_n, ==, 1);
    CHECK_INT(uv_loop_close(&loop), ==, 0);
}

TEST(ignored_signals_are_those_that_are_ignored)
{
    struct sigaction fresh = {.sa_handler = SIG_DFL};
    sigaction(SIGHUP, &fresh, NULL); /* nohup */
    sigaction(SIGPIPE, &fresh, NULL);
    unsigned before = signals_ignored();
    CHECK(!(before & (1u << SIGHUP | 1u << SIGPIPE)));
    signals_ignore(SIGPIPE);
    signals_ignore(SIGHUP);
    CHECK_INT(signals_ignored(), ==, before | 1u << SIGPIPE | 1u << SIGHUP);
    CHECK_INT(raise(SIGPIPE), ==, 0); /* and we live */
}

TEST(every_signal_has_a_name)
{
    char name[SIGNALS_NAME_BYTES];
    for (int sig = 1; sig < 32; sig++)
        CHECK_INT(strncmp(signals_name(sig, name), "SIG", 3), ==, 0);
    CHECK_STR(signals_name(SIGKILL, name), "SIGKILL");
    CHECK_STR(signals_name(SIGSEGV, name), "SIGSEGV");
    CHECK_STR(signals_name(SIGRTMIN, name), "SIGRTMIN+0");
    CHECK_STR(signals_name(SIGRTMIN + 3, name), "SIGRTMIN+3");
    CHECK_STR(signals_name(SIGRTMAX + 1, name), "signal 65");
    CHECK_STR(signals_name(0, name), "signal 0");
    CHECK_STR(signals_name(-7, name), "signal -7");
    CHECK_STR(signals_name(INT32_MIN, name), "signal -2147483648");
}
