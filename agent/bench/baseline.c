/* SPDX-License-Identifier: MIT */
#include "baseline.h"

#include <assert.h>
#include <string.h>

#define SPREADS 3 /* this many of them are noise */

static const struct {
    const char *name, *words;
} verdicts[] = {
#define X(id, name, words) {name, words},
    BASELINE_VERDICTS(X)
#undef X
};

const char *baseline_verdict_name(enum baseline_verdict verdict)
{
    return verdicts[verdict].name;
}

const char *baseline_verdict_words(enum baseline_verdict verdict)
{
    return verdicts[verdict].words;
}

const struct bench_half *baseline_half(const struct bench_result *result, enum baseline_half which)
{
    return which == BASELINE_OUT ? &result->out_of_place : &result->in_place;
}

/* ---- made of runs ---- */

static bool same_point(const struct bench_result *a, const struct bench_result *b)
{
    return a->size == b->size && a->type == b->type && a->op == b->op && a->root == b->root &&
           a->has_in_place == b->has_in_place;
}

static bool is_sane(const struct bench_half *half)
{
    return half->time <= BASELINE_REAL_MAX && half->alg_bw <= BASELINE_REAL_MAX &&
           half->bus_bw <= BASELINE_REAL_MAX;
}

/* A baseline of something broken would make every later run look good. */
static int check_run(const struct bench_run *run, const struct bench_run *first, struct err *err)
{
    if (!run->ended || run->timed_out)
        return err_set(err, -EINVAL, "the run did not come to its end");
    if (run->wrong)
        return err_set(err, -EINVAL, "the run had wrong values");
    if (!run->results_n || run->results_n > BASELINE_POINTS_MAX)
        return err_set(err, -EINVAL, "a run of %u sizes; 1 to %d may be kept", run->results_n,
                       BASELINE_POINTS_MAX);
    bool same = run->results_n == first->results_n && run->collective == first->collective &&
                run->ranks == first->ranks && run->host == first->host;
    for (unsigned i = 0; same && i < run->results_n; i++)
        same = same_point(&run->results[i], &first->results[i]);
    for (unsigned i = 0; same && i < run->results_n; i++)
        if (!is_sane(&run->results[i].out_of_place) || !is_sane(&run->results[i].in_place))
            return err_set(err, -EINVAL, "the run has numbers that make no sense");
    return same ? 0 : err_set(err, -EINVAL, "the runs did not measure the same sizes");
}

static int by_time(const void *a, const void *b)
{
    double x = ((const struct bench_half *)a)->time, y = ((const struct bench_half *)b)->time;
    return (x > y) - (x < y);
}

/* The run in the middle, and half the range as part of it. halves: room for n. */
static struct bench_half middle(const struct bench_run *runs, unsigned n, unsigned point,
                                enum baseline_half which, struct bench_half *halves,
                                double *ret_spread)
{
    for (unsigned i = 0; i < n; i++)
        halves[i] = *baseline_half(&runs[i].results[point], which);
    qsort(halves, n, sizeof *halves, by_time);
    const struct bench_half *median = &halves[(n - 1) / 2];
    double range = halves[n - 1].time - halves[0].time;
    *ret_spread = median->time > 0 ? range / 2 / median->time : 0;
    return *median;
}

static void fill_points(struct baseline *b, const struct bench_run *runs, unsigned n,
                        struct bench_half *halves)
{
    for (unsigned i = 0; i < runs->results_n; i++) {
        struct baseline_point *point = &b->points[b->points_n++];
        point->result = runs->results[i];
        point->result.out_of_place =
            middle(runs, n, i, BASELINE_OUT, halves, &point->spread[BASELINE_OUT]);
        point->spread[BASELINE_IN] = 0;
        if (point->result.has_in_place)
            point->result.in_place =
                middle(runs, n, i, BASELINE_IN, halves, &point->spread[BASELINE_IN]);
    }
}

static bool shares(const struct bench_run *run)
{
    for (unsigned i = 0; !run->host && i < run->devices_n; i++)
        for (unsigned j = 0; j < i; j++)
            if (run->devices[i].bus[0] && strcmp(run->devices[i].bus, run->devices[j].bus) == 0)
                return true;
    return false;
}

static void put_now(char ret[BASELINE_DATE_BYTES], time_t now)
{
    struct tm tm;
    if (!gmtime_r(&now, &tm) || !strftime(ret, BASELINE_DATE_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm))
        ret[0] = '\0';
}

int baseline_make(struct baseline *ret, const struct bench_run *runs, unsigned n,
                  const struct topology *t, time_t now, struct err *err)
{
    assert(n > 0);
    for (unsigned i = 0; i < n; i++) {
        int rc = check_run(&runs[i], runs, err);
        if (rc < 0)
            return n > 1 ? err_wrap(err, rc, "run %u of %u", i + 1, n) : rc;
    }
    struct baseline b = {.collective = runs->collective,
                         .host = runs->host,
                         .shared = shares(runs),
                         .ranks = runs->ranks,
                         .min_bytes = runs->min_bytes,
                         .max_bytes = runs->max_bytes,
                         .step_bytes = runs->step_bytes,
                         .step_factor = runs->step_factor,
                         .iterations = runs->iterations,
                         .warmup = runs->warmup,
                         .nccl_library = runs->nccl_library,
                         .runs = (int)n};
    struct bench_half *halves = calloc(n, sizeof *halves);
    b.points = calloc(runs->results_n, sizeof *b.points);
    b.devices = calloc(runs->devices_n ? runs->devices_n : 1, sizeof *b.devices);
    if (!halves || !b.points || !b.devices) {
        free(halves);
        baseline_finish(&b);
        return err_set_errno(err, -ENOMEM, "baseline");
    }
    for (; b.devices_n < runs->devices_n; b.devices_n++)
        b.devices[b.devices_n] = runs->devices[b.devices_n];
    fill_points(&b, runs, n, halves);
    free(halves);
    identity_read(&b.identity, runs, t);
    put_now(b.date, now);
    *ret = b;
    return 0;
}

void baseline_finish(struct baseline *b)
{
    free(b->points);
    free(b->devices);
    *b = (struct baseline){0};
}

/* ---- what it is ---- */

const char *baseline_machine(const struct baseline *b, char ret[BASELINE_WORDS_BYTES])
{
    const char *gpus = b->identity.part[IDENTITY_GPUS];
    size_t used = (size_t)snprintf(ret, BASELINE_WORDS_BYTES, "%s",
                                   gpus[0] ? gpus : b->identity.part[IDENTITY_CPU]);
    for (enum identity_part part = 0; part < IDENTITY_PARTS_N; part++)
        if (identity_is_software(part) && b->identity.part[part][0] && used < BASELINE_WORDS_BYTES)
            used += (size_t)snprintf(ret + used, BASELINE_WORDS_BYTES - used, ", %s %s",
                                     identity_noun(part), b->identity.part[part]);
    return ret;
}

const char *baseline_sweep(const struct baseline *b, char ret[BASELINE_WORDS_BYTES])
{
    char min[24], max[24];
    snprintf(ret, BASELINE_WORDS_BYTES, "%s%s, %d ranks%s, %s to %s",
             bench_collective_name(b->collective), b->host ? " in host memory" : "", b->ranks,
             b->shared ? " that share GPUs" : "", baseline_put_size(b->min_bytes, min),
             baseline_put_size(b->max_bytes, max));
    return ret;
}

uint64_t baseline_key(const struct baseline *b)
{
    /* What was measured, and not how it was asked for: -e 40K -f 8 from 8 on is -e 32K. */
    const uint64_t sweep[] = {b->host, b->shared, (uint64_t)b->ranks, b->points_n};
    uint64_t hash = identity_hash(IDENTITY_HASH, sweep, sizeof sweep);
    for (unsigned i = 0; i < b->points_n; i++) {
        const struct bench_result *r = &b->points[i].result;
        const uint64_t point[] = {r->size, r->type, (uint64_t)r->op, (uint64_t)r->root};
        hash = identity_hash(hash, point, sizeof point);
    }
    for (enum identity_part part = 0; part < IDENTITY_PARTS_N; part++)
        if (!identity_is_software(part))
            hash = identity_hash(hash, b->identity.part[part], strlen(b->identity.part[part]) + 1);
    return hash;
}

double baseline_peak(const struct baseline *b)
{
    double peak = 0;
    for (unsigned i = 0; i < b->points_n; i++)
        for (enum baseline_half half = 0; half < BASELINE_HALVES_N; half++) {
            double bw = baseline_half(&b->points[i].result, half)->bus_bw;
            peak = bw > peak ? bw : peak;
        }
    return peak;
}

double baseline_average(const struct baseline *b)
{
    double sum = 0;
    unsigned n = 0;
    for (unsigned i = 0; i < b->points_n; i++) {
        const struct bench_result *r = &b->points[i].result;
        sum += r->out_of_place.bus_bw + (r->has_in_place ? r->in_place.bus_bw : 0);
        n += r->has_in_place ? 2 : 1;
    }
    return n ? sum / n : 0;
}

/* ---- compared ---- */

static const char *or_none(const char *text)
{
    return text[0] ? text : "none";
}

/* Hashes say nothing to a person: named, not shown. */
static bool is_hashed(enum identity_part part)
{
    return part == IDENTITY_UUIDS || part == IDENTITY_LINKS;
}

static int compare_machines(const struct baseline *then, const struct baseline *now,
                            bool across_versions, struct err *err)
{
    char text[ERR_TEXT_BYTES] = "";
    size_t used = 0;
    bool hardware = false;
    for (enum identity_part part = 0; part < IDENTITY_PARTS_N; part++) {
        const char *a = then->identity.part[part], *b = now->identity.part[part];
        bool software = identity_is_software(part);
        if (strcmp(a, b) == 0 || (software && across_versions) || used >= sizeof text)
            continue;
        hardware |= !software;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", used ? "; " : "");
        if (is_hashed(part) && used < sizeof text)
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "other %s", identity_noun(part));
        else if (used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s: %s then, %s now",
                                     identity_noun(part), or_none(a), or_none(b));
    }
    if (!used)
        return 0;
    return err_set(err, -EINVAL, "not comparable, %s: %s%s",
                   hardware ? "another machine" : "other software", text,
                   hardware ? "" : " (--across-versions compares all the same)");
}

/* The first size in which two sweeps differ. */
static int compare_points(const struct baseline *then, const struct baseline *now, struct err *err)
{
    char was[24], is[24];
    for (unsigned i = 0; i < then->points_n && i < now->points_n; i++) {
        const struct bench_result *a = &then->points[i].result, *b = &now->points[i].result;
        if (a->type != b->type)
            return err_set(err, -EINVAL, "not comparable, another type: %s then, %s now",
                           bench_type_name(a->type), bench_type_name(b->type));
        if (a->op != b->op)
            return err_set(err, -EINVAL, "not comparable, another operation: %s then, %s now",
                           bench_op_name(a->op), bench_op_name(b->op));
        if (a->root != b->root)
            return err_set(err, -EINVAL, "not comparable, another root: %d then, %d now", a->root,
                           b->root);
        if (a->size != b->size || a->has_in_place != b->has_in_place)
            return err_set(err, -EINVAL,
                           "not comparable, another sweep: its size number %u was %s, and is %s",
                           i + 1, baseline_put_size(a->size, was), baseline_put_size(b->size, is));
    }
    if (then->points_n != now->points_n)
        return err_set(err, -EINVAL, "not comparable, another sweep: %u sizes then, %u now",
                       then->points_n, now->points_n);
    return 0;
}

int baseline_comparable(const struct baseline *then, const struct baseline *now,
                        bool across_versions, struct err *err)
{
    if (then->collective != now->collective)
        return err_set(err, -EINVAL, "not comparable, another collective: %s then, %s now",
                       bench_collective_name(then->collective),
                       bench_collective_name(now->collective));
    if (then->host != now->host)
        return err_set(err, -EINVAL, "not comparable: %s then, %s now",
                       then->host ? "host memory" : "GPUs", now->host ? "host memory" : "GPUs");
    if (then->ranks != now->ranks || then->shared != now->shared)
        return err_set(err, -EINVAL, "not comparable: %d ranks%s then, %d%s now", then->ranks,
                       then->shared ? " that share GPUs" : "", now->ranks,
                       now->shared ? " that share GPUs" : "");
    int rc = compare_machines(then, now, across_versions, err);
    return rc < 0 ? rc : compare_points(then, now, err);
}

/* What is noise, by the size of the message, when the runs themselves were steady: the time of a small one is mostly that of starting it. */
static double floor_of(uint64_t size)
{
    return size < 1 << 20 ? 0.25 : size <= 64 << 20 ? 0.10 : 0.05;
}

static struct baseline_change judge(const struct baseline_point *then,
                                    const struct baseline_point *now, enum baseline_half half,
                                    double floor)
{
    double before = baseline_half(&then->result, half)->time,
           after = baseline_half(&now->result, half)->time;
    struct baseline_change c = {.limit = SPREADS * then->spread[half]};
    double least = floor < 0 ? floor_of(then->result.size) : floor;
    c.limit = c.limit > least ? c.limit : least;
    c.judged = before > 0 && after > 0 && (half == BASELINE_OUT || then->result.has_in_place);
    if (!c.judged)
        return c;
    c.change = after / before - 1;
    c.verdict = after > before * (1 + c.limit)   ? BASELINE_SLOWER
                : after * (1 + c.limit) < before ? BASELINE_FASTER
                                                 : BASELINE_SAME;
    return c;
}

int baseline_compare(struct baseline_comparison *ret, const struct baseline *then,
                     const struct baseline *now, double floor, struct err *err)
{
    struct baseline_comparison c = {.points = calloc(then->points_n, sizeof *c.points),
                                    .points_n = then->points_n};
    if (!c.points)
        return err_set_errno(err, -ENOMEM, "baseline");
    for (unsigned i = 0; i < c.points_n; i++) {
        bool is[BASELINE_VERDICTS_N] = {false};
        for (enum baseline_half half = 0; half < BASELINE_HALVES_N; half++) {
            c.points[i][half] = judge(&then->points[i], &now->points[i], half, floor);
            is[c.points[i][half].verdict] = true;
        }
        c.slower_n += is[BASELINE_SLOWER];
        c.faster_n += is[BASELINE_FASTER];
    }
    c.verdict = c.slower_n ? BASELINE_SLOWER : c.faster_n ? BASELINE_FASTER : BASELINE_SAME;
    *ret = c;
    return 0;
}

void baseline_comparison_finish(struct baseline_comparison *comparison)
{
    free(comparison->points);
    *comparison = (struct baseline_comparison){0};
}

void baseline_note(struct baseline *b, const struct baseline *now, enum baseline_verdict verdict,
                   unsigned sizes)
{
    if (b->history_n == BASELINE_HISTORY_MAX)
        memmove(&b->history[0], &b->history[1], --b->history_n * sizeof b->history[0]);
    struct baseline_event *event = &b->history[b->history_n++];
    *event = (struct baseline_event){.runs = now->runs,
                                     .peak = baseline_peak(now),
                                     .average = baseline_average(now),
                                     .verdict = verdict,
                                     .sizes = (int)sizes};
    memcpy(event->date, now->date, sizeof event->date);
    snprintf(event->driver, sizeof event->driver, "%.31s", now->identity.part[IDENTITY_DRIVER]);
    snprintf(event->nccl, sizeof event->nccl, "%.15s", now->identity.part[IDENTITY_NCCL]);
}
