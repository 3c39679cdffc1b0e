/* SPDX-License-Identifier: MIT */
/* Element-wise arithmetic of all-reduce: one kernel for each (type, op). Knows nothing of ranks
 * or boards. */
#ifndef LAUNCH_WORKER_REDUCE_H
#define LAUNCH_WORKER_REDUCE_H

#include <stddef.h>
#include <stdint.h>

#define REDUCE_LINE_BYTES 64

/* Size of an element, 0 for a number that is no enum launch_type. */
size_t reduce_type_bytes(uint32_t type);

/* "int32", "sum"; "?" for an unknown number. */
const char *reduce_type_name(uint32_t type);
const char *reduce_op_name(uint32_t op);

/* 1 if there is such an enum launch_op. */
int reduce_op_known(uint32_t op);

/* acc = acc OP in, over whole lines: `bytes` is rounded up to REDUCE_LINE_BYTES, and what lies
 * between is read and written as well. Both are aligned to a line and do not overlap. Type and
 * op are known ones. Integers wrap. MIN and MAX give NaN if either element is NaN; of two zeros
 * of different sign, in's. */
void reduce_fold(uint32_t type, uint32_t op, void *acc, const void *in, size_t bytes);

#endif
