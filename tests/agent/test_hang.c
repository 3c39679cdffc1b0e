/* SPDX-License-Identifier: MIT */
/* agent/hang.[ch]: time is a number here, so nothing waits. */
#include "../../agent/hang.h"
#include "../harness.h"

#include <stdio.h>

#define MAX 4
#define TIMEOUT_NS (8 * NS_PER_S)
#define START (1000 * NS_PER_S)

static struct hang h;
static struct hang_rank ranks[MAX];
static struct hang_facts facts[MAX];
static uint64_t now;

static void begin(uint32_t n)
{
    now = START;
    hang_begin(&h, ranks, n, TIMEOUT_NS, now);
    for (uint32_t i = 0; i < MAX; i++)
        facts[i] = (struct hang_facts){.alive = true};
}

/* One look, a second later. */
static void look(void)
{
    now += NS_PER_S;
    hang_look(&h, now);
    for (uint32_t i = 0; i < h.n; i++)
        hang_note(&h, i, &facts[i]);
}

static void look_for(unsigned seconds)
{
    while (seconds-- > 0)
        look();
}

static struct hang_verdict judge(void)
{
    CHECK(hang_any(&h));
    return hang_judge(&h, NULL);
}

TEST(a_rank_hangs_after_the_timeout_and_not_before)
{
    begin(1);
    look_for(7);
    CHECK(!hang_any(&h));
    look();
    CHECK(hang_hangs(&h, 0));
    CHECK_INT(judge().why, ==, HANG_SILENT);
}

TEST(every_sign_counts_for_a_rank_that_gives_no_explicit_one)
{
    uint64_t *const signs[] = {&facts[0].heartbeat, &facts[0].entered, &facts[0].finished,
                               &facts[0].messages,  &facts[0].output,  &facts[0].step,
                               &facts[0].watchdogs};
    for (size_t s = 0; s < sizeof signs / sizeof *signs; s++) {
        begin(1);
        for (unsigned i = 0; i < 5; i++) {
            look_for(7);
            ++*signs[s];
        }
        look();
        CHECK(!hang_any(&h));
        look_for(8);
        CHECK(hang_any(&h));
    }
    begin(1);
    look_for(7);
    facts[0].stage = STAGE_JOINED;
    look_for(7);
    CHECK(!hang_any(&h));
}

TEST(a_rank_that_tells_steps_or_heartbeats_is_not_saved_by_its_output)
{
    for (int watchdog = 0; watchdog <= 1; watchdog++) {
        begin(1);
        ++*(watchdog ? &facts[0].watchdogs : &facts[0].step);
        look();
        for (unsigned i = 0; i < 8; i++) {
            CHECK(!hang_any(&h));
            facts[0].output++;
            facts[0].messages++;
            look();
        }
        CHECK(hang_any(&h));
    }
}

TEST(a_counter_that_runs_backwards_is_a_sign_too)
{
    begin(1);
    facts[0].step = 9;
    look_for(7);
    facts[0].step = 1; /* a new epoch */
    look_for(7);
    CHECK(!hang_any(&h));
}

TEST(a_rank_that_never_wrote_anything_is_as_silent_as_all_together)
{
    begin(3);
    for (unsigned i = 0; i < 20; i++) {
        facts[0].output++;
        look();
        CHECK(!hang_any(&h));
    }
    look_for(8);
    for (uint32_t i = 0; i < 3; i++)
        CHECK(hang_hangs(&h, i));
}

TEST(a_rank_that_wrote_and_fell_silent_hangs_while_others_write)
{
    begin(3);
    facts[1].output++;
    for (unsigned i = 0; i < 9; i++) {
        facts[0].output++;
        look();
    }
    CHECK(hang_hangs(&h, 1));
    CHECK(!hang_hangs(&h, 0) && !hang_hangs(&h, 2));
    CHECK_INT(judge().rank, ==, 1);
}

TEST(a_rank_that_has_ended_never_hangs_and_is_never_named)
{
    begin(2);
    look();
    facts[1] = (struct hang_facts){.ended_well = true};
    look_for(8);
    CHECK(!hang_any(&h)); /* its end was a sign for the one that never wrote */
    look();
    CHECK(hang_hangs(&h, 0) && !hang_hangs(&h, 1));
    CHECK_INT(hang_silence_ns(&h, 1), ==, 0);
    CHECK_INT(judge().rank, ==, 0);
    facts[0].alive = false;
    look_for(50);
    CHECK(!hang_any(&h));
}

TEST(a_gap_between_two_looks_starts_the_time_again)
{
    begin(2);
    look_for(7);
    now += 3600 * NS_PER_S; /* stopped, suspended */
    look();
    CHECK(!hang_any(&h));
    look_for(7);
    CHECK(!hang_any(&h));
    look();
    CHECK(hang_any(&h));
    hang_again(&h, now);
    CHECK(!hang_any(&h));
}

TEST(a_busy_machine_that_delays_looks_a_little_starts_nothing_again)
{
    begin(1);
    for (unsigned i = 0; i < 2; i++) {
        now += TIMEOUT_NS / 2 - NS_PER_S;
        look();
    }
    CHECK(hang_any(&h));
}

TEST(the_period_is_a_part_of_the_timeout_and_bounded)
{
    CHECK_INT(hang_period_ms(1), ==, 5);
    CHECK_INT(hang_period_ms(800), ==, 100);
    CHECK_INT(hang_period_ms(3600000), ==, 1000);
}

/* ---- who is named ---- */

TEST(the_lowest_step_is_named_and_not_the_first_to_time_out)
{
    begin(3);
    for (uint32_t i = 0; i < 3; i++)
        facts[i].step = 5;
    look();
    facts[0].step = facts[2].step = 6;
    facts[1].heartbeat++; /* alive longer than the others */
    look();
    facts[1].heartbeat++;
    look_for(8);
    CHECK(hang_hangs(&h, 0));
    CHECK(hang_silence_ns(&h, 1) < hang_silence_ns(&h, 0));
    struct hang_verdict v = judge();
    CHECK_INT(v.rank, ==, 1);
    CHECK_INT(v.why, ==, HANG_STEP);
    char text[300];
    hang_describe(&h, &v, text, sizeof text);
    CHECK_HAS(text, "step 5, others have reached 6");
}

TEST(a_straggler_that_still_lives_is_named_when_those_who_wait_for_it_time_out)
{
    begin(2);
    facts[0].step = 7;
    facts[1].step = 3;
    look();
    for (unsigned i = 0; i < 8; i++) {
        facts[1].watchdogs++;
        look();
    }
    CHECK(hang_hangs(&h, 0) && !hang_hangs(&h, 1));
    struct hang_verdict v = judge();
    CHECK_INT(v.rank, ==, 1);
    char text[300];
    hang_describe(&h, &v, text, sizeof text);
    CHECK_HAS(text, "no sign of life of another for 8.0 s");
}

TEST(a_rank_that_lives_without_steps_is_not_behind_those_with_steps)
{
    begin(2);
    facts[0].step = 7;
    look();
    for (unsigned i = 0; i < 8; i++) {
        facts[1].output++;
        look();
    }
    CHECK_INT(judge().rank, ==, 0);
}

TEST(a_rank_that_never_joined_is_named_before_all_that_did)
{
    begin(4);
    for (uint32_t i = 0; i < 4; i++)
        facts[i].stage = i == 2 ? STAGE_NONE : STAGE_JOINED;
    look_for(9);
    struct hang_verdict v = judge();
    CHECK_INT(v.rank, ==, 2);
    CHECK_INT(v.why, ==, HANG_NOT_JOINED);
    char text[300];
    hang_describe(&h, &v, text, sizeof text);
    CHECK_HAS(text, "launch_join()");
}

TEST(collectives_tell_apart_ranks_at_the_same_step)
{
    struct hang_verdict v;
    char text[300];
    begin(3);
    for (uint32_t i = 0; i < 3; i++)
        facts[i].entered = facts[i].finished = facts[i].step = 4;
    facts[0].entered = facts[2].entered = 5;
    look_for(9);
    v = judge();
    CHECK_INT(v.rank, ==, 1);
    CHECK_INT(v.why, ==, HANG_COLLECTIVE);
    hang_describe(&h, &v, text, sizeof text);
    CHECK_HAS(text, "before collective 5");
    begin(2);
    facts[0].entered = facts[1].entered = 5;
    facts[0].finished = 5;
    facts[1].finished = 4;
    look_for(9);
    v = judge();
    CHECK_INT(v.rank, ==, 1);
    hang_describe(&h, &v, text, sizeof text);
    CHECK_HAS(text, "in collective 5");
}

/* Of two that are equally far behind, as they hang both, the one that has been silent longer. */
TEST(of_two_that_are_behind_one_is_named_and_it_is_told_how_far_the_others_are)
{
    struct hang_verdict v;
    char text[300];
    begin(4);
    for (uint32_t i = 0; i < 4; i++)
        facts[i].entered = facts[i].finished = facts[i].step = 4;
    facts[0].entered = facts[1].entered = 5;
    look();
    facts[3].heartbeat++;
    look_for(9);
    v = judge();
    CHECK_INT(v.rank, ==, 2);
    CHECK_INT(v.why, ==, HANG_COLLECTIVE);
    hang_describe(&h, &v, text, sizeof text);
    CHECK_HAS(text, "before collective 5");
    facts[0].step = facts[1].step = 6;
    facts[2].step = 5;
    look_for(9);
    v = judge();
    CHECK_INT(v.rank, ==, 3);
    CHECK_INT(v.why, ==, HANG_STEP);
    hang_describe(&h, &v, text, sizeof text);
    CHECK_HAS(text, "step 4, others have reached 6");
}

/* As after a healing. */
TEST(a_step_that_is_there_when_watching_begins_is_one_that_was_told)
{
    begin(2);
    facts[0].step = 7;
    for (uint32_t i = 0; i < 2; i++)
        hang_seen(&h, i, &facts[i]);
    for (unsigned i = 0; i < 8; i++) {
        facts[0].output++;
        facts[1].output++;
        look();
    }
    CHECK(hang_hangs(&h, 0)); /* its output saves it no more */
    CHECK(!hang_hangs(&h, 1));
}

TEST(a_stopped_rank_is_named_before_everybody)
{
    begin(3);
    for (uint32_t i = 0; i < 3; i++)
        facts[i].step = i;
    look_for(9);
    static const bool stopped[MAX] = {[2] = true};
    struct hang_verdict v = hang_judge(&h, stopped);
    CHECK_INT(v.rank, ==, 2);
    CHECK_INT(v.why, ==, HANG_STOPPED);
    char text[300];
    hang_describe(&h, &v, text, sizeof text);
    CHECK_HAS(text, "stopped");
}

/* Every rank of three gets every combination of: ended, joined, step, calls, silence, stopped. */
struct seat {
    bool alive, joined, stopped;
    unsigned step, entered, early;
};

static struct seat seat_of(unsigned code)
{
    return (struct seat){.alive = code % 2,
                         .joined = code / 2 % 2,
                         .stopped = code / 4 % 2,
                         .step = code / 8 % 2,
                         .entered = code / 16 % 2,
                         .early = code / 32 % 2};
}

#define SEATS 64

/* Not better than: the same order, written as sentences. */
static bool is_behind_or_equal(const struct seat *a, const struct seat *b)
{
    if (a->stopped != b->stopped)
        return a->stopped;
    if (a->joined != b->joined)
        return !a->joined;
    if (a->step != b->step)
        return a->step < b->step;
    if (a->entered != b->entered)
        return a->entered < b->entered;
    return a->early >= b->early;
}

TEST(of_all_groups_of_three_the_one_furthest_behind_is_named)
{
    for (unsigned code = 0; code < SEATS * SEATS * SEATS; code++) {
        struct seat seat[3];
        bool stopped[3], any = false;
        begin(3);
        for (uint32_t i = 0; i < 3; i++) {
            seat[i] = seat_of(i == 0   ? code % SEATS
                              : i == 1 ? code / SEATS % SEATS
                                       : code / SEATS / SEATS);
            facts[i] = (struct hang_facts){.alive = seat[i].alive,
                                           .stage = seat[i].joined ? STAGE_RUNNING : STAGE_NONE,
                                           .step = seat[i].step,
                                           .entered = seat[i].entered,
                                           .output = 1};
            stopped[i] = seat[i].stopped;
            any |= seat[i].alive;
        }
        look();
        for (uint32_t i = 0; i < 3; i++)
            facts[i].heartbeat += !seat[i].early;
        look_for(9);
        CHECK_INT(hang_any(&h), ==, any);
        if (!any)
            continue;
        struct hang_verdict v = hang_judge(&h, stopped);
        CHECK(v.rank < 3 && seat[v.rank].alive && v.why < HANG_WHYS_N);
        CHECK_INT(v.why == HANG_STOPPED, ==, seat[v.rank].stopped);
        for (uint32_t i = 0; i < 3; i++)
            if (seat[i].alive)
                CHECK(is_behind_or_equal(&seat[v.rank], &seat[i]));
        char text[300];
        hang_describe(&h, &v, text, sizeof text);
        CHECK_HAS(text, "--hang-timeout is 8 s");
    }
}
