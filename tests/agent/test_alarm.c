/* SPDX-License-Identifier: MIT */
/* Deadlines on a real loop: never early, never twice, no timer without one. */
#include "../../agent/alarm.h"
#include "../harness.h"

static uv_loop_t loop;
static struct alarm alarm_;
static struct deadline deadlines[3];
static uint64_t due[3]; /* when each may pass at the earliest */
static unsigned passed[3], rounds, closed;

static void on_alarm(struct alarm *a)
{
    rounds++;
    for (int i = 0; i < 3; i++)
        if (deadline_passed(a, &deadlines[i])) {
            CHECK_INT(uv_now(&loop), >=, due[i]);
            passed[i]++;
        }
}

static void on_closed(struct alarm *a)
{
    (void)a;
    closed++;
}

static void setup(void)
{
    uv_loop_init(&loop);
    alarm_init(&alarm_, &loop, on_alarm);
}

static void teardown(void)
{
    alarm_finish(&alarm_, on_closed);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(closed, ==, 1);
    CHECK_INT(uv_loop_close(&loop), ==, 0);
}

static void set(int i, unsigned ms)
{
    due[i] = uv_now(&loop) + ms;
    deadline_in(&alarm_, &deadlines[i], ms);
}

TEST(every_deadline_passes_once_and_not_too_early)
{
    setup();
    set(0, 12);
    set(1, 1);
    set(2, 6);
    uv_run(&loop, UV_RUN_DEFAULT); /* ends when no timer is left */
    for (int i = 0; i < 3; i++)
        CHECK_INT(passed[i], ==, 1);
    teardown();
}

TEST(the_timer_runs_only_while_a_deadline_is_set)
{
    setup();
    CHECK(!uv_loop_alive(&loop));
    deadline_in(&alarm_, &deadlines[0], 60000);
    deadline_in(&alarm_, &deadlines[1], 60000);
    deadline_clear(&alarm_, &deadlines[0]);
    CHECK(uv_loop_alive(&loop));
    deadline_clear(&alarm_, &deadlines[1]);
    deadline_clear(&alarm_, &deadlines[1]);
    CHECK(!uv_loop_alive(&loop));
    teardown();
    CHECK_INT(rounds, ==, 0);
}

TEST(a_moved_deadline_passes_at_its_last_time)
{
    setup();
    set(0, 1);
    set(1, 5);
    set(0, 10); /* later */
    set(2, 60000);
    set(2, 0); /* earlier: else the test would take a minute */
    uv_run(&loop, UV_RUN_DEFAULT);
    for (int i = 0; i < 3; i++)
        CHECK_INT(passed[i], ==, 1);
    teardown();
}
