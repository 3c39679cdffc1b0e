/* SPDX-License-Identifier: MIT */
#include "bench_data.h"

#include "bench_float.h"
#include "bench_plan.h"

#include <stdbool.h>
#include <string.h>

#define AVERAGE_ULPS 2
#define PROD_SCALED 4 /* ranks whose factor is not 1 or -1 */

/* ---- numbers that look random ---- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Of an element, the same on all ranks. */
static uint64_t hash_element(const struct bench_data *d, size_t i)
{
    return mix(d->seed * UINT64_C(0x9e3779b97f4a7c15) + i + 1);
}

static uint64_t hash_rank(uint64_t element, int rank)
{
    return mix(element + ((uint64_t)rank + 1) * UINT64_C(0xd1342543de82ef95));
}

/* The ranks in an order that is the element's own. */
static uint64_t turn(const struct bench_data *d, uint64_t element, int rank)
{
    return ((uint64_t)rank + (element >> 40)) % (uint64_t)d->ranks;
}

/* ---- elements as bits ---- */

static int width(const struct bench_data *d)
{
    return 8 * (int)bench_type_size(d->type);
}

static uint64_t load(const void *table, size_t i, size_t bytes)
{
    uint64_t bits = 0;
    memcpy(&bits, (const char *)table + i * bytes, bytes); /* little-endian, as all GPUs' hosts */
    return bits;
}

static void store(void *table, size_t i, size_t bytes, uint64_t bits)
{
    memcpy((char *)table + i * bytes, &bits, bytes);
}

static bool is_signed(enum bench_type type)
{
    return type == BENCH_TYPE_INT8 || type == BENCH_TYPE_INT32 || type == BENCH_TYPE_INT64;
}

/* With one rank nothing is calculated. */
static int op_of(const struct bench_data *d)
{
    return d->ranks == 1 ? -1 : d->op;
}

/* ---- integers: two's complement of 64 bits ---- */

static uint64_t extend(const struct bench_data *d, uint64_t bits)
{
    int spare = 64 - width(d);
    return is_signed(d->type) ? (uint64_t)((int64_t)(bits << spare) >> spare)
                              : bits << spare >> spare;
}

static uint64_t int_input(const struct bench_data *d, int rank, uint64_t element)
{
    uint64_t hash = hash_rank(element, rank);
    if (op_of(d) == BENCH_OP_PROD)
        return extend(d, hash | 1); /* never 0, for all that follows would be 0 */
    if (op_of(d) != BENCH_OP_AVG)
        return extend(d, hash);
    uint64_t greatest = (UINT64_MAX >> (64 - width(d))) >> (is_signed(d->type) ? 1 : 0);
    uint64_t bound = greatest / (uint64_t)d->ranks;
    return is_signed(d->type) ? hash % (2 * bound + 1) - bound : hash % (bound + 1);
}

static uint64_t int_scalar(int rank)
{
    return rank % 2 ? 2 : 1;
}

static uint64_t int_fold(const struct bench_data *d, uint64_t a, uint64_t b)
{
    bool less = is_signed(d->type) ? (int64_t)a < (int64_t)b : a < b;
    switch (d->op) {
    case BENCH_OP_PROD:
        return a * b;
    case BENCH_OP_MIN:
        return less ? a : b;
    case BENCH_OP_MAX:
        return less ? b : a;
    default:
        return a + b;
    }
}

static uint64_t int_reduced(const struct bench_data *d, uint64_t element)
{
    uint64_t all = 0;
    for (int r = 0; r < d->ranks; r++) {
        uint64_t x = int_input(d, r, element) * (d->op == BENCH_OP_MULSUM ? int_scalar(r) : 1);
        all = r ? int_fold(d, all, x) : x;
    }
    if (d->op != BENCH_OP_AVG)
        return all;
    return is_signed(d->type) ? (uint64_t)((int64_t)all / d->ranks) : all / (uint64_t)d->ranks;
}

/* ---- floating-point numbers: calculated in double, which is exact ---- */

static double power_of_2(int exponent)
{
    return exponent < 0 ? 1.0 / (double)(1 << -exponent) : (double)(1 << exponent);
}

static bool is_power_of_2(int n)
{
    return (n & (n - 1)) == 0;
}

/* Any finite number but 0, from the middle half of the exponents. */
static double any_number(const struct bench_float *f, uint64_t hash)
{
    uint64_t half = UINT64_C(1) << (f->exponent - 1);
    uint64_t exponent = half / 2 + (hash >> 32) % half;
    uint64_t mantissa = mix(hash) & ((UINT64_C(1) << f->mantissa) - 1);
    return bench_float_value(f, ((hash & 1) << f->exponent | exponent) << f->mantissa | mantissa);
}

static double whole_number(const struct bench_data *d, const struct bench_float *f,
                           uint64_t element, int rank)
{
    uint64_t room = (UINT64_C(2) << f->mantissa) / (d->op == BENCH_OP_MULSUM ? 2 : 1);
    uint64_t n = (uint64_t)d->ranks, bound = n <= room ? room / n : 1;
    if (n > room && turn(d, element, rank) >= room)
        return 0;
    int64_t k = (int64_t)(hash_rank(element, rank) % (2 * bound + 1)) - (int64_t)bound;
    int scale = d->op == BENCH_OP_AVG ? (int)(element & 3) : (int)(element & 7) - 3;
    return (double)k * power_of_2(scale);
}

static double factor(const struct bench_data *d, const struct bench_float *f, uint64_t element,
                     int rank)
{
    uint64_t hash = hash_rank(element, rank), place = turn(d, element, rank);
    double x = place < PROD_SCALED ? power_of_2((int)((hash >> 32) % 3) - 1) : 1;
    if (place == 0) {
        uint64_t one = UINT64_C(1) << f->mantissa;
        x *= (double)(one | (mix(hash) & (one - 1))) / (double)one;
    }
    return hash & 1 ? -x : x;
}

static double float_input(const struct bench_data *d, const struct bench_float *f, int rank,
                          uint64_t element)
{
    uint64_t hash = hash_rank(element, rank);
    switch (op_of(d)) {
    case BENCH_OP_PROD:
        return factor(d, f, element, rank);
    case BENCH_OP_AVG:
        if (!is_power_of_2(d->ranks))
            return turn(d, element, rank) < 2
                       ? (double)(1 + (hash & ((UINT64_C(1) << f->mantissa) - 1)))
                       : 0;
        return whole_number(d, f, element, rank);
    case BENCH_OP_SUM:
    case BENCH_OP_MULSUM:
        return whole_number(d, f, element, rank);
    default:
        return any_number(f, hash);
    }
}

/* x / ranks as NCCL does it: times the inverse, rounded to the type. */
static double divided(const struct bench_data *d, const struct bench_float *f, double x)
{
    double product = d->type == BENCH_TYPE_DOUBLE ? x * (1.0 / d->ranks)
                                                  : (double)((float)x * (float)(1.0 / d->ranks));
    return bench_float_value(f, bench_float_bits(f, product));
}

static double float_reduced(const struct bench_data *d, const struct bench_float *f,
                            uint64_t element)
{
    double all = 0;
    for (int r = 0; r < d->ranks; r++) {
        double x = float_input(d, f, r, element);
        if (d->op == BENCH_OP_MULSUM)
            x *= (double)int_scalar(r);
        if (d->op == BENCH_OP_AVG)
            x = divided(d, f, x);
        if (r == 0)
            all = x;
        else if (d->op == BENCH_OP_PROD)
            all *= x;
        else if (d->op == BENCH_OP_MIN)
            all = x < all ? x : all;
        else if (d->op == BENCH_OP_MAX)
            all = x > all ? x : all;
        else
            all += x;
    }
    return all;
}

/* ---- tables ---- */

void bench_data_input(const struct bench_data *d, int rank, void *table, size_t n)
{
    const struct bench_float *f = bench_float_of(d->type);
    size_t bytes = bench_type_size(d->type);
    for (size_t i = 0; i < n; i++) {
        uint64_t element = hash_element(d, i);
        store(table, i, bytes,
              f ? bench_float_bits(f, float_input(d, f, rank, element))
                : int_input(d, rank, element));
    }
}

void bench_data_reduced(const struct bench_data *d, void *table, size_t n)
{
    if (op_of(d) < 0) {
        bench_data_input(d, 0, table, n);
        return;
    }
    const struct bench_float *f = bench_float_of(d->type);
    size_t bytes = bench_type_size(d->type);
    for (size_t i = 0; i < n; i++) {
        uint64_t element = hash_element(d, i);
        store(table, i, bytes,
              f ? bench_float_bits(f, float_reduced(d, f, element)) : int_reduced(d, element));
    }
}

void bench_data_scalar(const struct bench_data *d, int rank, void *ret_scalar)
{
    const struct bench_float *f = bench_float_of(d->type);
    uint64_t one_or_two = int_scalar(rank);
    store(ret_scalar, 0, bench_type_size(d->type),
          f ? bench_float_bits(f, (double)one_or_two) : one_or_two);
}

/* ---- comparison ---- */

/* Places between two numbers on the line of all numbers; both zeros are one place. */
static uint64_t distance(const struct bench_float *f, uint64_t a, uint64_t b)
{
    uint64_t sign = UINT64_C(1) << (f->exponent + f->mantissa);
    uint64_t ranked_a = a & sign ? sign - (a & ~sign) : sign + a;
    uint64_t ranked_b = b & sign ? sign - (b & ~sign) : sign + b;
    return ranked_a < ranked_b ? ranked_b - ranked_a : ranked_a - ranked_b;
}

static bool differs(const struct bench_float *f, uint64_t got, uint64_t want, uint64_t ulps)
{
    if (got == want)
        return false;
    double value = f ? bench_float_value(f, got) : 0;
    return !f || value != value || distance(f, got, want) > ulps;
}

size_t bench_data_wrong(const struct bench_data *d, const void *got, const void *table,
                        size_t first, size_t n, int reduced)
{
    const struct bench_float *f = reduced ? bench_float_of(d->type) : NULL;
    uint64_t ulps = op_of(d) == BENCH_OP_AVG && !is_power_of_2(d->ranks) ? AVERAGE_ULPS : 0;
    size_t bytes = bench_type_size(d->type), wrong = 0;

    for (size_t done = 0; done < n;) {
        size_t at = (first + done) % BENCH_PERIOD, run = BENCH_PERIOD - at;
        const char *have = (const char *)got + done * bytes;
        const char *want = (const char *)table + at * bytes;
        if (run > n - done)
            run = n - done;
        if (memcmp(have, want, run * bytes) != 0)
            for (size_t i = 0; i < run; i++)
                wrong += differs(f, load(have, i, bytes), load(want, i, bytes), ulps);
        done += run;
    }
    return wrong;
}
