/* SPDX-License-Identifier: MIT */
/* The job's command line: `launch bench` has read the user's, but who knows who calls. */
#include "bench.h"

#include <stdio.h>
#include <string.h>

#define COUNT_MAX 1000000000u
#define BYTES_MAX (UINT64_C(1) << 48)

static const char *collective_text(int i)
{
    return bench_collective_text((enum bench_collective)i);
}

static const char *type_text(int i)
{
    return bench_type_text((enum bench_type)i);
}

/* The number of the name, or -1. */
static int find(const char *text, const char *(*name)(int i), int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(text, name(i)) == 0)
            return i;
    return -1;
}

static bool read_number(const char *text, uint64_t max, uint64_t *ret)
{
    uint64_t value = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || value > max)
            return false;
        value = value * 10 + (uint64_t)(*text - '0');
    }
    *ret = value;
    return value <= max;
}

static bool read_count(const char *text, unsigned *ret)
{
    uint64_t value;
    if (!read_number(text, COUNT_MAX, &value))
        return false;
    *ret = (unsigned)value;
    return true;
}

/* "all" is -1. */
static bool read_name(const char *text, const char *(*name)(int i), int n, int *ret)
{
    *ret = strcmp(text, "all") == 0 ? -1 : find(text, name, n);
    return *ret >= 0 || strcmp(text, "all") == 0;
}

static bool read_root(const char *text, int *ret)
{
    uint64_t value = 0;
    bool all = strcmp(text, "all") == 0;
    if (!all && !read_number(text, INT32_MAX, &value))
        return false;
    *ret = all ? -1 : (int)value;
    return true;
}

static bool read_option(struct bench_options *o, char letter, const char *text)
{
    switch (letter) {
    case 'b':
        return read_number(text, BYTES_MAX, &o->min_bytes);
    case 'e':
        return read_number(text, BYTES_MAX, &o->max_bytes);
    case 'i':
        o->step_factor = 0;
        return read_number(text, BYTES_MAX, &o->step_bytes) && o->step_bytes;
    case 'f':
        o->step_bytes = 0;
        return read_number(text, BYTES_MAX, &o->step_factor) && o->step_factor > 1;
    case 'n':
        return read_count(text, &o->iterations) && o->iterations;
    case 'w':
        return read_count(text, &o->warm_ups);
    case 'c':
        return read_count(text, &o->checks);
    case 'T':
        return read_count(text, &o->timeout_s);
    case 'd':
        return read_name(text, type_text, BENCH_TYPES_N, &o->type);
    case 'o':
        return read_name(text, bench_op_text, BENCH_OPS_N, &o->op);
    case 'r':
        return read_root(text, &o->root);
    default:
        return false;
    }
}

static int refuse(char *ret_why, size_t size, const char *what, const char *text)
{
    snprintf(ret_why, size, "launch-bench: %s '%.60s'", what, text);
    return -1;
}

int bench_options_parse(struct bench_options *o, int argc, char **argv, char *ret_why, size_t size)
{
    *o = (struct bench_options){.min_bytes = 32 << 20,
                                .max_bytes = 32 << 20,
                                .step_bytes = 1 << 20,
                                .iterations = 20,
                                .warm_ups = 1,
                                .checks = 1,
                                .type = BENCH_TYPE_FLOAT,
                                .op = BENCH_OP_SUM};
    if (argc < 2)
        return refuse(ret_why, size, "a collective or 'check' is missing after", "launch-bench");
    o->check = strcmp(argv[1], "check") == 0;
    if (o->check)
        return argc == 2 ? 0 : refuse(ret_why, size, "check has no options, not", argv[2]);
    int collective = find(argv[1], collective_text, BENCH_COLLECTIVES_N);
    if (collective < 0)
        return refuse(ret_why, size, "no such collective:", argv[1]);
    o->collective = (enum bench_collective)collective;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--pairs") == 0) {
            o->pairs = true;
            continue;
        }
        if (argv[i][0] != '-' || !argv[i][1] || argv[i][2] || !argv[i + 1] ||
            !read_option(o, argv[i][1], argv[i + 1]))
            return refuse(ret_why, size, "not an option with its value:", argv[i]);
        i++;
    }
    if (o->min_bytes > o->max_bytes)
        return refuse(ret_why, size, "-e is less than", "-b");
    if (o->min_bytes == 0 && o->step_factor)
        return refuse(ret_why, size, "-f gets nowhere from", "-b 0");
    return 0;
}
