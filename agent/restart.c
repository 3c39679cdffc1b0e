/* SPDX-License-Identifier: MIT */
#include "restart.h"

#include <string.h>

#define BACKOFF_FIRST_MS 100u
#define BACKOFF_MAX_MS 30000u

static uint64_t backoff_ms(uint32_t same_in_row, uint32_t jitter)
{
    if (same_in_row < 2)
        return 0;
    uint32_t doublings = same_in_row - 2;
    uint64_t ms = BACKOFF_MAX_MS;
    if (doublings < 9) /* 100 ms << 9 is beyond the maximum */
        ms = (uint64_t)BACKOFF_FIRST_MS << doublings;
    if (ms > BACKOFF_MAX_MS)
        ms = BACKOFF_MAX_MS;
    return ms + (ms / 4 * jitter >> 32);
}

static enum restart_class class_of(const struct restart_failure *failure)
{
    if (failure->reason == REASON_HANG)
        return RESTART_HANG;
    if (failure->reason == REASON_RENDEZVOUS || !failure->started)
        return RESTART_STARTUP;
    return failure->reason == REASON_SIGNAL ? RESTART_SIGNAL : RESTART_EXIT;
}

/* Why nothing at all may follow; NULL: something may. */
static const char *over(const struct restart_history *history,
                        const struct restart_failure *failure)
{
    if (history->stop_requested)
        return "the job was asked to end";
    if (failure->reason == REASON_SPAWN)
        return "what can't be started is not tried again";
    if (failure->reason == REASON_TIMEOUT)
        return "the job's time is over";
    return NULL;
}

/* Why no restart may follow such an end, however many are left; NULL: one may. */
static const char *forbidden(const struct restart_policy *policy,
                             const struct restart_failure *failure)
{
    if (failure->reason == REASON_RENDEZVOUS)
        return NULL; /* nobody's own end */
    bool hang = failure->reason == REASON_HANG;
    if (codeset_has(&policy->not_on, failure->exit_code, failure->signal, hang))
        return "such an end is not restarted (--no-restart-on)";
    if (!codeset_has(&policy->on, failure->exit_code, failure->signal, hang))
        return "such an end is not restarted (--restart-on)";
    return NULL;
}

static bool counts(const struct restart_policy *policy, const struct restart_past *past,
                   uint64_t now_ms)
{
    return policy->window_ms == 0 || now_ms - past->at_ms < policy->window_ms;
}

static const char *const exhausted[RESTART_CLASSES_N] = {
    [RESTART_STARTUP] = "no restarts are left for start-up crashes (--restart-limits)",
    [RESTART_SIGNAL] = "no restarts are left for deaths by signal (--restart-limits)",
    [RESTART_HANG] = "no restarts are left for hangs (--restart-limits)",
    [RESTART_EXIT] = "no restarts are left for failed exits (--restart-limits)",
    [RESTART_SAME] = "the same failure came too often in a row (--restart-limits)",
};

struct restart_verdict restart_decide(const struct restart_policy *policy,
                                      const struct restart_history *history,
                                      const struct restart_failure *failure, uint64_t now_ms,
                                      uint32_t jitter)
{
    struct restart_verdict verdict = {.class = class_of(failure)};
    uint32_t of_class = 0;
    for (size_t i = 0; i < history->n; i++) {
        if (!counts(policy, &history->past[i], now_ms))
            continue;
        verdict.counted += history->past[i].times;
        of_class += history->past[i].class == verdict.class ? history->past[i].times : 0;
    }
    verdict.why = over(history, failure);
    if (verdict.why)
        return verdict;
    verdict.why = forbidden(policy, failure);
    verdict.spent = !verdict.why;
    if (policy->max_restarts == 0)
        verdict.why = "restarts are off (--max-restarts)";
    if (failure->gpu_out && verdict.spent)
        verdict.why = "a GPU of the job is in quarantine (launch gpus)";
    if (verdict.why)
        return verdict;
    if (verdict.counted >= policy->max_restarts)
        verdict.why = policy->window_ms ? "no restarts are left in this --restart-window"
                                        : "no restarts are left";
    else if (of_class >= policy->limits.of[verdict.class])
        verdict.why = exhausted[verdict.class];
    else if (history->same_in_row > policy->limits.of[RESTART_SAME])
        verdict.why = exhausted[RESTART_SAME];
    if (verdict.why)
        return verdict;
    verdict.again = true;
    verdict.spent = false;
    verdict.after_ms = backoff_ms(history->same_in_row, jitter);
    verdict.why = history->same_in_row > 1 ? "the same failure again" : "a restart is left";
    return verdict;
}

struct restart_policy restart_policy_of(const struct job_spec *spec)
{
    bool stop = spec->on_failure == ON_FAILURE_STOP;
    return (struct restart_policy){.max_restarts = stop ? 0 : spec->max_restarts,
                                   .window_ms = spec->restart_window_ms,
                                   .limits = spec->restart_limits,
                                   .on = spec->restart_on,
                                   .not_on = spec->no_restart_on};
}

int restart_remember(struct restart_history *history, const struct restart_policy *policy,
                     enum restart_class class, uint64_t now_ms)
{
    for (size_t i = 0; i < history->n && policy->window_ms == 0; i++)
        if (history->past[i].class == class) {
            history->past[i].times += history->past[i].times < UINT32_MAX;
            return 0;
        }
    size_t old = 0;
    while (old < history->n && !counts(policy, &history->past[old], now_ms))
        old++;
    history->n -= old;
    if (old)
        memmove(history->past, history->past + old, history->n * sizeof *history->past);
    if (history->n == history->room) {
        size_t room = history->room ? 2 * history->room : 16;
        struct restart_past *past = realloc(history->past, room * sizeof *past);
        if (!past)
            return -ENOMEM;
        history->past = past;
        history->room = room;
    }
    history->past[history->n++] =
        (struct restart_past){.at_ms = now_ms, .class = class, .times = 1};
    return 0;
}

void restart_refill(struct restart_history *history)
{
    history->n = 0;
}

void restart_finish(struct restart_history *history)
{
    free(history->past);
    *history = (struct restart_history){0};
}
