/* SPDX-License-Identifier: MIT */
/* Baselines and comparisons for a person. */
#include "baseline.h"

#include <string.h>

#define NAMED_MAX 4 /* sizes that the verdict names */

const char *baseline_put_size(uint64_t size, char ret[24])
{
    static const char units[] = "KMGT";
    size_t unit = 0;
    uint64_t whole = size;
    while (whole >= 1024 && whole % 1024 == 0 && units[unit]) {
        whole /= 1024;
        unit++;
    }
    if (unit)
        snprintf(ret, 24, "%llu%c", (unsigned long long)whole, units[unit - 1]);
    else
        snprintf(ret, 24, "%llu", (unsigned long long)size);
    return ret;
}

const char *baseline_put_date(const char *date, char ret[BASELINE_DATE_BYTES])
{
    snprintf(ret, BASELINE_DATE_BYTES, "%.23s", date[0] ? date : "at some time");
    char *t = strchr(ret, 'T'), *z = strchr(ret, 'Z');
    if (t && z && t < z) {
        *t = ' ';
        *z = '\0';
    }
    return ret;
}

static void put_time(FILE *out, double us)
{
    fprintf(out, " %9.*f", us < 100 ? 2 : us < 10000 ? 1 : 0, us);
}

static void put_half(FILE *out, const struct baseline_point *then, const struct baseline_point *now,
                     const struct baseline_change *change, enum baseline_half half)
{
    if (!change->judged) {
        fprintf(out, " %9s %9s %7s %6s", "N/A", "N/A", "", "");
        return;
    }
    put_time(out, baseline_half(&then->result, half)->time);
    put_time(out, baseline_half(&now->result, half)->time);
    fprintf(out, " %+6.1f%% %5.0f%%", 100 * change->change, 100 * change->limit);
}

static void put_rows(FILE *out, const struct baseline *then, const struct baseline *now,
                     const struct baseline_comparison *comparison)
{
    fprintf(out, "# %12s %8s %6s %5s %33s  %33s\n", "", "", "", "", "out-of-place", "in-place");
    fprintf(out, "# %12s %8s %6s %5s %9s %9s %7s %6s  %9s %9s %7s %6s\n", "size", "type", "redop",
            "root", "then", "now", "change", "limit", "then", "now", "change", "limit");
    fprintf(out, "# %12s %8s %6s %5s %9s %9s %7s %6s  %9s %9s\n", "(B)", "", "", "", "(us)", "(us)",
            "", "", "(us)", "(us)");
    for (unsigned i = 0; i < comparison->points_n; i++) {
        const struct bench_result *r = &then->points[i].result;
        const struct baseline_change *changes = comparison->points[i];
        fprintf(out, "# %12llu %8s %6s %5d", (unsigned long long)r->size, bench_type_name(r->type),
                bench_op_name(r->op), r->root);
        put_half(out, &then->points[i], &now->points[i], &changes[BASELINE_OUT], BASELINE_OUT);
        fputs(" ", out);
        put_half(out, &then->points[i], &now->points[i], &changes[BASELINE_IN], BASELINE_IN);
        bool slower = changes[BASELINE_OUT].verdict == BASELINE_SLOWER ||
                      changes[BASELINE_IN].verdict == BASELINE_SLOWER;
        bool faster = changes[BASELINE_OUT].verdict == BASELINE_FASTER ||
                      changes[BASELINE_IN].verdict == BASELINE_FASTER;
        fprintf(out, "%s\n", slower ? "  slower" : faster ? "  faster" : "");
    }
}

/* ", 64M out-of-place by 20.3 % (limit 5 %)". */
static void put_named(FILE *out, const struct baseline *then,
                      const struct baseline_comparison *comparison)
{
    unsigned named = 0;
    for (unsigned i = 0; i < comparison->points_n; i++)
        for (enum baseline_half half = 0; half < BASELINE_HALVES_N; half++) {
            const struct baseline_change *c = &comparison->points[i][half];
            if (c->verdict != comparison->verdict || ++named > NAMED_MAX)
                continue;
            char size[24];
            fprintf(out, "%s %s %s by %.1f %% (limit %.0f %%)", named == 1 ? ":" : ",",
                    baseline_put_size(then->points[i].result.size, size),
                    half == BASELINE_OUT ? "out-of-place" : "in-place",
                    100 * (c->change < 0 ? -c->change : c->change), 100 * c->limit);
        }
    if (named > NAMED_MAX)
        fprintf(out, ", and %u more", named - NAMED_MAX);
}

void baseline_put_comparison(FILE *out, const struct baseline *then, const struct baseline *now,
                             const struct baseline_comparison *comparison)
{
    char words[BASELINE_WORDS_BYTES], date[BASELINE_DATE_BYTES];
    fprintf(out, "#\n# Baseline of %s UTC, %s %d run%s: %s\n", baseline_put_date(then->date, date),
            then->runs == 1 ? "of" : "median of", then->runs, then->runs == 1 ? "" : "s",
            baseline_machine(then, words));
    for (enum identity_part part = 0; part < IDENTITY_PARTS_N; part++)
        if (strcmp(then->identity.part[part], now->identity.part[part]) != 0)
            fprintf(out, "# Since then: %s %s, now %s\n", identity_noun(part),
                    then->identity.part[part], now->identity.part[part]);
    put_rows(out, then, now, comparison);
    if (comparison->verdict == BASELINE_SAME)
        fprintf(out, "# Compared with baseline: as fast, at all %u sizes", comparison->points_n);
    else
        fprintf(out, "# Compared with baseline: %s at %u of %u sizes",
                comparison->verdict == BASELINE_SLOWER ? "SLOWER" : "faster",
                comparison->verdict == BASELINE_SLOWER ? comparison->slower_n
                                                       : comparison->faster_n,
                comparison->points_n);
    if (comparison->verdict != BASELINE_SAME)
        put_named(out, then, comparison);
    fputs("\n#\n", out);
}

void baseline_put_history(FILE *out, const struct baseline *b)
{
    char words[BASELINE_WORDS_BYTES];
    fprintf(out, "%s", baseline_sweep(b, words));
    if (b->points_n && b->points[0].result.op >= 0)
        fprintf(out, ", %s", bench_op_name(b->points[0].result.op));
    if (b->points_n)
        fprintf(out, " of %s", bench_type_name(b->points[0].result.type));
    fprintf(out, "; %s\n", baseline_machine(b, words));
    fprintf(out, "  %-19s  %4s  %10s  %10s  %-14s %-8s %s\n", "date (UTC)", "runs", "peak GB/s",
            "average", "driver", "NCCL", "compared with the baseline");
    for (unsigned i = 0; i < b->history_n; i++) {
        const struct baseline_event *event = &b->history[i];
        char date[BASELINE_DATE_BYTES];
        fprintf(out, "  %-19s  %4d  %10.2f  %10.2f  %-14s %-8s %s",
                baseline_put_date(event->date, date), event->runs, event->peak, event->average,
                event->driver[0] ? event->driver : "-", event->nccl[0] ? event->nccl : "-",
                baseline_verdict_words(event->verdict));
        if (event->sizes)
            fprintf(out, " at %d size%s", event->sizes, event->sizes == 1 ? "" : "s");
        fputs("\n", out);
    }
}
