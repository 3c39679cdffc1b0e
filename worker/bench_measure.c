/* SPDX-License-Identifier: MIT */
/* One measurement, in nccl-tests' order: one call that is not timed, all meet, the clock, all calls, until the last is done,
 * the clock; the mean over ranks; then the rounds of checks. */
#include "bench.h"

#include "../proto/clock.h"

static struct bench_call call_of(const struct bench *b, const struct bench_plan *p, bool in_place)
{
    size_t mine = (size_t)b->rank * bench_type_size(p->type), bytes = bench_plan_bytes(p);
    return (struct bench_call){.plan = *p,
                               .in = in_place ? b->receive + p->in_at * mine : b->send,
                               .out = b->receive + (in_place ? p->out_at * mine : 0),
                               .shift = bytes,
                               .steps = bytes ? b->o.max_bytes / bytes : 1,
                               .to = (b->rank + 1) % b->ranks,
                               .from = (b->rank + b->ranks - 1) % b->ranks};
}

int bench_warm_up(struct bench *b, const struct bench_plan *p)
{
    struct bench_call call = call_of(b, p, false);
    bench_watch(b, p);
    int r = b->on->run(b, &call, b->o.warm_ups);
    bench_unwatch(b);
    return r == LAUNCH_OK ? b->on->settle(b) : r;
}

/* call NULL: this rank only waits. of: ranks that take part; the time is their mean. */
static int time_calls(struct bench *b, const struct bench_plan *p, const struct bench_call *call,
                      int of, double *ret_seconds)
{
    uint64_t begin_ns = 0, end_ns = 0;
    bench_watch(b, p);
    int r = call ? b->on->run(b, call, 1) : LAUNCH_OK;
    if (r == LAUNCH_OK)
        r = launch_barrier(b->l);
    if (r == LAUNCH_OK && call) {
        begin_ns = clock_now_ns();
        r = b->on->run(b, call, b->o.iterations);
        end_ns = clock_now_ns();
    }
    if (r == LAUNCH_OK && call)
        r = b->on->settle(b);
    double seconds = (double)(end_ns - begin_ns) / 1e9 / b->o.iterations / of;
    if (r == LAUNCH_OK)
        r = launch_all_reduce(b->l, &seconds, ret_seconds, 1, LAUNCH_DOUBLE, LAUNCH_SUM);
    bench_unwatch(b);
    return r;
}

/* Once more with values of their own. wrong: on this rank. */
static int check_once(struct bench *b, const struct bench_call *call, bool in_place, int64_t *wrong)
{
    b->seed++;
    int r = bench_fill(b, call, in_place);
    if (r == LAUNCH_OK)
        r = launch_barrier(b->l);
    if (r != LAUNCH_OK)
        return r;
    bench_watch(b, &call->plan);
    r = b->on->run(b, call, 1);
    bench_unwatch(b);
    if (r == LAUNCH_OK)
        r = b->on->settle(b);
    return r == LAUNCH_OK ? bench_verify(b, call, in_place, wrong) : r;
}

/* Rounds end with the first that finds something. */
static int check(struct bench *b, const struct bench_call *call, bool in_place, int64_t *ret)
{
    *ret = -1;
    if (in_place && !call->plan.in_place_checked)
        return LAUNCH_OK;
    for (unsigned i = 0; i < b->o.checks && *ret <= 0; i++) {
        int64_t wrong = 0;
        int r = check_once(b, call, in_place, &wrong);
        if (r == LAUNCH_OK)
            r = launch_all_reduce(b->l, &wrong, ret, 1, LAUNCH_INT64, LAUNCH_SUM);
        if (r != LAUNCH_OK)
            return r;
    }
    b->halves_wrong += *ret > 0;
    return LAUNCH_OK;
}

int bench_measure(struct bench *b, const struct bench_plan *p, bool in_place,
                  struct bench_half *ret)
{
    struct bench_call call = call_of(b, p, in_place);
    int r = launch_step(b->l, ++b->steps);
    /* In place, what the calls before have left is no worse to move. */
    if (r == LAUNCH_OK && b->o.checks && !in_place)
        r = bench_fill(b, &call, in_place);
    if (r == LAUNCH_OK)
        r = launch_barrier(b->l);
    if (r == LAUNCH_OK)
        r = time_calls(b, p, &call, b->ranks, &ret->seconds);
    return r == LAUNCH_OK ? check(b, &call, in_place, &ret->wrong) : r;
}

/* ---- pairs ---- */

/* What this rank has to do for it. */
static bool join_pair(const struct bench *b, struct bench_call *call, int from, int to, bool both)
{
    call->to = b->rank == from ? to : both && b->rank == to ? from : -1;
    call->from = b->rank == to ? from : both && b->rank == from ? to : -1;
    return call->to >= 0 || call->from >= 0;
}

static int check_pair(struct bench *b, const struct bench_call *call, bool joins, int64_t *ret)
{
    struct bench_piece piece = {call->plan.out_n, call->from, 0};
    int64_t wrong = 0;
    *ret = -1;
    if (!b->o.checks)
        return LAUNCH_OK;
    b->seed++;
    int r = joins ? bench_fill(b, call, false) : LAUNCH_OK;
    if (r == LAUNCH_OK)
        r = launch_barrier(b->l);
    if (r == LAUNCH_OK && joins)
        r = b->on->run(b, call, 1);
    if (r == LAUNCH_OK && joins)
        r = b->on->settle(b);
    if (r == LAUNCH_OK && joins && call->from >= 0)
        r = bench_verify_piece(b, call, &piece, 0, &wrong);
    if (r == LAUNCH_OK)
        r = launch_all_reduce(b->l, &wrong, ret, 1, LAUNCH_INT64, LAUNCH_SUM);
    b->halves_wrong += r == LAUNCH_OK && *ret > 0;
    return r;
}

/* Both ways at once, then each way, each checked. */
static int measure_pair(struct bench *b, const struct bench_plan *p, int low, int high)
{
    struct bench_call call = call_of(b, p, false);
    struct bench_half half;
    double both_seconds = 0;
    int r = launch_step(b->l, ++b->steps);

    bool joins = join_pair(b, &call, low, high, true);
    if (r == LAUNCH_OK)
        r = time_calls(b, p, joins ? &call : NULL, 2, &both_seconds);
    for (int back = 0; r == LAUNCH_OK && back < 2; back++) {
        int from = back ? high : low, to = back ? low : high;
        joins = join_pair(b, &call, from, to, false);
        r = time_calls(b, p, joins ? &call : NULL, 2, &half.seconds);
        if (r == LAUNCH_OK)
            r = check_pair(b, &call, joins, &half.wrong);
        if (r == LAUNCH_OK)
            bench_record_pair(b, p, from, to, &half, both_seconds);
    }
    return r;
}

int bench_measure_pairs(struct bench *b, const struct bench_plan *p)
{
    int r = LAUNCH_OK;
    for (int low = 0; low < b->ranks; low++)
        for (int high = low + 1; r == LAUNCH_OK && high < b->ranks; high++)
            r = measure_pair(b, p, low, high);
    return r;
}
