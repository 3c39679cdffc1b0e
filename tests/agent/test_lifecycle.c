/* SPDX-License-Identifier: MIT */
#include "../../agent/lifecycle.h"
#include "../harness.h"

TEST(every_state_and_event_has_a_name_of_its_own)
{
    for (unsigned a = 0; a < JOB_STATES_N; a++)
        for (unsigned b = 0; b < a; b++)
            CHECK(strcmp(lifecycle_state_name(a), lifecycle_state_name(b)) != 0);
    for (unsigned a = 0; a < JOB_EVENTS_N; a++)
        for (unsigned b = 0; b < a; b++)
            CHECK(strcmp(lifecycle_event_name(a), lifecycle_event_name(b)) != 0);
    CHECK_STR(lifecycle_state_name(JOB_STATES_N), "?");
    CHECK_STR(lifecycle_event_name(JOB_EVENTS_N), "?");
}

TEST(every_pair_leads_to_a_state_or_is_marked)
{
    for (unsigned s = 0; s < JOB_STATES_N; s++)
        for (unsigned e = 0; e < JOB_EVENTS_N; e++) {
            unsigned next = lifecycle_next(s, e);
            CHECK(next < JOB_STATES_N || next == JOB_STAYS || next == JOB_BUG);
        }
}

TEST(a_request_to_end_is_understood_in_every_state)
{
    for (unsigned s = 0; s < JOB_STATES_N; s++) {
        CHECK_INT(lifecycle_next(s, EVENT_STOP), !=, JOB_BUG);
        CHECK_INT(lifecycle_next(s, EVENT_NOW), !=, JOB_BUG);
    }
}

/* Walks every sequence of events up to a depth: nothing but a retry leads back to LAUNCH, and after "now"
 * the job can only go towards its end. */
static void walk(unsigned state, unsigned depth, bool hurried)
{
    if (depth == 0)
        return;
    for (unsigned e = 0; e < JOB_EVENTS_N; e++) {
        unsigned next = lifecycle_next(state, e);
        if (next >= JOB_STATES_N)
            continue;
        CHECK(next != JOB_LAUNCH || (state == JOB_RESTART && e == EVENT_DEADLINE));
        CHECK(state != JOB_DONE);
        bool now = hurried || e == EVENT_NOW;
        if (now)
            CHECK(next != JOB_RUN && next != JOB_RENDEZVOUS && next != JOB_HEAL &&
                  next != JOB_STOP);
        walk(next, depth - 1, now && next != JOB_RESTART);
    }
}

TEST(no_sequence_of_events_runs_a_group_that_was_told_to_end_now)
{
    walk(JOB_LAUNCH, 7, false);
}

TEST(every_state_can_reach_the_end)
{
    for (unsigned s = 0; s < JOB_STATES_N; s++) {
        unsigned state = s;
        static const enum job_event road[] = {EVENT_SPAWNED, EVENT_NOW,      EVENT_DEADLINE,
                                              EVENT_GIVE_UP, EVENT_DEADLINE, EVENT_STOP};
        for (unsigned i = 0; state != JOB_DONE && i < sizeof road / sizeof road[0]; i++) {
            unsigned next = lifecycle_next(state, road[i]);
            if (next < JOB_STATES_N)
                state = next;
        }
        CHECK_INT(state, ==, JOB_DONE);
    }
}

TEST(healing_is_reached_from_a_running_group_only_and_leads_back_by_a_rendezvous_alone)
{
    for (unsigned s = 0; s < JOB_STATES_N; s++)
        for (unsigned e = 0; e < JOB_EVENTS_N; e++) {
            unsigned next = lifecycle_next(s, e);
            if (next == JOB_HEAL)
                CHECK((s == JOB_RUN || s == JOB_HEAL) && e == EVENT_HEAL);
            if (s == JOB_HEAL && next == JOB_RUN)
                CHECK_INT(e, ==, EVENT_JOINED);
        }
}

TEST(a_restart_that_is_asked_for_ends_the_group_first_and_only_where_one_runs)
{
    for (unsigned s = 0; s < JOB_STATES_N; s++) {
        bool runs = s == JOB_RUN || s == JOB_RENDEZVOUS || s == JOB_HEAL;
        CHECK_INT(lifecycle_next(s, EVENT_RESTART), ==, runs ? JOB_STOP : JOB_BUG);
    }
}
