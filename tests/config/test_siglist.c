/* SPDX-License-Identifier: MIT */
#include "../../config/siglist.h"
#include "../harness.h"

#include <signal.h>
#include <stdio.h>

TEST(every_signal_is_found_by_its_name_with_and_without_sig)
{
    for (int sig = 1; sig < 32; sig++) {
        char name[32];
        snprintf(name, sizeof name, "SIG%s", sigabbrev_np(sig));
        CHECK_INT(siglist_number(name, strlen(name)), ==, sig);
        CHECK_INT(siglist_number(name + 3, strlen(name) - 3), ==, sig);
        CHECK_INT(siglist_number(name, strlen(name) - 1) == sig, ==, 0);
    }
    for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++) {
        char name[32];
        snprintf(name, sizeof name, "SIGRTMIN+%d", sig - SIGRTMIN);
        CHECK_INT(siglist_number(name, strlen(name)), ==, sig);
        snprintf(name, sizeof name, "RTMAX-%d", SIGRTMAX - sig);
        CHECK_INT(siglist_number(name, strlen(name)), ==, sig);
    }
    CHECK_INT(siglist_number("SIGRTMIN", 8), ==, SIGRTMIN);
    CHECK_INT(siglist_number("SIGCLD", 6), ==, SIGCHLD);
}

TEST(what_is_no_signal_is_refused)
{
    static const char *const BAD[] = {
        "",          "FOO",       "SIG",      "sigterm",   "SIGTERM,", ",SIGTERM",
        "TERM,,INT", "15",        "TERM INT", "KILL",      "SIGSTOP",  "CHLD",
        "PIPE",      "TSTP",      "CONT",     "CLD",       "RTMIN+99", "SIGSIGTERM",
        "none,TERM", "TERM,none", "TERM;INT", "SIGTERM\n", "\xff"};
    struct siglist list = {.n = 1, .sig = {9}};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++)
        if (siglist_parse(&list, BAD[i]) != -EINVAL)
            test_fail(__FILE__, __LINE__, "taken: %s", BAD[i]);
    CHECK_INT(list.sig[0], ==, 9); /* as it was */
}

TEST(a_list_keeps_its_order_and_takes_each_signal_once)
{
    struct siglist list;
    char text[SIGLIST_TEXT_BYTES];
    CHECK_INT(siglist_parse(&list, " TERM , SIGUSR1,TERM,SIGRTMIN+2"), ==, 0);
    CHECK_INT(list.n, ==, 3);
    CHECK_STR(siglist_text(&list, text), "SIGTERM,SIGUSR1,SIGRTMIN+2");
    CHECK_INT(siglist_bits(&list), ==, 1ull << 14 | 1ull << 9 | 1ull << (SIGRTMIN + 1));
    for (int sig = 1; sig <= 64; sig++)
        CHECK_INT(siglist_has(&list, sig), ==,
                  sig == SIGTERM || sig == SIGUSR1 || sig == SIGRTMIN + 2);
    siglist_drop(&list, SIGUSR1);
    CHECK_STR(siglist_text(&list, text), "SIGTERM,SIGRTMIN+2");
    CHECK_INT(siglist_parse(&list, "none"), ==, 0);
    CHECK_STR(siglist_text(&list, text), "");
}

TEST(a_list_of_all_signals_fits)
{
    char all[2048] = "", text[SIGLIST_TEXT_BYTES];
    struct siglist list;
    for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "SIGRTMIN+%d,", sig - SIGRTMIN);
    strcat(all,
           "HUP,INT,QUIT,ILL,TRAP,ABRT,BUS,FPE,USR1,SEGV,USR2,ALRM,TERM,STKFLT,TTIN,TTOU,URG,XCPU,"
           "XFSZ,VTALRM,PROF,WINCH,POLL,PWR,SYS");
    CHECK_INT(siglist_parse(&list, all), ==, 0);
    CHECK_INT(list.n, ==, 25 + SIGRTMAX - SIGRTMIN + 1);
    CHECK(strlen(siglist_text(&list, text)) < sizeof text);
    struct siglist again;
    CHECK_INT(siglist_parse(&again, text), ==, 0);
    CHECK_INT(siglist_bits(&again), ==, siglist_bits(&list));
}
