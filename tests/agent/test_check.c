/* SPDX-License-Identifier: MIT */
#include "../../agent/bench/check.h"
#include "../../proto/status.h"
#include "../harness.h"

#include <signal.h>

static struct check_sum sums[3];

static void take(const char *line)
{
    check_take_line(sums, 3, line, strlen(line));
}

static bool none_told(void)
{
    return !sums[0].told && !sums[1].told && !sums[2].told;
}

TEST(only_a_whole_line_of_a_rank_of_this_job_tells_a_sum)
{
    static const char *const lines[] = {
        "rank 3 of 3: sum = 3",
        "rank 0 of 4: sum = 3",
        "rank 0 of 3: sum = 3 apples",
        "rank 0 of 3: sum =",
        "rank -1 of 3: sum = 3",
        " rank 0 of 3: sum = 3x",
        "rank 0 of 3: sum = 99999999999999999999999999",
        "",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        take(lines[i]);
        if (!none_told())
            test_fail(__FILE__, __LINE__, "\"%s\" told a sum", lines[i]);
    }
    check_take_line(sums, 3, "rank 0 of 3: sum = 3\0\0", 22);
    CHECK(none_told());
    take("rank 2 of 3: sum = -7");
    CHECK(sums[2].told);
    CHECK_INT(sums[2].sum, ==, -7);
}

TEST(a_run_passes_only_with_every_sum_right_and_a_good_end)
{
    CHECK_INT(check_right_sum(3), ==, 3);
    CHECK_INT(check_right_sum(1), ==, 0);
    take("rank 0 of 3: sum = 3");
    take("rank 1 of 3: sum = 3");
    CHECK_INT(check_outcome(sums, 3, 0, false), ==, CHECK_FAILS);
    CHECK_INT(check_outcome(sums, 3, 123, true), ==, CHECK_HANGS);
    take("rank 2 of 3: sum = 3");
    CHECK_INT(check_outcome(sums, 3, 0, false), ==, CHECK_PASSES);
    CHECK_INT(check_outcome(sums, 3, 1, false), ==, CHECK_FAILS);
    CHECK_INT(check_outcome(sums, 3, 0, true), ==, CHECK_HANGS);
    take("rank 2 of 3: sum = 4");
    CHECK_INT(check_outcome(sums, 3, 0, false), ==, CHECK_WRONG);
    CHECK_INT(check_outcome(sums, 3, 123, true), ==, CHECK_WRONG);
}

TEST(each_rung_takes_one_thing_more_and_says_what_that_means)
{
    CHECK(!CHECK_RUNGS[0].variable);
    for (size_t i = 1; i < CHECK_RUNGS_N; i++)
        CHECK(CHECK_RUNGS[i].variable && CHECK_RUNGS[i].value && CHECK_RUNGS[i].meaning &&
              CHECK_RUNGS[i].fix);
}

TEST(codes_of_a_launch_that_started_nothing_or_was_ended_are_passed_on)
{
    static const int passed[] = {
        EXIT_CODE_USAGE,     EXIT_CODE_BUSY, EXIT_CODE_OURS, EXIT_CODE_NOT_EXECUTABLE,
        EXIT_CODE_NOT_FOUND, 128 + SIGHUP,   128 + SIGINT,   128 + SIGQUIT,
        128 + SIGTERM};
    for (int code = 0; code < 256; code++) {
        int expected = -1;
        for (size_t i = 0; i < ARRAY_LEN(passed); i++)
            expected = code == passed[i] ? code : expected;
        CHECK_INT(child_passed_on(&(struct child_end){.code = code}), ==, expected);
        /* It was late, and we ended it; or somebody asked us, whatever came of it. */
        CHECK_INT(child_passed_on(&(struct child_end){.code = code, .timed_out = true}), ==, -1);
        CHECK_INT(child_passed_on(&(struct child_end){.code = code, .signal = SIGINT}), ==, 130);
    }
}

TEST(a_launch_that_waits_for_gpus_has_that_time_beside_its_own)
{
    struct trial_request request = {.limit_ms = 1000};
    unsigned without = trial_limit_ms(&request);
    CHECK_INT(without, >, 4000);
    request.wait_ms = 60000;
    CHECK_INT(trial_limit_ms(&request), ==, without + 60000);
    request.wait_ms = SPEC_WAIT_FOR_EVER;
    CHECK_INT(trial_limit_ms(&request), ==, 0);
    for (uint64_t wait = 1; wait; wait <<= 1) { /* too long is for ever, never short */
        request = (struct trial_request){.limit_ms = UINT32_MAX, .wait_ms = wait};
        unsigned limit = trial_limit_ms(&request);
        CHECK_INT(limit == 0 || limit > wait, ==, 1);
    }
}
