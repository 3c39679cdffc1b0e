/* SPDX-License-Identifier: MIT */
/* See alarm.h. Moving a deadline to later leaves the timer alone: it fires early, once, and is
 * set again. So output that comes in a steady flow costs no timer operations. */
#include "alarm.h"

#include "../proto/base.h"

static void on_timer(uv_timer_t *timer);

static void set_timer(struct alarm *a, uint64_t at)
{
    uint64_t now = uv_now(a->timer.loop);
    a->timer_at = at;
    uv_timer_start(&a->timer, on_timer, at > now ? at - now : 0, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct alarm *a = CONTAINER_OF(timer, struct alarm, timer);
    a->on_alarm(a);
    if (a->closing || !a->first)
        return;
    uint64_t at = a->first->at;
    for (const struct deadline *d = a->first; d; d = d->next)
        at = d->at < at ? d->at : at;
    set_timer(a, at);
}

void alarm_init(struct alarm *a, uv_loop_t *loop, void (*on_alarm)(struct alarm *a))
{
    *a = (struct alarm){.on_alarm = on_alarm};
    uv_timer_init(loop, &a->timer);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct alarm *a = CONTAINER_OF(handle, struct alarm, timer);
    a->on_closed(a);
}

void alarm_finish(struct alarm *a, void (*on_closed)(struct alarm *a))
{
    a->closing = true;
    a->on_closed = on_closed;
    uv_close((uv_handle_t *)&a->timer, on_timer_closed);
}

void deadline_in(struct alarm *a, struct deadline *d, unsigned ms)
{
    if (!d->at) {
        d->next = a->first;
        d->prev = NULL;
        if (d->next)
            d->next->prev = d;
        a->first = d;
    }
    d->at = uv_now(a->timer.loop) + ms;
    d->at += d->at == 0;
    if (!a->closing && (!uv_is_active((uv_handle_t *)&a->timer) || d->at < a->timer_at))
        set_timer(a, d->at);
}

void deadline_clear(struct alarm *a, struct deadline *d)
{
    if (!d->at)
        return;
    if (d->next)
        d->next->prev = d->prev;
    *(d->prev ? &d->prev->next : &a->first) = d->next;
    *d = (struct deadline){0};
    if (!a->first && !a->closing)
        uv_timer_stop(&a->timer);
}

bool deadline_passed(struct alarm *a, struct deadline *d)
{
    if (!d->at || d->at > uv_now(a->timer.loop))
        return false;
    deadline_clear(a, d);
    return true;
}
