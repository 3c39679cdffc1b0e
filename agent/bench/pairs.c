/* SPDX-License-Identifier: MIT */
#include "pairs.h"

#include "identity.h"

#include <string.h>

void pairs_link(const struct bench_run *run, const struct topology *t, int from, int to,
                char ret[8])
{
    const struct bench_device *one = bench_device_of(run, from), *other = bench_device_of(run, to);
    int a = t && one ? identity_gpu(t, one) : -1, b = t && other ? identity_gpu(t, other) : -1;
    *ret = '\0';
    if (a >= 0 && b >= 0)
        topology_cell(t, (unsigned)a, (unsigned)b, ret);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double pairs_median(const struct bench_run *run, const struct topology *t, const char *link)
{
    double *rate = malloc((run->pairs_n + 1) * sizeof *rate), median = 0;
    unsigned n = 0;
    for (unsigned i = 0; rate && i < run->pairs_n; i++) {
        char its[8];
        pairs_link(run, t, run->pairs[i].from, run->pairs[i].to, its);
        if (!*link || strcmp(link, its) == 0)
            rate[n++] = run->pairs[i].alg_bw;
    }
    if (n) {
        qsort(rate, n, sizeof *rate, compare);
        median = (rate[(n - 1) / 2] + rate[n / 2]) / 2;
    }
    free(rate);
    return median;
}

static const struct bench_pair *find(const struct bench_run *run, int from, int to)
{
    for (unsigned i = 0; i < run->pairs_n; i++)
        if (run->pairs[i].from == from && run->pairs[i].to == to)
            return &run->pairs[i];
    return NULL;
}

static void put_matrix(FILE *out, const struct bench_run *run, const char *title, size_t member)
{
    fprintf(out, "# %s, GB/s: from the rank of the row to that of the column\n", title);
    fprintf(out, "%8s", "");
    for (int to = 0; to < run->ranks; to++)
        fprintf(out, "  %8d", to);
    fputc('\n', out);
    for (int from = 0; from < run->ranks; from++) {
        fprintf(out, "%8d", from);
        for (int to = 0; to < run->ranks; to++) {
            const struct bench_pair *pair = find(run, from, to);
            if (pair)
                fprintf(out, "  %8.2f", *(const double *)((const char *)pair + member));
            else
                fprintf(out, "  %8s", from == to ? "X" : "-");
        }
        fputc('\n', out);
    }
}

static void put_slow(FILE *out, const struct bench_run *run, const struct topology *t)
{
    unsigned slow = 0;
    for (unsigned i = 0; i < run->pairs_n; i++) {
        const struct bench_pair *pair = &run->pairs[i];
        char link[8];
        pairs_link(run, t, pair->from, pair->to, link);
        double median = pairs_median(run, t, link);
        if (pair->alg_bw >= median * PAIRS_SLOW_SHARE)
            continue;
        fprintf(out,
                "# slow: rank %d to rank %d, %.2f GB/s: %.0f %% of the median of all pairs%s%s\n",
                pair->from, pair->to, pair->alg_bw, 100 * pair->alg_bw / median,
                *link ? " linked by " : "", link);
        slow++;
    }
    if (!slow)
        fprintf(out, "# no slow pair: none is below %.0f %% of the median of %s\n",
                PAIRS_SLOW_SHARE * 100, t ? "those with its kind of link" : "all");
}

static void put_wrong(FILE *out, const struct bench_run *run)
{
    for (unsigned i = 0; i < run->pairs_n; i++)
        if (run->pairs[i].wrong > 0)
            fprintf(out, "# wrong: rank %d to rank %d, %lld element%s\n", run->pairs[i].from,
                    run->pairs[i].to, (long long)run->pairs[i].wrong,
                    run->pairs[i].wrong == 1 ? "" : "s");
}

/* Of one size. */
static void put_pairs(FILE *out, const struct bench_run *run, const struct topology *t)
{
    bool both = false;
    for (unsigned i = 0; i < run->pairs_n; i++)
        both |= run->pairs[i].both_bw > 0;
    if (run->pairs_n)
        fprintf(out, "# %llu bytes from each to each, one pair at a time\n",
                (unsigned long long)run->pairs->size);
    put_matrix(out, run, "one way", offsetof(struct bench_pair, alg_bw));
    if (both)
        put_matrix(out, run, "both ways at once, the sum", offsetof(struct bench_pair, both_bw));
    put_slow(out, run, t);
    put_wrong(out, run);
}

void pairs_text(FILE *out, const struct bench_run *run, const struct topology *t)
{
    struct bench_run one = *run;
    unsigned i = 0;
    do { /* sizes come one after the other */
        one.pairs = run->pairs + i;
        for (one.pairs_n = 0; i < run->pairs_n && run->pairs[i].size == one.pairs->size; i++)
            one.pairs_n++;
        put_pairs(out, &one, t);
    } while (i < run->pairs_n);
}
