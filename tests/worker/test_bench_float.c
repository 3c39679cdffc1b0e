/* SPDX-License-Identifier: MIT */
/* Every number of the small types, both ways. */
#include "../harness.h"

#include "../../worker/bench_float.h"

#include <math.h>
#include <stdio.h>

static const struct {
    enum bench_type type;
    int exponent, mantissa, bias;
    double greatest, least; /* least: above 0 */
} FORMATS[] = {
    {BENCH_TYPE_HALF, 5, 10, 15, 65504, 0x1p-24},
    {BENCH_TYPE_BFLOAT16, 8, 7, 127, 0x1.fep127, 0x1p-133},
    {BENCH_TYPE_F8E4M3, 4, 3, 7, 448, 0x1p-9},
    {BENCH_TYPE_F8E5M2, 5, 2, 15, 57344, 0x1p-16},
};

/* By the definition of such types. */
static double by_definition(size_t i, unsigned bits)
{
    unsigned ones = (1u << FORMATS[i].exponent) - 1, parts = 1u << FORMATS[i].mantissa;
    unsigned exponent = bits / parts & ones, mantissa = bits % parts;
    double value = exponent
                       ? (1 + (double)mantissa / parts) * pow(2, (int)exponent - FORMATS[i].bias)
                       : (double)mantissa / parts * pow(2, 1 - FORMATS[i].bias);
    if (FORMATS[i].type == BENCH_TYPE_F8E4M3)
        value = exponent == ones && mantissa == parts - 1 ? NAN : value;
    else if (exponent == ones)
        value = mantissa ? NAN : INFINITY;
    return bits / parts / (ones + 1) ? -value : value;
}

TEST(every_bit_pattern_has_the_value_of_its_definition_and_comes_back)
{
    for (size_t i = 0; i < sizeof FORMATS / sizeof FORMATS[0]; i++) {
        const struct bench_float *f = bench_float_of(FORMATS[i].type);
        unsigned all = 1u << (1 + FORMATS[i].exponent + FORMATS[i].mantissa);
        for (unsigned bits = 0; bits < all; bits++) {
            double want = by_definition(i, bits), value = bench_float_value(f, bits);
            CHECK(value == want || (isnan(value) && isnan(want)));
            CHECK_INT(signbit(value) != 0, ==, bits >= all / 2);
            if (!isnan(want))
                CHECK_INT(bench_float_bits(f, value), ==, bits);
            else
                CHECK(isnan(bench_float_value(f, bench_float_bits(f, value))));
        }
    }
}

TEST(what_lies_between_two_numbers_goes_to_the_nearest_and_to_the_even_one_of_two)
{
    for (size_t i = 0; i < sizeof FORMATS / sizeof FORMATS[0]; i++) {
        const struct bench_float *f = bench_float_of(FORMATS[i].type);
        for (unsigned bits = 0; bench_float_value(f, bits) < FORMATS[i].greatest; bits++) {
            double low = bench_float_value(f, bits), high = bench_float_value(f, bits + 1);
            double middle = (low + high) / 2;
            CHECK_INT(bench_float_bits(f, middle), ==, bits + bits % 2);
            CHECK_INT(bench_float_bits(f, nextafter(middle, high)), ==, bits + 1);
            CHECK_INT(bench_float_bits(f, nextafter(middle, low)), ==, bits);
            CHECK(bench_float_value(f, bench_float_bits(f, -middle)) ==
                  -bench_float_value(f, bits + bits % 2));
        }
    }
}

TEST(the_ends_of_each_type_are_known)
{
    for (size_t i = 0; i < sizeof FORMATS / sizeof FORMATS[0]; i++) {
        const struct bench_float *f = bench_float_of(FORMATS[i].type);
        CHECK(bench_float_value(f, 1) == FORMATS[i].least);
        CHECK(bench_float_value(f, bench_float_bits(f, FORMATS[i].greatest)) ==
              FORMATS[i].greatest);
        double beyond = bench_float_value(f, bench_float_bits(f, FORMATS[i].greatest * 2));
        CHECK(FORMATS[i].type == BENCH_TYPE_F8E4M3 ? isnan(beyond) : isinf(beyond));
        CHECK(bench_float_value(f, bench_float_bits(f, FORMATS[i].least / 4)) == 0);
    }
}

TEST(integers_are_no_floating_point_types)
{
    for (int type = 0; type < BENCH_TYPES_N; type++)
        CHECK((bench_float_of((enum bench_type)type) != NULL) == (type >= BENCH_TYPE_HALF));
}

TEST(single_and_double_are_the_machines_own)
{
    const double values[] = {0, -0.0, 1, -1.5, 0x1p-149, 0x1.fffffep127, INFINITY};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        uint32_t single;
        uint64_t bits;
        float x = (float)values[i];
        memcpy(&single, &x, sizeof single);
        memcpy(&bits, &values[i], sizeof bits);
        CHECK(bench_float_bits(bench_float_of(BENCH_TYPE_FLOAT), values[i]) == single);
        CHECK(bench_float_bits(bench_float_of(BENCH_TYPE_DOUBLE), values[i]) == bits);
        CHECK(bench_float_value(bench_float_of(BENCH_TYPE_FLOAT), single) == values[i]);
        CHECK(bench_float_value(bench_float_of(BENCH_TYPE_DOUBLE), bits) == values[i]);
    }
}
