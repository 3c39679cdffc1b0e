/* SPDX-License-Identifier: MIT */
/* See text.h. The formats are those of nccl-tests 2.19 (src/util.cu there): widths of 12, 12, 8, 6, 6 and then 7, 6, 6, 6 twice. */
#include "text.h"

#include <string.h>

#define MIN_BW_SHARE 0.9

bool bench_fast_enough(const struct bench_run *run, double min_bw)
{
    return min_bw < 0 || bench_average(run) >= min_bw * MIN_BW_SHARE;
}

static void put_notes(FILE *out, const struct bench_run *run, unsigned from)
{
    for (unsigned i = from; i < run->notes_n; i++)
        fprintf(out, "%s# %s\n", i == 0 ? "#\n" : "", run->notes[i]);
}

static void put_device(FILE *out, const struct bench_device *d)
{
    /* "0000:18:00.0": the function is left out */
    int bus_n = (int)strcspn(d->bus, ".");
    fprintf(out, "#  Rank %2d Group %2d Pid %6ld on %10s device %2d [%.*s] %s\n", d->rank, 0,
            d->pid, d->host, d->device, bus_n ? bus_n : 4, bus_n ? d->bus : "host",
            *d->name ? d->name : "host memory");
}

void bench_text_header(FILE *out, const struct bench_run *run)
{
    const char *name = bench_collective_name(run->collective);
    bool factor = run->step_factor > 1;
    if (run->host)
        fprintf(out,
                "# launch bench " LAUNCH_RELEASE ": host memory of %d process%s, through shared "
                "memory: no GPU, no NCCL\n",
                run->ranks, run->ranks == 1 ? "" : "es");
    else
        fprintf(out,
                "# launch bench " LAUNCH_RELEASE
                ": %d process%s, a GPU each, nccl-headers=%d nccl-library=%d\n",
                run->ranks, run->ranks == 1 ? "" : "es", run->nccl_headers, run->nccl_library);
    fprintf(out, "# Collective test starting: %s_perf\n", name);
    fprintf(out,
            "# nThread 1 nGpus 1 minBytes %llu maxBytes %llu step: %llu(%s) warmup iters: %d "
            "iters: %d agg iters: 1 validation: %d graph: 0 unalign: 0\n#\n# Using devices\n",
            (unsigned long long)run->min_bytes, (unsigned long long)run->max_bytes,
            (unsigned long long)(factor ? run->step_factor : run->step_bytes),
            factor ? "factor" : "bytes", run->warmup, run->iterations, run->check);
    for (int rank = 0; rank < run->ranks; rank++) {
        const struct bench_device *d = bench_device_of(run, rank);
        if (d)
            put_device(out, d);
    }
    put_notes(out, run, 0);
    fputs("#\n", out);
}

static void put_heads(FILE *out, const char *const heads[13])
{
    static const int width[13] = {10, 12, 8, 6, 6, 7, 6, 6, 6, 7, 6, 6, 6};
    fputc('#', out);
    for (int i = 0; i < 13; i++)
        fprintf(out, "%s%*s", i ? "  " : " ", width[i], heads[i]);
    fputs(" \n", out);
}

void bench_text_columns(FILE *out)
{
    static const char *const names[13] = {"size",  "count", "type",  "redop",  "root",
                                          "time",  "algbw", "busbw", "#wrong", "time",
                                          "algbw", "busbw", "#wrong"};
    static const char *const units[13] = {"(B)",    "(elements)", "",       "", "",
                                          "(us)",   "(GB/s)",     "(GB/s)", "", "(us)",
                                          "(GB/s)", "(GB/s)",     ""};
    fprintf(out,
            "# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place     "
            "     \n",
            "", "", "", "", "");
    put_heads(out, names);
    put_heads(out, units);
}

/* With as many decimals as fit. */
static const char *fit(double value, int width, char text[32])
{
    for (int decimals = 2; decimals >= 0; decimals--)
        if (snprintf(text, 32, "%*.*f", width, decimals, value) == width)
            return text;
    snprintf(text, 32, "%*.*e", width, width >= 7, value);
    return text;
}

static void put_half(FILE *out, const struct bench_half *half)
{
    char time[32], alg[32], bus[32];
    fprintf(out, "  %s  %s  %s", fit(half->time, 7, time), fit(half->alg_bw, 6, alg),
            fit(half->bus_bw, 6, bus));
    if (half->wrong < 0)
        fputs("    N/A", out);
    else
        fprintf(out, "  %6g", (double)half->wrong);
}

void bench_text_result(FILE *out, const struct bench_result *result)
{
    fprintf(out, "%12llu  %12llu  %8s  %6s  %6d", (unsigned long long)result->size,
            (unsigned long long)result->count, bench_type_name(result->type),
            bench_op_name(result->op), result->root);
    put_half(out, &result->out_of_place);
    if (result->has_in_place)
        put_half(out, &result->in_place);
    else
        fprintf(out, "  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A");
    fputc('\n', out);
}

/* From which size on, and which part at least, if the check was a sample. */
static void put_sampled(FILE *out, const struct bench_run *run)
{
    uint64_t from = UINT64_MAX;
    double least = 1;
    for (unsigned i = 0; i < run->results_n; i++) {
        const struct bench_result *r = &run->results[i];
        double checked = r->out_of_place.wrong < 0 ? 1 : r->out_of_place.checked;
        if (r->has_in_place && r->in_place.wrong >= 0 && r->in_place.checked < checked)
            checked = r->in_place.checked;
        from = checked < 1 && r->size < from ? r->size : from;
        least = checked < least ? checked : least;
    }
    if (least < 1)
        fprintf(out,
                "# Checked by a sample  : from %llu bytes on, at least %.2g %% of the elements\n",
                (unsigned long long)from, least * 100);
}

void bench_text_footer(FILE *out, const struct bench_run *run, double min_bw, unsigned notes)
{
    int wrong = bench_wrong(run);
    fprintf(out, "# %-20s : %d %s\n", "Out of bounds values", wrong, wrong ? "FAILED" : "OK");
    fprintf(out, "# %-20s : %g %s\n", "Avg bus bandwidth", bench_average(run),
            min_bw < 0                       ? ""
            : bench_fast_enough(run, min_bw) ? "OK"
                                             : "FAILED");
    put_sampled(out, run);
    put_notes(out, run, notes);
    fprintf(out, "#\n# Collective test concluded: %s_perf\n#\n\n",
            bench_collective_name(run->collective));
}
