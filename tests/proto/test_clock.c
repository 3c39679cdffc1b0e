/* SPDX-License-Identifier: MIT */
/* proto/clock.h: deadlines lie ahead, whatever the number. */
#include "../../proto/clock.h"
#include "../harness.h"

TEST(time_never_goes_back)
{
    uint64_t last = clock_now_ns();
    for (int i = 0; i < 10000; i++) {
        uint64_t now = clock_now_ns();
        CHECK(now >= last);
        last = now;
    }
}

TEST(no_milliseconds_mean_no_deadline)
{
    CHECK(clock_deadline_ns(0) == CLOCK_NEVER);
}

TEST(a_deadline_lies_ahead_by_what_was_asked)
{
    uint64_t before = clock_now_ns(), deadline = clock_deadline_ns(1500);
    CHECK(deadline >= before + 1500 * NS_PER_MS);
    CHECK(deadline <= clock_now_ns() + 1500 * NS_PER_MS);
}

TEST(a_deadline_beyond_the_clock_never_comes)
{
    for (int bit = 0; bit < 64; bit++)
        CHECK(clock_deadline_ns(1ull << bit) > clock_now_ns());
    CHECK(clock_deadline_ns(UINT64_MAX) == CLOCK_NEVER);
}
