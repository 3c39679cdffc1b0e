/* SPDX-License-Identifier: MIT */
#include "../../agent/restart.h"
#include "../harness.h"

TEST(the_whole_domain_of_restart_decisions)
{
    for (uint32_t max = 0; max <= 5; max++)
        for (uint32_t made = 0; made <= 6; made++)
            for (unsigned reason = 0; reason < REASONS_N; reason++)
                for (uint32_t row = 0; row <= 40; row++)
                    for (int stop = 0; stop <= 1; stop++) {
                        struct restart_policy policy = {.max_restarts = max};
                        struct restart_history history = {.restarts = made,
                                                          .reason = reason,
                                                          .same_in_row = row,
                                                          .stop_requested = stop};
                        struct restart_verdict v = restart_decide(&policy, &history);
                        bool again = made < max && reason != REASON_SPAWN && !stop;
                        CHECK_INT(v.again, ==, again);
                        CHECK(v.why && v.why[0]);
                        CHECK(v.after_ms <= 30000);
                        if (!again)
                            CHECK_INT(v.after_ms, ==, 0);
                    }
}

TEST(the_same_failure_again_waits_longer_each_time_up_to_a_limit)
{
    struct restart_policy policy = {.max_restarts = 1000};
    uint64_t before = 0;
    for (uint32_t row = 1; row < 100; row++) {
        struct restart_history history = {.reason = REASON_EXIT, .same_in_row = row};
        struct restart_verdict v = restart_decide(&policy, &history);
        CHECK(v.after_ms >= before);
        CHECK_INT(v.after_ms == 0, ==, row == 1);
        before = v.after_ms;
    }
    CHECK_INT(before, ==, 30000);
}
