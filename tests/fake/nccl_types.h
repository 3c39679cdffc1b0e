/* SPDX-License-Identifier: MIT */
/* Arithmetic of the fake NCCL, element by element. Nothing else includes this. */
#ifndef LAUNCH_FAKE_NCCL_TYPES_H
#define LAUNCH_FAKE_NCCL_TYPES_H

#include <nccl.h>

#include <stddef.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* 0: no such type. */
HIDDEN size_t fake_nccl_type_bytes(ncclDataType_t type);

/* to = to OP from; an operation that is none of NCCL's own is a sum. */
HIDDEN void fake_nccl_reduce(void *to, const void *from, size_t n, ncclDataType_t type,
                             ncclRedOp_t op);

/* What is done to a rank's share before (avg of floating-point numbers; scalar, one element: a sum's factor, or NULL), and to
 * the result (avg of integers). */
HIDDEN void fake_nccl_before(void *data, size_t n, ncclDataType_t type, ncclRedOp_t op,
                             const void *scalar, int nranks);
HIDDEN void fake_nccl_after(void *data, size_t n, ncclDataType_t type, ncclRedOp_t op, int nranks);

#endif
