/* SPDX-License-Identifier: MIT */
#include "bench_float.h"

#include <math.h>
#include <string.h>

static const struct bench_float FLOATS[BENCH_TYPES_N] = {
    [BENCH_TYPE_HALF] = {5, 10, false},    [BENCH_TYPE_FLOAT] = {8, 23, false},
    [BENCH_TYPE_DOUBLE] = {11, 52, false}, [BENCH_TYPE_BFLOAT16] = {8, 7, false},
    [BENCH_TYPE_F8E4M3] = {4, 3, true},    [BENCH_TYPE_F8E5M2] = {5, 2, false},
};

const struct bench_float *bench_float_of(enum bench_type type)
{
    return FLOATS[type].exponent ? &FLOATS[type] : NULL;
}

static uint64_t exponents(const struct bench_float *f)
{
    return (UINT64_C(1) << f->exponent) - 1;
}

static int least_exponent(const struct bench_float *f)
{
    return 2 - (1 << (f->exponent - 1));
}

/* Of the numbers without their sign, the first that is none. */
static uint64_t first_infinite(const struct bench_float *f)
{
    uint64_t infinity = exponents(f) << f->mantissa;
    return f->no_infinity ? infinity | ((UINT64_C(1) << f->mantissa) - 1) : infinity;
}

/* The two that the machine has itself are quicker so. */
static bool is_native(const struct bench_float *f)
{
    return f->exponent >= 8 && f->mantissa >= 23;
}

static double native_value(const struct bench_float *f, uint64_t bits)
{
    double value;
    float single;
    memcpy(&value, &bits, sizeof value);
    memcpy(&single, &bits, sizeof single); /* little-endian */
    return f->mantissa == 23 ? (double)single : value;
}

static uint64_t native_bits(const struct bench_float *f, double value)
{
    uint64_t bits = 0;
    float single = (float)value;
    if (f->mantissa == 23)
        memcpy(&bits, &single, sizeof single);
    else
        memcpy(&bits, &value, sizeof value);
    return bits;
}

double bench_float_value(const struct bench_float *f, uint64_t bits)
{
    if (is_native(f))
        return native_value(f, bits);
    uint64_t sign = bits >> (f->exponent + f->mantissa) & 1;
    uint64_t exponent = bits >> f->mantissa & exponents(f);
    uint64_t mantissa = bits & ((UINT64_C(1) << f->mantissa) - 1);
    double value;
    if ((bits & ~(sign << (f->exponent + f->mantissa))) >= first_infinite(f)) {
        value = f->no_infinity || mantissa ? NAN : INFINITY;
    } else {
        uint64_t whole = mantissa | (exponent ? UINT64_C(1) << f->mantissa : 0);
        value = ldexp((double)whole,
                      least_exponent(f) - f->mantissa + (exponent ? (int)exponent - 1 : 0));
    }
    return sign ? -value : value;
}

/* Mantissa and exponent side by side count through the numbers: what rounding carries out of the one goes into the other. */
uint64_t bench_float_bits(const struct bench_float *f, double value)
{
    uint64_t sign = (uint64_t)(signbit(value) != 0) << (f->exponent + f->mantissa);
    uint64_t infinite = first_infinite(f);
    if (isnan(value))
        return f->no_infinity ? infinite : infinite | UINT64_C(1) << (f->mantissa - 1);
    if (isinf(value))
        return sign | infinite;
    if (is_native(f))
        return native_bits(f, value);
    int exponent = 0;
    frexp(value, &exponent);
    exponent = value == 0 || exponent - 1 < least_exponent(f) ? least_exponent(f) : exponent - 1;
    double whole = rint(ldexp(fabs(value), f->mantissa - exponent));
    uint64_t bits = ((uint64_t)(exponent - least_exponent(f)) << f->mantissa) + (uint64_t)whole;
    return sign | (bits < infinite ? bits : infinite);
}
