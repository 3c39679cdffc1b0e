/* SPDX-License-Identifier: MIT */
/* As the real one: rounded to the type after every step, avg is a product before or a division after. */
#include "nccl_types.h"

#include "../../worker/bench_float.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const enum bench_type TYPES[ncclNumTypes] = {
    [ncclInt8] = BENCH_TYPE_INT8,         [ncclUint8] = BENCH_TYPE_UINT8,
    [ncclInt32] = BENCH_TYPE_INT32,       [ncclUint32] = BENCH_TYPE_UINT32,
    [ncclInt64] = BENCH_TYPE_INT64,       [ncclUint64] = BENCH_TYPE_UINT64,
    [ncclFloat16] = BENCH_TYPE_HALF,      [ncclFloat32] = BENCH_TYPE_FLOAT,
    [ncclFloat64] = BENCH_TYPE_DOUBLE,    [ncclBfloat16] = BENCH_TYPE_BFLOAT16,
    [ncclFloat8e4m3] = BENCH_TYPE_F8E4M3, [ncclFloat8e5m2] = BENCH_TYPE_F8E5M2,
};

static const struct bench_float *format(ncclDataType_t type)
{
    return bench_float_of(TYPES[type]);
}

size_t fake_nccl_type_bytes(ncclDataType_t type)
{
    static const size_t BYTES[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return (unsigned)type < ncclNumTypes ? BYTES[type] : 0;
}

/* `wide`: the type to calculate in, unsigned for integers so that they wrap round. */
#define REDUCE(type, wide)                                                                         \
    do {                                                                                           \
        type *a = to;                                                                              \
        const type *b = from;                                                                      \
        for (size_t i = 0; i < n; i++)                                                             \
            a[i] = op == ncclProd  ? (type)((wide)a[i] * (wide)b[i])                               \
                   : op == ncclMax ? (a[i] > b[i] ? a[i] : b[i])                                   \
                   : op == ncclMin ? (a[i] < b[i] ? a[i] : b[i])                                   \
                                   : (type)((wide)a[i] + (wide)b[i]);                              \
    } while (0)

static uint64_t load(const void *data, size_t i, size_t bytes)
{
    uint64_t bits = 0;
    memcpy(&bits, (const char *)data + i * bytes, bytes);
    return bits;
}

static void store(void *data, size_t i, size_t bytes, uint64_t bits)
{
    memcpy((char *)data + i * bytes, &bits, bytes);
}

static double combine(double a, double b, ncclRedOp_t op)
{
    return op == ncclProd  ? a * b
           : op == ncclMax ? (a > b ? a : b)
           : op == ncclMin ? (a < b ? a : b)
                           : a + b;
}

static void reduce_small_floats(void *to, const void *from, size_t n, ncclDataType_t type,
                                ncclRedOp_t op)
{
    const struct bench_float *f = format(type);
    size_t bytes = fake_nccl_type_bytes(type);
    for (size_t i = 0; i < n; i++)
        store(to, i, bytes,
              bench_float_bits(f, combine(bench_float_value(f, load(to, i, bytes)),
                                          bench_float_value(f, load(from, i, bytes)), op)));
}

void fake_nccl_reduce(void *to, const void *from, size_t n, ncclDataType_t type, ncclRedOp_t op)
{
    switch (type) {
    case ncclInt8:
        REDUCE(int8_t, uint8_t);
        break;
    case ncclUint8:
        REDUCE(uint8_t, uint8_t);
        break;
    case ncclInt32:
        REDUCE(int32_t, uint32_t);
        break;
    case ncclUint32:
        REDUCE(uint32_t, uint32_t);
        break;
    case ncclInt64:
        REDUCE(int64_t, uint64_t);
        break;
    case ncclUint64:
        REDUCE(uint64_t, uint64_t);
        break;
    case ncclFloat32:
        REDUCE(float, float);
        break;
    case ncclFloat64:
        REDUCE(double, double);
        break;
    default:
        reduce_small_floats(to, from, n, type, op);
    }
}

void fake_nccl_before(void *data, size_t n, ncclDataType_t type, ncclRedOp_t op, const void *scalar,
                      int nranks)
{
    const struct bench_float *f = format(type);
    size_t bytes = fake_nccl_type_bytes(type);
    double by = 1.0 / nranks;
    if (!scalar && (op != ncclAvg || !f))
        return;
    if (scalar && f)
        by = bench_float_value(f, load(scalar, 0, bytes));
    if (type != ncclFloat64)
        by = (double)(float)by;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = load(data, i, bytes);
        store(data, i, bytes,
              f ? bench_float_bits(f, bench_float_value(f, bits) * by)
                : bits * load(scalar, 0, bytes));
    }
}

void fake_nccl_after(void *data, size_t n, ncclDataType_t type, ncclRedOp_t op, int nranks)
{
    size_t bytes = fake_nccl_type_bytes(type);
    bool is_signed = type == ncclInt8 || type == ncclInt32 || type == ncclInt64;
    int spare = 64 - 8 * (int)bytes;
    if (op != ncclAvg || format(type))
        return;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = load(data, i, bytes);
        store(data, i, bytes,
              is_signed ? (uint64_t)(((int64_t)(bits << spare) >> spare) / nranks)
                        : bits / (uint64_t)nranks);
    }
}
