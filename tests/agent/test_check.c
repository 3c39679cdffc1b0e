/* SPDX-License-Identifier: MIT */
#include "../../agent/bench/check.h"
#include "../harness.h"

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
