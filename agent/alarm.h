/* SPDX-License-Identifier: MIT */
/* Any number of deadlines on one loop timer, which runs only while one of them is set. Knows no
 * reasons: when the alarm goes off, its owner asks each deadline. */
#ifndef LAUNCH_AGENT_ALARM_H
#define LAUNCH_AGENT_ALARM_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* Zeroed: not set. Must be cleared before its memory goes. */
struct deadline {
    uint64_t at; /* ms of uv_now(), 0: not set */
    struct deadline *next, *prev;
};

struct alarm {
    uv_timer_t timer;
    uint64_t timer_at;      /* may be earlier than every deadline, never later */
    struct deadline *first; /* those that are set, in no order */
    bool closing;
    void (*on_alarm)(struct alarm *a);
    void (*on_closed)(struct alarm *a);
};

/* on_alarm: at least one deadline has come, unless it was cleared meanwhile. */
void alarm_init(struct alarm *a, uv_loop_t *loop, void (*on_alarm)(struct alarm *a));

/* Never goes off again; deadlines may still be set and cleared. The memory must stay until
 * on_closed. */
void alarm_finish(struct alarm *a, void (*on_closed)(struct alarm *a));

/* Sets or moves it; 0 ms: the next round of the loop. */
void deadline_in(struct alarm *a, struct deadline *d, unsigned ms);

void deadline_clear(struct alarm *a, struct deadline *d);

/* True once for a deadline that has come; it is cleared. */
bool deadline_passed(struct alarm *a, struct deadline *d);

#endif
