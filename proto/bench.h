/* SPDX-License-Identifier: MIT */
/* What `launch bench` and `launch check` and their job (worker/bench.c) agree on: the names of collectives, types and
 * operations, and the records that the job writes. Names, factors and units are those of nccl-tests.
 *
 * Rank 0 writes one JSON object a line to its stdout. Times are in microseconds, rates in GB/s (1e9 bytes), sizes in
 * bytes. The name of the one member says which record it is:
 *
 *   {"bench": {"version": 1, "backend": "nccl", "collective": "all_reduce", "ranks": 8, "library": 22809, "headers": 22809,
 *              "min_bytes":, "max_bytes":, "step_bytes": | "step_factor":, "iterations":, "warmup":, "check":,
 *              "runtime": 13000, "driver": 13000}}                      first; numbers that do not apply are 0
 *   {"device": {"rank": 0, "pid":, "host": "", "device": 0, "bus": "0000:18:00.0", "name": "NVIDIA H200", "uuid": ""}}  a rank
 *   {"note": "Reducing maxBytes to 1024 due to memory limitation"}      for a person, any time
 *   {"at": {"size":, "type": "float", "redop": "sum", "root": -1}}      a measurement begins: for a progress line
 *   {"result": {"size":, "count":, "type":, "redop": "none" where there is none, "root": -1,
 *               "out_of_place": HALF, "in_place": HALF | null}}         HALF: {"time":, "alg_bw":, "bus_bw":,
 *                                                                       "nwrong": N | null, "checked": 0 to 1}
 *   {"pair": {"from": 0, "to": 1, "size":, "time":, "alg_bw":, "both_bw":, "nwrong":}}   --pairs; both_bw: both ways at once
 *   {"end": {"wrong": 0, "timeout": false}}                             last; wrong: halves with wrong values
 *
 * The reader takes them as input from a process that may be broken. */
#ifndef LAUNCH_PROTO_BENCH_H
#define LAUNCH_PROTO_BENCH_H

#define BENCH_RECORDS_VERSION 1

/* name, takes -o, has a root, bytes counted are world size * bytes each, factor of the bus bandwidth for n ranks
 * (nccl-tests' doc/PERFORMANCE.md). nccl-tests has -o for sendrecv, too, which reduces nothing, and a redop in its rows. */
#define BENCH_COLLECTIVES(X)                                                                       \
    X(ALL_REDUCE, "all_reduce", 1, 0, 0, 2.0 * (n - 1) / n)                                        \
    X(ALL_GATHER, "all_gather", 0, 0, 1, (n - 1.0) / n)                                            \
    X(REDUCE_SCATTER, "reduce_scatter", 1, 0, 1, (n - 1.0) / n)                                    \
    X(BROADCAST, "broadcast", 0, 1, 0, 1.0)                                                        \
    X(REDUCE, "reduce", 1, 1, 0, 1.0)                                                              \
    X(ALLTOALL, "alltoall", 0, 0, 1, (n - 1.0) / n)                                                \
    X(GATHER, "gather", 0, 1, 1, (n - 1.0) / n)                                                    \
    X(SCATTER, "scatter", 0, 1, 1, (n - 1.0) / n)                                                  \
    X(SENDRECV, "sendrecv", 1, 0, 0, 1.0)

/* name, bytes */
#define BENCH_TYPES(X)                                                                             \
    X(INT8, "int8", 1)                                                                             \
    X(UINT8, "uint8", 1)                                                                           \
    X(INT32, "int32", 4)                                                                           \
    X(UINT32, "uint32", 4)                                                                         \
    X(INT64, "int64", 8)                                                                           \
    X(UINT64, "uint64", 8)                                                                         \
    X(HALF, "half", 2)                                                                             \
    X(FLOAT, "float", 4)                                                                           \
    X(DOUBLE, "double", 8)                                                                         \
    X(BFLOAT16, "bfloat16", 2)                                                                     \
    X(F8E4M3, "f8e4m3", 1)                                                                         \
    X(F8E5M2, "f8e5m2", 1)

/* In the order in which nccl-tests takes all of them. mulsum: the sum of what was multiplied by a number of each rank's own (ncclRedOpCreatePreMulSum) */
#define BENCH_OPS(X)                                                                               \
    X(SUM, "sum")                                                                                  \
    X(PROD, "prod")                                                                                \
    X(MAX, "max")                                                                                  \
    X(MIN, "min")                                                                                  \
    X(AVG, "avg")                                                                                  \
    X(MULSUM, "mulsum")

#define X(id, ...) BENCH_##id,
enum bench_collective { BENCH_COLLECTIVES(X) BENCH_COLLECTIVES_N };
#undef X
#define X(id, ...) BENCH_TYPE_##id,
enum bench_type { BENCH_TYPES(X) BENCH_TYPES_N };
#undef X
#define X(id, ...) BENCH_OP_##id,
enum bench_op { BENCH_OPS(X) BENCH_OPS_N };
#undef X

#endif
