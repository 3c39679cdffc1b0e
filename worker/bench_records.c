/* SPDX-License-Identifier: MIT */
/* The records that rank 0 writes: JSON, a line each, flushed at once. */
#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void put_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void end_line(void)
{
    puts("}}");
    fflush(stdout);
}

void bench_record_head(const struct bench *b)
{
    const struct bench_options *o = &b->o;
    int library = 0, headers = 0, runtime = 0, driver = 0;
    if (b->rank)
        return;
    b->on->versions(&library, &headers, &runtime, &driver);
    printf("{\"bench\": {\"version\": %d, \"backend\": \"%s\", \"collective\": \"%s\", "
           "\"ranks\": %d, \"library\": %d, \"headers\": %d, \"min_bytes\": %llu, "
           "\"max_bytes\": %llu, \"step_%s\": %llu, \"iterations\": %u, \"warmup\": %u, "
           "\"check\": %u, \"runtime\": %d, \"driver\": %d",
           BENCH_RECORDS_VERSION, b->on->name, bench_collective_text(o->collective), b->ranks,
           library, headers, (unsigned long long)o->min_bytes, (unsigned long long)o->max_bytes,
           o->step_factor ? "factor" : "bytes",
           (unsigned long long)(o->step_factor ? o->step_factor : o->step_bytes), o->iterations,
           o->warm_ups, o->checks, runtime, driver);
    end_line();
}

void bench_record_device(const struct bench *b, const struct bench_device *device)
{
    if (b->rank)
        return;
    printf("{\"device\": {\"rank\": %d, \"pid\": %ld, \"host\": ", device->rank, device->pid);
    put_text(device->host);
    printf(", \"device\": %d, \"bus\": ", device->device);
    put_text(device->bus);
    printf(", \"name\": ");
    put_text(device->name);
    printf(", \"uuid\": ");
    put_text(device->uuid);
    end_line();
}

void bench_record_note(const struct bench *b, const char *format, ...)
{
    char text[300];
    va_list args;
    if (b->rank)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("{\"note\": ");
    put_text(text);
    puts("}");
    fflush(stdout);
}

static void put_what(const struct bench_plan *p)
{
    printf("\"type\": \"%s\", \"redop\": \"%s\", \"root\": %d", bench_type_text(p->type),
           bench_op_text(p->op), p->root);
}

void bench_record_at(const struct bench *b, const struct bench_plan *p)
{
    if (b->rank)
        return;
    printf("{\"at\": {\"size\": %zu, ", bench_plan_bytes(p));
    put_what(p);
    end_line();
}

static void put_wrong(int64_t wrong)
{
    if (wrong < 0)
        printf("null");
    else
        printf("%lld", (long long)wrong);
}

static void put_half(const struct bench_plan *p, const struct bench_half *half)
{
    double bus, alg = bench_plan_bandwidth(p, half->seconds, &bus);
    printf("{\"time\": %.9g, \"alg_bw\": %.9g, \"bus_bw\": %.9g, \"nwrong\": ", half->seconds * 1e6,
           alg, bus);
    put_wrong(half->wrong);
    printf(", \"checked\": %d}", half->wrong >= 0);
}

void bench_record_result(const struct bench *b, const struct bench_plan *p,
                         const struct bench_half halves[2])
{
    if (b->rank)
        return;
    printf("{\"result\": {\"size\": %zu, \"count\": %zu, ", bench_plan_bytes(p), p->count);
    put_what(p);
    printf(", \"out_of_place\": ");
    put_half(p, &halves[0]);
    printf(", \"in_place\": ");
    put_half(p, &halves[1]);
    end_line();
}

void bench_record_pair(const struct bench *b, const struct bench_plan *p, int from, int to,
                       const struct bench_half *one_way, double both_seconds)
{
    double bus, bandwidth = bench_plan_bandwidth(p, one_way->seconds, &bus);
    if (b->rank)
        return;
    printf("{\"pair\": {\"from\": %d, \"to\": %d, \"size\": %zu, \"time\": %.9g, "
           "\"alg_bw\": %.9g, \"both_bw\": %.9g, \"nwrong\": ",
           from, to, bench_plan_bytes(p), one_way->seconds * 1e6, bandwidth,
           2 * bench_plan_bandwidth(p, both_seconds, &bus));
    put_wrong(one_way->wrong);
    end_line();
}

void bench_record_end(const struct bench *b)
{
    if (b->rank)
        return;
    printf("{\"end\": {\"wrong\": %d, \"timeout\": false", b->halves_wrong);
    end_line();
}
