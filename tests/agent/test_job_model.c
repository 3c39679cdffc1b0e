/* SPDX-License-Identifier: MIT */
/* The table of lifecycle.c against rules that were written down apart from it; all that a job can come to in a small model
 * of its world; and lifecycle_post() driven at random. */
#include "../../agent/lifecycle.h"
#include "../harness.h"

#include <stdlib.h>

/* ---- the rules ---- */

enum phase { STARTING, LIVE, ENDING, TIDYING, RESTING, OVER };

static enum phase phase_of(unsigned s)
{
    static const enum phase phases[JOB_STATES_N] = {
        [JOB_LAUNCH] = STARTING, [JOB_RUN] = LIVE,      [JOB_RENDEZVOUS] = LIVE,
        [JOB_HEAL] = LIVE,       [JOB_STOP] = ENDING,   [JOB_KILL] = ENDING,
        [JOB_SWEEP] = TIDYING,   [JOB_PURGE] = TIDYING, [JOB_RESTART] = RESTING,
        [JOB_DONE] = OVER,
    };
    return phases[s];
}

/* What a request to end, with or without time for it, comes to. */
static unsigned asked_to_end(unsigned s, bool now)
{
    switch (phase_of(s)) {
    case STARTING:
    case LIVE:
        return now ? JOB_KILL : JOB_STOP;
    case ENDING:
        return now && s == JOB_STOP ? JOB_KILL : JOB_STAYS;
    case TIDYING:
        return s == JOB_SWEEP ? JOB_PURGE : JOB_STAYS;
    case RESTING:
        return JOB_DONE;
    default:
        return JOB_STAYS;
    }
}

static unsigned out_of_time(unsigned s)
{
    switch (s) {
    case JOB_RENDEZVOUS:
        return JOB_STOP;
    case JOB_STOP:
        return JOB_KILL;
    case JOB_SWEEP:
        return JOB_PURGE;
    case JOB_KILL:
    case JOB_PURGE:
        return JOB_DONE;
    case JOB_RESTART:
        return JOB_LAUNCH;
    default:
        return JOB_BUG;
    }
}

/* News of workers: where they run it means something, where they are being ended nothing, elsewhere there are none. */
static unsigned news(unsigned s, unsigned live)
{
    return phase_of(s) == LIVE ? live : phase_of(s) == ENDING ? JOB_STAYS : JOB_BUG;
}

static unsigned only(bool here, unsigned next)
{
    return here ? next : JOB_BUG;
}

static unsigned rule(unsigned s, enum job_event e)
{
    enum phase p = phase_of(s);
    switch (e) {
    case EVENT_SPAWNED:
        return only(p == STARTING, JOB_RUN);
    case EVENT_SPAWN_FAILED:
        return only(p == STARTING || s == JOB_HEAL, JOB_STOP);
    case EVENT_JOINING: /* the first one; when all are there nobody is first */
        return s == JOB_RENDEZVOUS ? JOB_BUG : news(s, s == JOB_RUN ? JOB_RENDEZVOUS : JOB_STAYS);
    case EVENT_JOINED:
        return news(s, s == JOB_RUN ? JOB_STAYS : JOB_RUN);
    case EVENT_RANK_LOST:
    case EVENT_HANG:
        return news(s, JOB_STOP);
    case EVENT_HEAL:
        return only(s == JOB_RUN || s == JOB_HEAL, JOB_HEAL);
    case EVENT_ENDED:
        return only(p == LIVE || p == ENDING, JOB_SWEEP);
    case EVENT_RESTART:
        return only(p == LIVE, JOB_STOP);
    case EVENT_RETRY:
        return only(p == TIDYING, JOB_RESTART);
    case EVENT_GIVE_UP:
        return only(p == TIDYING, JOB_DONE);
    case EVENT_STOP:
        return asked_to_end(s, false);
    case EVENT_NOW:
        return asked_to_end(s, true);
    case EVENT_DEADLINE:
        return out_of_time(s);
    default:
        return JOB_BUG;
    }
}

TEST(every_state_and_event_lead_where_the_rules_say)
{
    for (unsigned s = 0; s < JOB_STATES_N; s++)
        for (unsigned e = 0; e < JOB_EVENTS_N; e++)
            if (lifecycle_next(s, e) != rule(s, e))
                test_fail(__FILE__, __LINE__, "%s in %s leads to %s, not to %s",
                          lifecycle_event_name(e), lifecycle_state_name(s),
                          lifecycle_state_name(lifecycle_next(s, e)),
                          lifecycle_state_name(rule(s, e)));
}

TEST(the_end_is_reached_from_every_state_and_left_from_none)
{
    bool ends[JOB_STATES_N] = {[JOB_DONE] = true};
    for (unsigned round = 0; round < JOB_STATES_N; round++)
        for (unsigned s = 0; s < JOB_STATES_N; s++)
            for (unsigned e = 0; e < JOB_EVENTS_N; e++) {
                unsigned next = lifecycle_next(s, e);
                ends[s] |= next < JOB_STATES_N && ends[next];
                CHECK(s != JOB_DONE || next >= JOB_STATES_N);
            }
    for (unsigned s = 0; s < JOB_STATES_N; s++)
        CHECK(ends[s]);
}

/* Nothing but time: no worker says a word, nobody asks. What waits then waits with a limit. */
TEST(a_job_that_is_asked_to_end_ends_by_deadlines_alone)
{
    for (unsigned s = 0; s < JOB_STATES_N; s++) {
        unsigned state = s, next = lifecycle_next(s, EVENT_NOW);
        for (unsigned steps = 0; state != JOB_DONE && steps < 4; steps++) {
            state = next < JOB_STATES_N ? next : state;
            next = lifecycle_next(state, EVENT_DEADLINE);
        }
        CHECK_INT(state, ==, JOB_DONE);
    }
}

/* ---- all that can happen to a job ---- */

/* What decides, besides the state, which events can come. */
struct world {
    unsigned state;
    bool there; /* workers, or their output */
    enum { NONE, SOME, ALL } joined;
    bool asked; /* to end */
};

static unsigned number_of(struct world w)
{
    return (w.state * 2u + w.there) * 6u + (unsigned)w.joined * 2u + w.asked;
}
#define WORLDS_N (JOB_STATES_N * 12)

/* Who posts what when: news.c, heal.c, job.c. */
static bool can_come(struct world w, enum job_event e)
{
    enum phase p = phase_of(w.state);
    switch (e) {
    case EVENT_SPAWNED:
    case EVENT_SPAWN_FAILED:
        return p == STARTING || (w.state == JOB_HEAL && e == EVENT_SPAWN_FAILED);
    case EVENT_JOINING: /* what was left behind may join, too: that is no worker any more */
        return p != STARTING && p != TIDYING && w.there && w.joined == NONE;
    case EVENT_JOINED:
        return p != STARTING && p != TIDYING && w.there && w.joined == SOME;
    case EVENT_RANK_LOST:
        return p != STARTING && w.there;
    case EVENT_HANG:
        return w.state == JOB_RUN || w.state == JOB_RENDEZVOUS;
    case EVENT_HEAL:
        return w.there && (w.state == JOB_RUN || w.state == JOB_HEAL) && !w.asked;
    case EVENT_ENDED:
        return p != STARTING && w.there;
    case EVENT_STOP:
        return p != STARTING && !w.asked;
    case EVENT_NOW:
        return p != STARTING;
    case EVENT_RESTART:
        return p == LIVE;
    case EVENT_DEADLINE: /* every change of state stops the timer */
        return w.state == JOB_RENDEZVOUS || p == ENDING || p == TIDYING || p == RESTING;
    case EVENT_RETRY:
        return p == TIDYING && !w.asked;
    case EVENT_GIVE_UP:
        return p == TIDYING;
    default:
        return false;
    }
}

static struct world after(struct world w, enum job_event e)
{
    unsigned next = lifecycle_next(w.state, e);
    if (next < JOB_STATES_N)
        w.state = next;
    w.asked |= e == EVENT_STOP || e == EVENT_NOW;
    if (e == EVENT_ENDED || w.state == JOB_DONE)
        w.there = false;
    if (e == EVENT_SPAWNED || e == EVENT_SPAWN_FAILED)
        w.there = true;
    if (e == EVENT_JOINING)
        w.joined = SOME;
    if (e == EVENT_JOINED)
        w.joined = ALL;
    if (next == JOB_LAUNCH || next == JOB_HEAL)
        w.joined = NONE;
    return w;
}

TEST(nothing_that_can_happen_to_a_job_is_without_an_edge)
{
    struct world todo[WORLDS_N] = {{.state = JOB_LAUNCH}};
    bool seen[WORLDS_N] = {[0] = true}, reached[JOB_STATES_N] = {false};
    for (unsigned at = 0, n = 1; at < n; at++) {
        reached[todo[at].state] = true;
        for (unsigned e = 0; e < JOB_EVENTS_N; e++) {
            if (todo[at].state == JOB_DONE || !can_come(todo[at], e))
                continue;
            if (lifecycle_next(todo[at].state, e) == JOB_BUG)
                test_fail(__FILE__, __LINE__, "%s can come in %s", lifecycle_event_name(e),
                          lifecycle_state_name(todo[at].state));
            struct world w = after(todo[at], e);
            if (!seen[number_of(w)])
                todo[n++] = w;
            seen[number_of(w)] = true;
        }
    }
    for (unsigned s = 0; s < JOB_STATES_N; s++)
        CHECK(reached[s]);
}

/* ---- at random ---- */

#define STEPS 1000000

struct walk {
    struct lifecycle life;
    unsigned short dice[3];
    enum job_event posted[LIFECYCLE_EVENTS_MAX]; /* in this order */
    unsigned posted_n, taken, bugs, entered, done;
    enum job_state to; /* where on_leave() said it goes */
    bool inside;
};

static void post(struct walk *w, enum job_event e)
{
    w->posted[w->posted_n++] = e;
    lifecycle_post(&w->life, e);
}

/* Forgets the events before it that changed nothing. */
static void take_up_to(struct walk *w, enum job_event e, unsigned next)
{
    while (w->posted[w->taken] != e || rule(w->life.state, w->posted[w->taken]) != next) {
        CHECK_INT(rule(w->life.state, w->posted[w->taken]), ==, JOB_STAYS);
        w->taken++;
    }
    w->taken++;
}

static void on_leave(void *user, enum job_state next, enum job_event why)
{
    struct walk *w = user;
    CHECK(!w->inside);
    w->inside = true;
    take_up_to(w, why, next);
    w->to = next;
}

static void on_bug(void *user, enum job_event event)
{
    struct walk *w = user;
    CHECK(!w->inside);
    take_up_to(w, event, JOB_BUG);
    w->bugs++;
}

/* An entry may post what comes next, or two such things; they are taken when it has returned. */
static void on_enter(void *user)
{
    struct walk *w = user;
    enum job_state state = w->life.state;
    CHECK(w->inside);
    CHECK_INT(state, ==, w->to);
    w->entered++;
    w->done += state == JOB_DONE;
    for (unsigned n = (unsigned)nrand48(w->dice) % 3; n && w->posted_n < 8; n--)
        post(w, (enum job_event)(nrand48(w->dice) % JOB_EVENTS_N));
    CHECK_INT(w->life.state, ==, state);
    w->inside = false;
}

TEST(a_million_random_events_are_taken_in_order_one_after_another_and_by_the_rules)
{
    struct walk w = {.life = {.on_leave = on_leave, .on_enter = on_enter, .on_bug = on_bug},
                     .dice = {9, 2, 1}};
    w.life.user = &w;
    for (unsigned i = 0; i < STEPS; i++) {
        enum job_state before = w.life.state;
        enum job_event e = (enum job_event)(nrand48(w.dice) % JOB_EVENTS_N);
        unsigned next = rule(before, e), entered = w.entered, bugs = w.bugs;
        w.posted_n = w.taken = 0;
        post(&w, e);
        CHECK_INT(w.life.events_n, ==, 0);
        CHECK_INT(w.entered > entered, ==, next < JOB_STATES_N);
        if (next >= JOB_STATES_N)
            CHECK_INT(w.life.state, ==, before);
        if (next == JOB_BUG)
            CHECK_INT(w.bugs, ==, bugs + 1);
        if (w.life.state == JOB_DONE)
            w.life.state = JOB_LAUNCH;
    }
    CHECK(w.done > 1000 && w.bugs > 1000);
}

TEST(events_that_are_posted_while_they_are_held_are_taken_when_they_are_let_go)
{
    struct walk w = {.life = {.on_leave = on_leave, .on_enter = on_enter, .on_bug = on_bug}};
    w.life.user = &w;
    w.posted_n = 8; /* entries post nothing */
    lifecycle_hold(&w.life);
    w.posted[0] = EVENT_SPAWNED;
    lifecycle_post(&w.life, EVENT_SPAWNED);
    CHECK_INT(w.life.state, ==, JOB_LAUNCH);
    lifecycle_release(&w.life);
    CHECK_INT(w.life.state, ==, JOB_RUN);
}
