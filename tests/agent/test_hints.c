/* SPDX-License-Identifier: MIT */
#include "../../agent/hints.h"
#include "../../proto/base.h"
#include "../harness.h"

#include <signal.h>

static const char *hint_for(int exit_code, int sig)
{
    struct hint_facts facts = {
        .reason = sig ? REASON_SIGNAL : REASON_EXIT, .exit_code = exit_code, .signal = sig};
    return hints_find(&facts);
}

TEST(a_shell_tells_by_its_exit_code_what_it_could_not_do)
{
    CHECK_HAS(hint_for(127, 0), "not there");
    CHECK_HAS(hint_for(126, 0), "can't be executed");
}

TEST(signals_have_hints_and_claim_nothing_that_is_not_proven)
{
    static const struct {
        int sig;
        const char *want;
    } CASES[] = {{SIGBUS, "/dev/shm"}, {SIGSEGV, "ulimit -c"}, {SIGILL, "another CPU"},
                 {SIGKILL, "dmesg"},   {SIGXCPU, "ulimit -t"}, {SIGXFSZ, "ulimit -f"},
                 {SIGSYS, "seccomp"}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++)
        CHECK_HAS(hint_for(128 + CASES[i].sig, CASES[i].sig), CASES[i].want);
    CHECK(!strcasestr(hint_for(137, SIGKILL), "oom"));
}

TEST(what_is_not_known_has_no_hint)
{
    for (int code = 1; code < 126; code++)
        CHECK(hint_for(code, 0) == NULL);
    CHECK(hint_for(143, SIGTERM) == NULL);
    struct hint_facts none = {.reason = REASON_EXIT, .exit_code = 1};
    CHECK(hints_find(&none) == NULL);
    struct hint_facts spawn = {.reason = REASON_SPAWN, .exit_code = 127};
    CHECK(hints_find(&spawn) == NULL);
}

TEST(where_a_core_dump_is_nobody_is_told_to_make_one)
{
    struct hint_facts facts = {
        .reason = REASON_SIGNAL, .signal = SIGSEGV, .exit_code = 139, .core = true};
    CHECK_HAS(hints_find(&facts), "gdb");
}

TEST(proof_that_memory_ran_out_goes_first)
{
    struct hint_facts facts = {
        .reason = REASON_SIGNAL, .signal = SIGKILL, .exit_code = 137, .oom = true};
    CHECK_HAS(hints_find(&facts), "memory ran out");
    struct hint_facts missing = {.reason = REASON_RENDEZVOUS};
    CHECK_HAS(hints_find(&missing), "launch_join()");
    missing.state_lost = true; /* all had come */
    CHECK(hints_find(&missing) == NULL);
}
