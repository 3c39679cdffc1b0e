/* SPDX-License-Identifier: MIT */
#include "../../agent/restart.h"
#include "../../proto/base.h"
#include "../../worker/launch.h"
#include "../harness.h"

static struct restart_policy policy_of(uint32_t max)
{
    struct restart_policy policy = {.max_restarts = max};
    CHECK_INT(limits_parse(&policy.limits, "none"), ==, 0);
    CHECK_INT(codeset_parse(&policy.on, "all"), ==, 0);
    return policy;
}

static const struct restart_failure exit_3 = {
    .reason = REASON_EXIT, .exit_code = 3, .started = true};
static const struct restart_failure segv = {
    .reason = REASON_SIGNAL, .exit_code = 139, .signal = 11, .started = true};
static const struct restart_failure hang = {
    .reason = REASON_HANG, .exit_code = EXIT_CODE_HANG, .started = true};

/* A history of `n` restarts of a class, one every 1000 ms from 1000 on. */
static struct restart_history made(enum restart_class class, uint32_t n)
{
    static struct restart_past past[128];
    CHECK(n <= ARRAY_LEN(past));
    for (uint32_t i = 0; i < n; i++)
        past[i] = (struct restart_past){.at_ms = 1000 * (i + 1), .class = class, .times = 1};
    return (struct restart_history){.past = past, .n = n, .same_in_row = 1};
}

TEST(the_whole_domain_of_restart_decisions)
{
    for (uint32_t max = 0; max <= 5; max++)
        for (uint32_t n = 0; n <= 6; n++)
            for (unsigned reason = 0; reason < REASONS_N; reason++)
                for (uint32_t row = 0; row <= 40; row++)
                    for (int bits = 0; bits < 8; bits++) {
                        struct restart_policy policy = policy_of(max);
                        struct restart_history history = made(RESTART_EXIT, n);
                        history.same_in_row = row;
                        history.stop_requested = bits & 1;
                        struct restart_failure failure = {
                            .reason = reason, .exit_code = 9, .started = bits & 2};
                        uint32_t jitter = bits & 4 ? UINT32_MAX : 0;
                        struct restart_verdict v =
                            restart_decide(&policy, &history, &failure, 100000, jitter);
                        bool again = n < max && reason != REASON_SPAWN &&
                                     reason != REASON_TIMEOUT && !history.stop_requested;
                        CHECK_INT(v.again, ==, again);
                        CHECK_INT(v.counted, ==, n);
                        CHECK(v.why && v.why[0]);
                        CHECK(v.class < RESTART_CLASSES_N && v.class != RESTART_SAME);
                        CHECK(v.after_ms <= 37500);
                        if (!again)
                            CHECK_INT(v.after_ms, ==, 0);
                    }
}

TEST(the_same_failure_again_waits_longer_each_time_up_to_a_limit)
{
    struct restart_policy policy = policy_of(1000);
    uint64_t before = 0;
    for (uint32_t row = 1; row < 100; row++) {
        struct restart_history history = {.same_in_row = row};
        struct restart_verdict v = restart_decide(&policy, &history, &exit_3, 0, 0);
        CHECK(v.after_ms >= before);
        CHECK_INT(v.after_ms == 0, ==, row == 1);
        before = v.after_ms;
    }
    CHECK_INT(before, ==, 30000);
}

TEST(jitter_adds_up_to_a_quarter_and_never_to_a_first_failure)
{
    struct restart_policy policy = policy_of(1000);
    for (uint32_t row = 1; row < 20; row++) {
        struct restart_history history = {.same_in_row = row};
        uint64_t least = restart_decide(&policy, &history, &exit_3, 0, 0).after_ms, before = least;
        for (uint64_t jitter = 0; jitter <= UINT32_MAX; jitter += 1u << 24) {
            uint64_t ms = restart_decide(&policy, &history, &exit_3, 0, (uint32_t)jitter).after_ms;
            CHECK(ms >= before && ms <= least + least / 4);
            before = ms;
        }
        CHECK_INT(before > least, ==, row > 1);
    }
}

TEST(a_failure_has_the_class_of_what_failed)
{
    struct restart_policy policy = policy_of(1);
    struct restart_history history = {.same_in_row = 1};
    for (unsigned reason = 0; reason < REASONS_N; reason++)
        for (int started = 0; started <= 1; started++) {
            struct restart_failure f = {.reason = reason, .exit_code = 1, .started = started};
            enum restart_class want = reason == REASON_HANG                     ? RESTART_HANG
                                      : reason == REASON_RENDEZVOUS || !started ? RESTART_STARTUP
                                      : reason == REASON_SIGNAL                 ? RESTART_SIGNAL
                                                                                : RESTART_EXIT;
            CHECK_INT(restart_decide(&policy, &history, &f, 0, 0).class, ==, want);
        }
}

TEST(each_class_has_its_own_limit)
{
    static const struct {
        const char *limits;
        struct restart_failure failure;
        enum restart_class class;
    } CASES[] = {
        {"startup:2", {.reason = REASON_EXIT, .exit_code = 3}, RESTART_STARTUP},
        {"signal:2", {REASON_SIGNAL, 139, 11, true, false}, RESTART_SIGNAL},
        {"hang:2", {REASON_HANG, EXIT_CODE_HANG, 0, true, false}, RESTART_HANG},
        {"exit:2", {REASON_EXIT, 3, 0, true, false}, RESTART_EXIT},
    };
    for (size_t c = 0; c < ARRAY_LEN(CASES); c++) {
        struct restart_policy policy = policy_of(100);
        CHECK_INT(limits_parse(&policy.limits, CASES[c].limits), ==, 0);
        for (unsigned class = 0; class < RESTART_SAME; class ++)
            for (uint32_t n = 0; n <= 4; n++) {
                struct restart_history history = made(class, n);
                struct restart_verdict v =
                    restart_decide(&policy, &history, &CASES[c].failure, 100000, 0);
                CHECK_INT(v.again, ==, class != CASES[c].class || n < 2);
                if (!v.again)
                    CHECK_HAS(v.why, "--restart-limits");
            }
    }
}

TEST(no_restart_follows_while_a_gpu_is_out_but_the_job_may_shrink)
{
    for (uint32_t max = 0; max < 3; max++) {
        struct restart_policy policy = policy_of(max);
        struct restart_history history = {.same_in_row = 1};
        struct restart_failure f = {.reason = REASON_SIGNAL, .signal = 6, .gpu_out = true};
        struct restart_verdict v = restart_decide(&policy, &history, &f, 0, 0);
        CHECK(!v.again);
        CHECK(v.spent);
        CHECK_HAS(v.why, "quarantine");
        history.stop_requested = true;
        v = restart_decide(&policy, &history, &f, 0, 0);
        CHECK(!v.again && !v.spent);
        CHECK_HAS(v.why, "asked to end");
    }
}

TEST(the_same_failure_in_a_row_has_a_limit_too)
{
    struct restart_policy policy = policy_of(100);
    CHECK_INT(limits_parse(&policy.limits, "same:3"), ==, 0);
    for (uint32_t row = 1; row < 10; row++) {
        struct restart_history history = {.same_in_row = row};
        CHECK_INT(restart_decide(&policy, &history, &exit_3, 0, 0).again, ==, row <= 3);
    }
}

TEST(restarts_older_than_the_window_no_longer_count)
{
    struct restart_policy policy = policy_of(3);
    policy.window_ms = 10000;
    for (uint64_t now = 5000; now < 20000; now += 500) {
        struct restart_history history = made(RESTART_EXIT, 5);
        uint32_t want = 0;
        for (uint64_t at = 1000; at <= 5000; at += 1000)
            want += now - at < 10000;
        struct restart_verdict v = restart_decide(&policy, &history, &exit_3, now, 0);
        CHECK_INT(v.counted, ==, want);
        CHECK_INT(v.again, ==, want < 3);
    }
}

TEST(exit_codes_and_signals_decide_when_they_are_listed)
{
    struct restart_policy policy = policy_of(9);
    struct restart_history history = {.same_in_row = 1};
    CHECK_INT(codeset_parse(&policy.not_on, "93,126,SIGSEGV"), ==, 0);
    for (int code = 1; code < 256; code++) {
        struct restart_failure f = {.reason = REASON_EXIT, .exit_code = code, .started = true};
        CHECK_INT(restart_decide(&policy, &history, &f, 0, 0).again, ==, code != 93 && code != 126);
    }
    CHECK(!restart_decide(&policy, &history, &segv, 0, 0).again);
    CHECK_HAS(restart_decide(&policy, &history, &segv, 0, 0).why, "--no-restart-on");
    CHECK(restart_decide(&policy, &history, &hang, 0, 0).again);

    CHECK_INT(codeset_parse(&policy.on, "3,hang,SIGSEGV"), ==, 0);
    CHECK(restart_decide(&policy, &history, &exit_3, 0, 0).again);
    CHECK(restart_decide(&policy, &history, &hang, 0, 0).again);
    CHECK(!restart_decide(&policy, &history, &segv, 0, 0).again); /* on both lists */
    struct restart_failure f = {.reason = REASON_EXIT, .exit_code = 4, .started = true};
    CHECK_HAS(restart_decide(&policy, &history, &f, 0, 0).why, "(--restart-on)");
    struct restart_failure late = {.reason = REASON_RENDEZVOUS, .exit_code = 124};
    CHECK(restart_decide(&policy, &history, &late, 0, 0).again);
}

TEST(by_default_a_job_can_ask_not_to_be_started_again)
{
    struct job_spec spec;
    CHECK_INT(spec_init(&spec), ==, 0);
    spec.max_restarts = 5;
    struct restart_policy policy = restart_policy_of(&spec);
    struct restart_history history = {.same_in_row = 1};
    for (int code = 1; code < 256; code++) {
        struct restart_failure f = {.reason = REASON_EXIT, .exit_code = code, .started = true};
        bool final = code == LAUNCH_EXIT_FINAL || code == 126 || code == 127;
        CHECK_INT(restart_decide(&policy, &history, &f, 0, 0).again, ==, !final);
    }
    spec_finish(&spec);
}

TEST(the_history_forgets_what_can_no_longer_count)
{
    struct restart_policy policy = policy_of(9);
    struct restart_history history = {0};
    for (uint64_t now = 0; now < 1000; now++)
        CHECK_INT(restart_remember(&history, &policy, now % 4 ? RESTART_EXIT : RESTART_HANG, now),
                  ==, 0);
    CHECK_INT(history.n, ==, 2); /* they count for ever, and take no more room for that */
    CHECK_INT(restart_decide(&policy, &history, &exit_3, 1000, 0).counted, ==, 1000);
    policy.max_restarts = 2000;
    policy.limits.of[RESTART_EXIT] = 750;
    policy.limits.of[RESTART_HANG] = 251;
    CHECK(!restart_decide(&policy, &history, &exit_3, 1000, 0).again);
    CHECK(restart_decide(&policy, &history, &hang, 1000, 0).again);
    restart_refill(&history);
    CHECK_INT(history.n, ==, 0);
    policy.window_ms = 10;
    for (uint64_t now = 1000; now < 3000; now++)
        CHECK_INT(restart_remember(&history, &policy, RESTART_SIGNAL, now), ==, 0);
    CHECK_INT(history.n, ==, 10);
    CHECK_INT(history.past[0].at_ms, ==, 2990);
    CHECK_INT(history.past[9].class, ==, RESTART_SIGNAL);
    restart_finish(&history);
    restart_finish(&history);
}

TEST(what_only_lacks_a_restart_is_spent_and_nothing_else_is)
{
    static const struct {
        uint32_t max, made;
        enum reason reason;
        int exit_code;
        bool stop, spent;
    } rows[] = {
        {0, 0, REASON_EXIT, 3, false, true},     {2, 2, REASON_SIGNAL, 137, false, true},
        {2, 1, REASON_EXIT, 3, false, false}, /* one is left */
        {0, 0, REASON_EXIT, 93, false, false},   {2, 2, REASON_EXIT, 93, false, false},
        {0, 0, REASON_SPAWN, 126, false, false}, {2, 2, REASON_EXIT, 3, true, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct restart_policy policy = policy_of(rows[i].max);
        CHECK_INT(codeset_parse(&policy.not_on, "93"), ==, 0);
        struct restart_history history = made(RESTART_EXIT, rows[i].made);
        history.stop_requested = rows[i].stop;
        struct restart_failure failure = {
            .reason = rows[i].reason, .exit_code = rows[i].exit_code, .started = true};
        CHECK_INT(restart_decide(&policy, &history, &failure, 100000, 0).spent, ==, rows[i].spent);
    }
}
