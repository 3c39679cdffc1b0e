/* SPDX-License-Identifier: MIT */
#include "restart.h"

#define BACKOFF_FIRST_MS 100u
#define BACKOFF_MAX_MS 30000u

static uint64_t backoff_ms(uint32_t same_in_row)
{
    if (same_in_row < 2)
        return 0;
    uint32_t doublings = same_in_row - 2;
    if (doublings >= 9) /* 100 ms << 9 is beyond the maximum */
        return BACKOFF_MAX_MS;
    uint64_t ms = (uint64_t)BACKOFF_FIRST_MS << doublings;
    return ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS;
}

struct restart_verdict restart_decide(const struct restart_policy *policy,
                                      const struct restart_history *history)
{
    if (history->stop_requested)
        return (struct restart_verdict){.why = "the job was asked to end"};
    if (history->reason == REASON_SPAWN)
        return (struct restart_verdict){.why = "what can't be started is not tried again"};
    if (policy->max_restarts == 0)
        return (struct restart_verdict){.why = "restarts are off (--max-restarts)"};
    if (history->restarts >= policy->max_restarts)
        return (struct restart_verdict){.why = "no restarts are left"};
    return (struct restart_verdict){
        .again = true,
        .after_ms = backoff_ms(history->same_in_row),
        .why = history->same_in_row > 1 ? "the same failure again" : "a restart is left",
    };
}
