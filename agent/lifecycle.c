/* SPDX-License-Identifier: MIT */
#include "lifecycle.h"

#include <assert.h>
#include <stdint.h>

static const char *const state_names[JOB_STATES_N] = {
    [JOB_LAUNCH] = "LAUNCH", [JOB_RUN] = "RUN",     [JOB_RENDEZVOUS] = "RENDEZVOUS",
    [JOB_HEAL] = "HEAL",     [JOB_STOP] = "STOP",   [JOB_KILL] = "KILL",
    [JOB_SWEEP] = "SWEEP",   [JOB_PURGE] = "PURGE", [JOB_RESTART] = "RESTART",
    [JOB_DONE] = "DONE",
};

static const char *const event_names[JOB_EVENTS_N] = {
    [EVENT_SPAWNED] = "spawned",     [EVENT_SPAWN_FAILED] = "spawn-failed",
    [EVENT_JOINING] = "joining",     [EVENT_JOINED] = "joined",
    [EVENT_RANK_LOST] = "rank-lost", [EVENT_ENDED] = "ended",
    [EVENT_STOP] = "stop",           [EVENT_NOW] = "now",
    [EVENT_DEADLINE] = "deadline",   [EVENT_RETRY] = "retry",
    [EVENT_GIVE_UP] = "give-up",     [EVENT_HANG] = "hang",
    [EVENT_HEAL] = "heal",           [EVENT_RESTART] = "restart",
};

/* Zero is JOB_LAUNCH as a target, which only RESTART has: so a missing entry is told apart by `known`. */
struct edge {
    bool known;
    uint8_t next;
};
#define TO(state)                                                                                  \
    {                                                                                              \
        true, JOB_##state                                                                          \
    }
#define STAYS                                                                                      \
    {                                                                                              \
        true, JOB_STAYS                                                                            \
    }

static const struct edge edges[JOB_STATES_N][JOB_EVENTS_N] =
    {
        [JOB_LAUNCH] =
            {
                [EVENT_SPAWNED] = TO(RUN),
                [EVENT_SPAWN_FAILED] = TO(STOP),
                [EVENT_STOP] = TO(STOP),
                [EVENT_NOW] = TO(KILL),
            },
        [JOB_RUN] =
            {
                [EVENT_JOINING] = TO(RENDEZVOUS),
                [EVENT_JOINED] = STAYS,
                [EVENT_HEAL] = TO(HEAL),
                [EVENT_RANK_LOST] = TO(STOP),
                [EVENT_HANG] = TO(STOP),
                [EVENT_RESTART] = TO(STOP),
                [EVENT_ENDED] = TO(SWEEP),
                [EVENT_STOP] = TO(STOP),
                [EVENT_NOW] = TO(KILL),
            },
        [JOB_RENDEZVOUS] =
            {
                [EVENT_JOINED] = TO(RUN),
                [EVENT_RANK_LOST] = TO(STOP),
                [EVENT_HANG] = TO(STOP),
                [EVENT_RESTART] = TO(STOP),
                [EVENT_DEADLINE] = TO(STOP),
                [EVENT_ENDED] = TO(SWEEP),
                [EVENT_STOP] = TO(STOP),
                [EVENT_NOW] = TO(KILL),
            },
        [JOB_HEAL] =
            {
                [EVENT_JOINING] = STAYS,
                [EVENT_JOINED] = TO(RUN),
                [EVENT_HEAL] = TO(HEAL),
                [EVENT_RANK_LOST] = TO(STOP),
                [EVENT_SPAWN_FAILED] = TO(STOP),
                [EVENT_HANG] = TO(STOP),
                [EVENT_RESTART] = TO(STOP),
                [EVENT_ENDED] = TO(SWEEP),
                [EVENT_STOP] = TO(STOP),
                [EVENT_NOW] = TO(KILL),
            },
        [JOB_STOP] =
            {
                [EVENT_JOINING] = STAYS,
                [EVENT_JOINED] = STAYS,
                [EVENT_RANK_LOST] = STAYS,
                [EVENT_HANG] = STAYS,
                [EVENT_STOP] = STAYS,
                [EVENT_NOW] = TO(KILL),
                [EVENT_DEADLINE] = TO(KILL),
                [EVENT_ENDED] = TO(SWEEP),
            },
        [JOB_KILL] =
            {
                [EVENT_JOINING] = STAYS,
                [EVENT_JOINED] = STAYS,
                [EVENT_RANK_LOST] = STAYS,
                [EVENT_HANG] = STAYS,
                [EVENT_STOP] = STAYS,
                [EVENT_NOW] = STAYS,
                [EVENT_DEADLINE] = TO(DONE),
                [EVENT_ENDED] = TO(SWEEP),
            },
        [JOB_SWEEP] =
            {
                [EVENT_STOP] = TO(PURGE),
                [EVENT_NOW] = TO(PURGE),
                [EVENT_DEADLINE] = TO(PURGE),
                [EVENT_RETRY] = TO(RESTART),
                [EVENT_GIVE_UP] = TO(DONE),
            },
        [JOB_PURGE] =
            {
                [EVENT_STOP] = STAYS,
                [EVENT_NOW] = STAYS,
                [EVENT_DEADLINE] = TO(DONE),
                [EVENT_RETRY] = TO(RESTART),
                [EVENT_GIVE_UP] = TO(DONE),
            },
        [JOB_RESTART] =
            {
                [EVENT_DEADLINE] = TO(LAUNCH),
                [EVENT_STOP] = TO(DONE),
                [EVENT_NOW] = TO(DONE),
            },
        [JOB_DONE] =
            {
                [EVENT_STOP] = STAYS,
                [EVENT_NOW] = STAYS,
            },
};

unsigned lifecycle_next(enum job_state state, enum job_event event)
{
    return edges[state][event].known ? edges[state][event].next : JOB_BUG;
}

const char *lifecycle_state_name(enum job_state state)
{
    return state < JOB_STATES_N ? state_names[state] : "?";
}

const char *lifecycle_event_name(enum job_event event)
{
    return event < JOB_EVENTS_N ? event_names[event] : "?";
}

/* The only place that changes the state. */
static void take(struct lifecycle *life, enum job_event event)
{
    unsigned next = lifecycle_next(life->state, event);
    if (next == JOB_BUG)
        life->on_bug(life->user, event);
    if (next >= JOB_STATES_N)
        return;
    life->on_leave(life->user, (enum job_state)next, event);
    life->state = (enum job_state)next;
    life->on_enter(life->user);
}

void lifecycle_hold(struct lifecycle *life)
{
    life->taking = true;
}

void lifecycle_release(struct lifecycle *life)
{
    life->taking = true;
    for (unsigned i = 0; i < life->events_n; i++)
        take(life, life->events[i]);
    life->events_n = 0;
    life->taking = false;
}

void lifecycle_post(struct lifecycle *life, enum job_event event)
{
    assert(life->events_n < LIFECYCLE_EVENTS_MAX);
    life->events[life->events_n++] = event;
    if (!life->taking)
        lifecycle_release(life);
}
