/* SPDX-License-Identifier: MIT */
/* The floating-point types of NCCL as bits: what a value looks like in each. Pure. */
#ifndef LAUNCH_WORKER_BENCH_FLOAT_H
#define LAUNCH_WORKER_BENCH_FLOAT_H

#include "../proto/bench.h"

#include <stdbool.h>
#include <stdint.h>

struct bench_float {
    int exponent, mantissa; /* bits; 0 exponent bits: no floating-point type */
    bool no_infinity;       /* f8e4m3: the greatest exponent has numbers, too, and one NaN */
};

/* NULL: an integer. */
const struct bench_float *bench_float_of(enum bench_type type);

/* Exact: every type fits a double. */
double bench_float_value(const struct bench_float *f, uint64_t bits);

/* The nearest, of two the even one; too great: infinity, or NaN where there is none. NaN is quiet and positive. */
uint64_t bench_float_bits(const struct bench_float *f, double value);

#endif
