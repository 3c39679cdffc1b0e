/* SPDX-License-Identifier: MIT */
/* Every type, operation and number of ranks: what is expected is what comes out when the inputs are combined one by one, each
 * step rounded to the type, in whatever order. */
#include "../harness.h"

#include "../../worker/bench_data.h"
#include "../../worker/bench_float.h"
#include "../../worker/bench_plan.h"

#include <stdlib.h>

#define RANKS_MAX 8
#define N 300

static uint64_t load(const void *table, size_t i, size_t bytes)
{
    uint64_t bits = 0;
    memcpy(&bits, (const char *)table + i * bytes, bytes);
    return bits;
}

static bool is_signed(enum bench_type type)
{
    return type == BENCH_TYPE_INT8 || type == BENCH_TYPE_INT32 || type == BENCH_TYPE_INT64;
}

static int64_t extend(enum bench_type type, uint64_t bits)
{
    int spare = 64 - 8 * (int)bench_type_size(type);
    return (int64_t)(bits << spare) >> spare;
}

static double rounded(const struct bench_float *f, double x)
{
    return bench_float_value(f, bench_float_bits(f, x));
}

static double step(double a, double b, int op)
{
    return op == BENCH_OP_PROD  ? a * b
           : op == BENCH_OP_MIN ? (a < b ? a : b)
           : op == BENCH_OP_MAX ? (a > b ? a : b)
                                : a + b;
}

/* What the ranks in this order give. */
static uint64_t fold_floats(const struct bench_data *d, const uint64_t *in, const int *order)
{
    const struct bench_float *f = bench_float_of(d->type);
    double all = 0;
    for (int i = 0; i < d->ranks; i++) {
        double x = bench_float_value(f, in[order[i]]);
        CHECK(x == x);
        if (d->op == BENCH_OP_AVG)
            x = rounded(f, d->type == BENCH_TYPE_DOUBLE
                               ? x * (1.0 / d->ranks)
                               : (double)((float)x * (float)(1.0 / d->ranks)));
        if (d->op == BENCH_OP_MULSUM)
            x = rounded(f, x * (order[i] % 2 ? 2 : 1));
        all = i ? rounded(f, step(all, x, d->op)) : x;
    }
    return bench_float_bits(f, all);
}

static uint64_t fold_ints(const struct bench_data *d, const uint64_t *in, const int *order)
{
    size_t bytes = bench_type_size(d->type);
    uint64_t mask = UINT64_MAX >> (64 - 8 * bytes), all = 0;
    __int128 exact = 0;
    for (int i = 0; i < d->ranks; i++) {
        uint64_t x = in[order[i]] * (d->op == BENCH_OP_MULSUM && order[i] % 2 ? 2u : 1u) & mask;
        bool less = is_signed(d->type) ? extend(d->type, x) < extend(d->type, all) : x < all;
        exact += is_signed(d->type) ? (__int128)extend(d->type, x) : (__int128)x;
        if (i == 0)
            all = x;
        else if (d->op == BENCH_OP_MIN || d->op == BENCH_OP_MAX)
            all = less == (d->op == BENCH_OP_MIN) ? x : all;
        else
            all = (d->op == BENCH_OP_PROD ? all * x : all + x) & mask;
    }
    return d->op == BENCH_OP_AVG ? (uint64_t)(exact / d->ranks) & mask : all;
}

static void check_one(const struct bench_data *d, char tables[][N * BENCH_ELEMENT_BYTES],
                      const char *reduced)
{
    size_t bytes = bench_type_size(d->type);
    for (size_t i = 0; i < N; i++) {
        uint64_t in[RANKS_MAX], want = load(reduced, i, bytes);
        for (int r = 0; r < d->ranks; r++)
            in[r] = load(tables[r], i, bytes);
        for (int turn = 0; turn < 2 * d->ranks; turn++) {
            int order[RANKS_MAX];
            for (int k = 0; k < d->ranks; k++)
                order[k] = ((turn % 2 ? d->ranks - 1 - k : k) + turn / 2) % d->ranks;
            uint64_t got =
                bench_float_of(d->type) ? fold_floats(d, in, order) : fold_ints(d, in, order);
            if (bench_data_wrong(d, &got, reduced, i, 1, 1))
                test_fail(__FILE__, __LINE__, "%s %s of %d: element %zu, order %d: %llx, not %llx",
                          bench_type_text(d->type), bench_op_text(d->op), d->ranks, i, turn,
                          (unsigned long long)got, (unsigned long long)want);
        }
    }
}

TEST(every_type_operation_and_number_of_ranks_comes_out_as_expected_in_any_order)
{
    static char tables[RANKS_MAX][N * BENCH_ELEMENT_BYTES], reduced[N * BENCH_ELEMENT_BYTES];
    for (int type = 0; type < BENCH_TYPES_N; type++)
        for (int op = 0; op < BENCH_OPS_N; op++)
            for (int ranks = 1; ranks <= RANKS_MAX; ranks++) {
                struct bench_data d = {(enum bench_type)type, op, ranks,
                                       (uint64_t)(type * 64 + op * 8 + ranks)};
                for (int r = 0; r < ranks; r++)
                    bench_data_input(&d, r, tables[r], N);
                bench_data_reduced(&d, reduced, N);
                check_one(&d, tables, reduced);
            }
}

TEST(most_of_what_a_rank_puts_into_a_sum_changes_it)
{
    static char one[N * BENCH_ELEMENT_BYTES];
    const enum bench_type types[] = {BENCH_TYPE_INT8,   BENCH_TYPE_HALF,     BENCH_TYPE_FLOAT,
                                     BENCH_TYPE_DOUBLE, BENCH_TYPE_BFLOAT16, BENCH_TYPE_F8E5M2};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (int r = 0; r < RANKS_MAX; r++) {
            struct bench_data d = {types[t], BENCH_OP_SUM, RANKS_MAX, 1};
            size_t zeros = 0, bytes = bench_type_size(types[t]);
            bench_data_input(&d, r, one, N);
            for (size_t i = 0; i < N; i++)
                zeros += load(one, i, bytes) == 0;
            CHECK_INT(zeros, <, N / 2);
        }
}

TEST(ranks_seeds_and_places_have_values_of_their_own)
{
    static char a[N * BENCH_ELEMENT_BYTES], b[N * BENCH_ELEMENT_BYTES];
    struct bench_data d = {BENCH_TYPE_FLOAT, -1, 4, 1}, other = {BENCH_TYPE_FLOAT, -1, 4, 2};
    bench_data_input(&d, 0, a, N);
    bench_data_input(&d, 1, b, N);
    CHECK_INT(bench_data_wrong(&d, a, b, 0, N, 0), >, N - 10);
    bench_data_input(&other, 0, b, N);
    CHECK_INT(bench_data_wrong(&d, a, b, 0, N, 0), >, N - 10);
    CHECK_INT(bench_data_wrong(&d, a + 4, a, 0, N - 1, 0), >, N - 10);
}

TEST(every_element_is_compared_also_where_the_table_begins_again)
{
    size_t n = 3 * BENCH_PERIOD + 17, first = 1000;
    uint16_t *table = malloc(BENCH_PERIOD * BENCH_ELEMENT_BYTES), *got = malloc(n * sizeof *got);
    struct bench_data d = {BENCH_TYPE_HALF, BENCH_OP_MAX, 3, 7};
    CHECK(table && got);
    bench_data_reduced(&d, table, BENCH_PERIOD);
    for (size_t i = 0; i < n; i++)
        got[i] = table[(first + i) % BENCH_PERIOD];
    CHECK_INT(bench_data_wrong(&d, got, table, first, n, 1), ==, 0);
    const size_t places[] = {0, BENCH_PERIOD - first - 1, BENCH_PERIOD - first, n / 2, n - 1};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        got[places[i]] ^= 1;
        CHECK_INT(bench_data_wrong(&d, got, table, first, n, 1), ==, i + 1);
    }
    CHECK_INT(bench_data_wrong(&d, got, table, first + 1, n, 1), >, n - n / 100);
    free(table);
    free(got);
}

TEST(an_average_may_be_two_units_off_where_its_divisor_is_no_power_of_two)
{
    const struct bench_float *f = bench_float_of(BENCH_TYPE_HALF);
    struct bench_data three = {BENCH_TYPE_HALF, BENCH_OP_AVG, 3, 1};
    struct bench_data four = {BENCH_TYPE_HALF, BENCH_OP_AVG, 4, 1};
    uint16_t want = (uint16_t)bench_float_bits(f, 1.0), got = want + 2;
    CHECK_INT(bench_data_wrong(&three, &got, &want, 0, 1, 1), ==, 0);
    CHECK_INT(bench_data_wrong(&four, &got, &want, 0, 1, 1), ==, 1);
    got = want + 3;
    CHECK_INT(bench_data_wrong(&three, &got, &want, 0, 1, 1), ==, 1);
    got = want - 2;
    CHECK_INT(bench_data_wrong(&three, &got, &want, 0, 1, 1), ==, 0);
    got = 0x7e00; /* NaN */
    CHECK_INT(bench_data_wrong(&three, &got, &want, 0, 1, 1), ==, 1);
    want = 0;
    got = 0x8000; /* the other zero */
    CHECK_INT(bench_data_wrong(&four, &got, &want, 0, 1, 1), ==, 0);
    CHECK_INT(bench_data_wrong(&four, &got, &want, 0, 1, 0), ==, 1);
}
