/* SPDX-License-Identifier: MIT */
/* The kernels of all-reduce, made from one list of types and one of operations. */
#include "reduce.h"

#include "launch.h"

#include "../proto/base.h"

/* enum, C type, type that sums and products are formed in: unsigned, because signed overflow is
 * undefined. */
#define TYPE_LIST(X)                                                                               \
    X(LAUNCH_INT32, int32_t, uint32_t, "int32")                                                    \
    X(LAUNCH_INT64, int64_t, uint64_t, "int64")                                                    \
    X(LAUNCH_FLOAT, float, float, "float")                                                         \
    X(LAUNCH_DOUBLE, double, double, "double")

/* The inner loop has a constant length and the parameters are restrict: only so gcc 12 makes vector
 * code at -O2 (on local pointers, restrict does not help). Every rank's operands are aligned alike and go the same way through the code: even the payload
 * of a NaN is the same. */
#define KERNEL(type, name, expression)                                                             \
    static void fold_##type##_##name(void *restrict acc, const void *restrict in, size_t lines)    \
    {                                                                                              \
        enum { PER_LINE = REDUCE_LINE_BYTES / sizeof(type) };                                      \
        type *to = __builtin_assume_aligned(acc, REDUCE_LINE_BYTES);                               \
        const type *from = __builtin_assume_aligned(in, REDUCE_LINE_BYTES);                        \
        for (size_t line = 0; line < lines; line++, to += PER_LINE, from += PER_LINE)              \
            for (int i = 0; i < PER_LINE; i++) {                                                   \
                type a = to[i], b = from[i];                                                       \
                to[i] = (expression);                                                              \
            }                                                                                      \
    }

/* a != a: a is NaN and stays. If b is NaN no comparison holds, and b is taken. */
#define KERNELS(number, type, wide, text)                                                          \
    KERNEL(type, sum, (type)((wide)a + (wide)b))                                                   \
    KERNEL(type, min, a < b || a != a ? a : b)                                                     \
    KERNEL(type, max, a > b || a != a ? a : b)                                                     \
    KERNEL(type, prod, (type)((wide)a * (wide)b))
TYPE_LIST(KERNELS)

typedef void fold_function(void *acc, const void *in, size_t lines);

#define ROW(number, type, wide, text)                                                              \
    [number] = {text,                                                                              \
                sizeof(type),                                                                      \
                {[LAUNCH_SUM] = fold_##type##_sum,                                                 \
                 [LAUNCH_MIN] = fold_##type##_min,                                                 \
                 [LAUNCH_MAX] = fold_##type##_max,                                                 \
                 [LAUNCH_PROD] = fold_##type##_prod}},
static const struct {
    const char *name;
    size_t bytes;
    fold_function *fold[LAUNCH_PROD + 1];
} types[] = {TYPE_LIST(ROW)};

static const char *const op_names[] = {
    [LAUNCH_SUM] = "sum", [LAUNCH_MIN] = "min", [LAUNCH_MAX] = "max", [LAUNCH_PROD] = "prod"};

size_t reduce_type_bytes(uint32_t type)
{
    return type < ARRAY_LEN(types) ? types[type].bytes : 0;
}

const char *reduce_type_name(uint32_t type)
{
    return type < ARRAY_LEN(types) ? types[type].name : "?";
}

const char *reduce_op_name(uint32_t op)
{
    return op < ARRAY_LEN(op_names) ? op_names[op] : "?";
}

int reduce_op_known(uint32_t op)
{
    return op < ARRAY_LEN(op_names);
}

void reduce_fold(uint32_t type, uint32_t op, void *acc, const void *in, size_t bytes)
{
    types[type].fold[op](acc, in, (bytes + REDUCE_LINE_BYTES - 1) / REDUCE_LINE_BYTES);
}
