/* SPDX-License-Identifier: MIT */
#include "verdict.h"

#include "baseline_store.h"
#include "bench_svg.h"

#include <string.h>

#define NVML_LIMIT_MS 10000
#define NOISY 0.10 /* a spread above it hides what one would like to see */

static void count_all(void *user, const char *name, const struct baseline *b, const struct err *err)
{
    (void)name, (void)b, (void)err;
    ++*(unsigned *)user;
}

int verdict_check(const struct verdict_ask *ask, const char *sysroot, struct err *err)
{
    struct baseline b;
    unsigned n = 0;
    int rc = 0;
    if (ask->save && ask->save_file)
        rc = baseline_store_check(ask->save_file, err);
    if (rc < 0 || !ask->compare)
        return rc;
    if (ask->compare_file) {
        rc = baseline_store_load(&b, ask->compare_file, err);
        if (rc == 0)
            baseline_finish(&b);
    } else {
        rc = baseline_store_walk(sysroot, count_all, &n, err);
        if (rc == -ENOENT || rc == 0)
            rc = err_set(err, -ENOENT, "--compare: no baseline is kept; make one with --save");
    }
    return rc < 0 ? rc : 0;
}

/* ---- found ---- */

/* No link is tried that is not in the table: the topology costs time. */
static bool may_be_expected(const struct bench_run *run)
{
    bool any = false;
    for (enum expected_link link = 0; link < EXPECTED_LINKS_N; link++)
        any |= expected_find(run, link) != NULL;
    return any;
}

/* Baselines of the same collective, and why the latest of them is none for this run. */
struct others {
    const struct baseline *now;
    unsigned n;
    char date[BASELINE_DATE_BYTES];
    struct err why;
};

static void look_at_other(void *user, const char *name, const struct baseline *b,
                          const struct err *err)
{
    (void)name;
    (void)err;
    struct others *others = user;
    if (!b || b->collective != others->now->collective)
        return;
    if (others->n++ && strcmp(b->date, others->date) < 0)
        return;
    memcpy(others->date, b->date, sizeof others->date);
    if (baseline_comparable(b, others->now, true, &others->why) == 0)
        others->why = (struct err){0};
}

static int load_own(struct verdict *v, const char *sysroot, struct err *err)
{
    char path[PATH_MAX];
    int rc = baseline_store_path(path, &v->now, sysroot, err);
    if (rc == 0)
        rc = baseline_store_load(&v->then, path, err);
    if (rc != -ENOENT)
        return rc;
    struct others others = {.now = &v->now};
    if (baseline_store_walk(sysroot, look_at_other, &others, NULL) < 0 || !others.n)
        return err_set(err, rc, "no baseline of this machine and sweep: make one with --save");
    return err_set(err, rc,
                   "no baseline of this machine and sweep: make one with --save; the latest of the "
                   "%u of %s (--history) is %s",
                   others.n, bench_collective_name(v->now.collective),
                   others.why.code ? others.why.text : "of another one");
}

static int compare(struct verdict *v, const struct verdict_ask *ask, const char *sysroot,
                   struct err *err)
{
    int rc = ask->compare_file ? baseline_store_load(&v->then, ask->compare_file, err)
                               : load_own(v, sysroot, err);
    if (rc < 0)
        return rc;
    v->has_then = true;
    rc = baseline_comparable(&v->then, &v->now, ask->across_versions, err);
    if (rc < 0)
        return err_wrap(err, rc, "baseline");
    return baseline_compare(&v->comparison, &v->then, &v->now, ask->floor, err);
}

int verdict_find(struct verdict *ret, const struct verdict_ask *ask, struct bench_run *runs,
                 unsigned n, bool picture, const char *sysroot, struct err *err)
{
    struct topology *t = NULL;
    *ret = (struct verdict){.run = &runs[n - 1]};
    bool measured = ask->save || ask->compare || picture;
    if (!measured && !may_be_expected(ret->run))
        return 0;
    int rc = topology_read(&t, sysroot, NVML_MATRIX, NVML_LIMIT_MS, err);
    if (rc < 0)
        return rc;
    ret->expected = expected_find(ret->run, expected_link(ret->run, t));
    if (measured)
        rc = baseline_make(&ret->now, runs, n, t, time(NULL), err);
    topology_free(t);
    ret->has_now = measured && rc == 0;
    return rc == 0 && ask->compare ? compare(ret, ask, sysroot, err) : rc;
}

void verdict_finish(struct verdict *v)
{
    baseline_finish(&v->now);
    baseline_finish(&v->then);
    baseline_comparison_finish(&v->comparison);
    *v = (struct verdict){0};
}

/* ---- kept ---- */

static unsigned noisy_sizes(const struct baseline *b)
{
    unsigned n = 0;
    for (unsigned i = 0; i < b->points_n; i++)
        n += b->points[i].spread[BASELINE_OUT] > NOISY || b->points[i].spread[BASELINE_IN] > NOISY;
    return n;
}

static unsigned changed_sizes(const struct verdict *v)
{
    return v->comparison.verdict == BASELINE_SLOWER ? v->comparison.slower_n
                                                    : v->comparison.faster_n;
}

/* The history goes on in the new one. */
static void take_history(struct baseline *now, const char *path)
{
    struct baseline before;
    if (baseline_store_load(&before, path, NULL) < 0)
        return;
    memcpy(now->history, before.history, sizeof now->history);
    now->history_n = before.history_n;
    baseline_finish(&before);
}

static int save(FILE *out, struct verdict *v, const struct verdict_ask *ask, const char *own,
                struct err *err)
{
    const char *path = ask->save_file ? ask->save_file : own;
    char words[BASELINE_WORDS_BYTES];
    unsigned noisy = noisy_sizes(&v->now);
    take_history(&v->now, path);
    if (v->has_then && !ask->compare_file && !ask->save_file)
        baseline_note(&v->now, &v->now, v->comparison.verdict, changed_sizes(v));
    baseline_note(&v->now, &v->now, BASELINE_SAVED, 0);
    int rc = baseline_store_save(&v->now, path, !ask->save_file, err);
    if (rc < 0 || !out)
        return rc;
    fprintf(out, "# Saved as baseline: %s, %s; %d run%s: %s\n", baseline_sweep(&v->now, words),
            v->now.identity.part[v->now.host ? IDENTITY_CPU : IDENTITY_GPUS], v->now.runs,
            v->now.runs == 1 ? ", so that its spread is not known" : "s", path);
    if (noisy)
        fprintf(out,
                "# The runs differ by more than 10 %% from their median at %u of %u sizes: "
                "there a comparison sees little\n",
                noisy, v->now.points_n);
    return 0;
}

int verdict_keep(FILE *out, struct verdict *v, const struct verdict_ask *ask, const char *sysroot,
                 struct err *err)
{
    char own[PATH_MAX] = "";
    int rc = 0;
    if ((ask->save && !ask->save_file) || (ask->compare && !ask->compare_file))
        rc = baseline_store_path(own, &v->now, sysroot, err);
    if (rc == 0 && ask->save)
        return save(out, v, ask, own, err);
    if (rc == 0 && v->has_then && !ask->compare_file) {
        baseline_note(&v->then, &v->now, v->comparison.verdict, changed_sizes(v));
        rc = baseline_store_save(&v->then, own, true, err);
    }
    return rc;
}

/* ---- shown ---- */

void verdict_text(FILE *out, const struct verdict *v)
{
    if (v->has_then)
        baseline_put_comparison(out, &v->then, &v->now, &v->comparison);
    if (v->expected)
        expected_put(out, v->expected, v->run);
}

void verdict_svg(FILE *out, const struct verdict *v)
{
    bench_svg(out, &v->now, v->has_then ? &v->then : NULL, v->has_then ? &v->comparison : NULL,
              v->expected);
}

int verdict_exit_code(const struct verdict *v)
{
    return v->has_then && v->comparison.verdict == BASELINE_SLOWER ? VERDICT_EXIT_SLOWER : 0;
}

static void put_one(void *user, const char *name, const struct baseline *b, const struct err *err)
{
    FILE *out = user;
    if (b)
        baseline_put_history(out, b);
    else
        fprintf(out, "%s: %s\n", name, err->text);
}

int verdict_history(FILE *out, const char *sysroot, struct err *err)
{
    int n = baseline_store_walk(sysroot, put_one, out, err);
    if (n == 0 || n == -ENOENT)
        return err_set(err, -ENOENT, "no baseline is kept: launch bench --save makes one");
    return n < 0 ? n : 0;
}
