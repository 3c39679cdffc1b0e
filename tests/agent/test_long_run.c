/* SPDX-License-Identifier: MIT */
/* A job of which a rank is lost every 100 ms, for a day of a clock that is a number here: the states go round, each decision is the one
 * that is due, and nothing grows. tests/torture/soak.py does it with processes, for hours. */
#include "../../agent/lifecycle.h"
#include "../../agent/restart.h"
#include "../../proto/base.h"
#include "../harness.h"

#include <malloc.h>

#define CRASH_EVERY_MS 100u
#define DAY_MS (24u * 3600u * 1000u)

struct day {
    struct lifecycle life;
    struct restart_policy policy;
    struct restart_history history;
    uint64_t now_ms;
    uint32_t restarts, last_code;
    bool gave_up;
};

/* Codes differ from one attempt to the next, so that nothing is waited for; every 20th is a signal. */
static struct restart_failure failure_of(const struct day *day)
{
    bool killed = day->restarts % 20 == 19;
    return (struct restart_failure){.reason = killed ? REASON_SIGNAL : REASON_EXIT,
                                    .exit_code = killed ? 137 : 1 + (int)(day->restarts % 2),
                                    .signal = killed ? 9 : 0,
                                    .started = true};
}

static void decide(struct day *day)
{
    struct restart_failure failure = failure_of(day);
    day->history.same_in_row = 1;
    struct restart_verdict v =
        restart_decide(&day->policy, &day->history, &failure, day->now_ms, 0);
    day->gave_up = !v.again;
    if (v.again) {
        CHECK_INT(v.after_ms, ==, 0);
        CHECK_INT(restart_remember(&day->history, &day->policy, v.class, day->now_ms), ==, 0);
        day->restarts++;
    }
    lifecycle_post(&day->life, v.again ? EVENT_RETRY : EVENT_GIVE_UP);
}

static void on_leave(void *user, enum job_state next, enum job_event why)
{
    (void)user, (void)next, (void)why;
}

static void on_bug(void *user, enum job_event event)
{
    (void)user;
    test_fail(__FILE__, __LINE__, "no edge for %s", lifecycle_event_name(event));
}

/* As job.c has it, without processes: what is entered posts what comes of it. */
static void on_enter(void *user)
{
    struct day *day = user;
    switch (day->life.state) {
    case JOB_LAUNCH:
        lifecycle_post(&day->life, EVENT_SPAWNED);
        break;
    case JOB_RUN:
        day->now_ms += CRASH_EVERY_MS;
        break;
    case JOB_STOP:
        lifecycle_post(&day->life, EVENT_ENDED);
        break;
    case JOB_SWEEP:
        decide(day);
        break;
    case JOB_RESTART:
        lifecycle_post(&day->life, EVENT_DEADLINE);
        break;
    default:
        break;
    }
}

/* Returns how many restarts there were until the day, or the job, was over. */
static uint32_t spend(struct day *day)
{
    size_t room = 0, heap = 0;
    day->life = (struct lifecycle){
        .on_leave = on_leave, .on_enter = on_enter, .on_bug = on_bug, .user = day};
    lifecycle_post(&day->life, EVENT_SPAWNED);
    while (day->now_ms < DAY_MS && day->life.state == JOB_RUN) {
        lifecycle_post(&day->life, EVENT_RANK_LOST);
        CHECK_INT(day->life.events_n, ==, 0);
        if (day->now_ms == DAY_MS / 24) { /* by then all is there that will ever be */
            room = day->history.room;
            heap = mallinfo2().uordblks;
        }
    }
    if (!day->gave_up) {
        CHECK_INT(day->history.room, ==, room);
        CHECK_INT(mallinfo2().uordblks, ==, heap);
    }
    restart_finish(&day->history);
    return day->restarts;
}

static struct restart_policy policy_of(uint32_t max, uint64_t window_ms)
{
    struct restart_policy policy = {.max_restarts = max, .window_ms = window_ms};
    CHECK_INT(limits_parse(&policy.limits, "none"), ==, 0);
    CHECK_INT(codeset_parse(&policy.on, "all"), ==, 0);
    return policy;
}

TEST(a_day_of_crashes_every_100_ms_goes_round_and_leaves_no_trace)
{
    struct day day = {.policy = policy_of(1000000, 0)};
    CHECK_INT(spend(&day), ==, DAY_MS / CRASH_EVERY_MS - 1);
    CHECK_INT(day.life.state, ==, JOB_RUN);
}

TEST(so_does_one_where_old_crashes_are_forgotten)
{
    struct day day = {.policy = policy_of(601, 60000)};
    CHECK_INT(spend(&day), ==, DAY_MS / CRASH_EVERY_MS - 1);
    CHECK_INT(day.life.state, ==, JOB_RUN);
}

TEST(a_day_with_too_few_restarts_ends_when_they_are_spent)
{
    struct day day = {.policy = policy_of(70000, 0)};
    CHECK_INT(spend(&day), ==, 70000);
    CHECK_INT(day.life.state, ==, JOB_DONE);
    CHECK_INT(day.now_ms, ==, 70001 * CRASH_EVERY_MS);
}
