/* SPDX-License-Identifier: MIT */
#include "bench_plan.h"

#define ALIGN_BYTES 16

struct row {
    const char *name;
    bool op, root, share;
};

#define X(id, name, op, root, share, ...) {name, op, root, share},
static const struct row ROWS[BENCH_COLLECTIVES_N] = {BENCH_COLLECTIVES(X)};
#undef X

#define X(id, name, bytes) {name, bytes},
static const struct {
    const char *name;
    size_t bytes;
} TYPES[BENCH_TYPES_N] = {BENCH_TYPES(X)};
#undef X

#define X(id, name) name,
static const char *const OPS[BENCH_OPS_N] = {BENCH_OPS(X)};
#undef X

size_t bench_type_size(enum bench_type type)
{
    return TYPES[type].bytes;
}

const char *bench_type_text(enum bench_type type)
{
    return TYPES[type].name;
}

const char *bench_op_text(int op)
{
    return op < 0 ? "none" : OPS[op];
}

const char *bench_collective_text(enum bench_collective collective)
{
    return ROWS[collective].name;
}

bool bench_has_op(enum bench_collective collective)
{
    return ROWS[collective].op;
}

bool bench_plan_has_root(enum bench_collective collective)
{
    return ROWS[collective].root;
}

struct bench_plan bench_plan_make(enum bench_collective collective, enum bench_type type, int op,
                                  int root, int ranks, size_t bytes)
{
    const struct row *row = &ROWS[collective];
    size_t all = bytes / bench_type_size(type), n = (size_t)ranks;
    size_t share = all / n & ~(ALIGN_BYTES / bench_type_size(type) - 1);
    struct bench_plan p = {.collective = collective,
                           .type = type,
                           .op = row->op ? op : -1,
                           .root = row->root ? root : -1,
                           .ranks = ranks,
                           .count = row->share ? share : all,
                           .in_place_checked =
                               collective != BENCH_ALLTOALL && collective != BENCH_SENDRECV};
    p.in_n = p.out_n = row->share ? share * n : all;
    if (collective == BENCH_ALL_GATHER || collective == BENCH_GATHER)
        p.in_n = p.in_at = share;
    if (collective == BENCH_REDUCE_SCATTER || collective == BENCH_SCATTER)
        p.out_n = p.out_at = share;
    return p;
}

size_t bench_plan_bytes(const struct bench_plan *p)
{
    return (p->in_n > p->out_n ? p->in_n : p->out_n) * bench_type_size(p->type);
}

static double factor(enum bench_collective collective, int n)
{
    switch (collective) {
#define X(id, name, op, root, share, bus)                                                          \
    case BENCH_##id:                                                                               \
        return bus;
        BENCH_COLLECTIVES(X)
#undef X
    case BENCH_COLLECTIVES_N:
        break;
    }
    return 0;
}

double bench_plan_bandwidth(const struct bench_plan *p, double seconds, double *ret_bus)
{
    double bytes = (double)p->count * (double)bench_type_size(p->type);
    if (ROWS[p->collective].share)
        bytes *= p->ranks;
    double bandwidth = seconds > 0 ? bytes / 1e9 / seconds : 0;
    *ret_bus = bandwidth * factor(p->collective, p->ranks);
    return bandwidth;
}

bool bench_plan_sends(const struct bench_plan *p, int rank)
{
    return (p->collective != BENCH_BROADCAST && p->collective != BENCH_SCATTER) || rank == p->root;
}

static struct bench_piece one(int i, size_t n, int rank, size_t first)
{
    return i == 0 ? (struct bench_piece){n, rank, first} : (struct bench_piece){0};
}

struct bench_piece bench_plan_piece(const struct bench_plan *p, int rank, bool in_place, int i)
{
    size_t mine = (size_t)rank * p->count;
    if (i >= p->ranks)
        return (struct bench_piece){0};
    switch (p->collective) {
    case BENCH_ALL_REDUCE:
        return one(i, p->out_n, BENCH_REDUCED, 0);
    case BENCH_ALL_GATHER:
        return (struct bench_piece){p->count, i, 0};
    case BENCH_REDUCE_SCATTER:
        return one(i, p->out_n, BENCH_REDUCED, mine);
    case BENCH_BROADCAST:
        return one(i, p->out_n, p->root, 0);
    case BENCH_REDUCE:
        return one(i, p->out_n,
                   rank == p->root ? BENCH_REDUCED
                   : in_place      ? rank
                                   : BENCH_NOTHING,
                   0);
    case BENCH_ALLTOALL:
        return (struct bench_piece){p->count, i, mine};
    case BENCH_GATHER:
        return (struct bench_piece){
            p->count, rank == p->root || (in_place && i == rank) ? i : BENCH_NOTHING, 0};
    case BENCH_SCATTER:
        return one(i, p->out_n, p->root, mine);
    case BENCH_SENDRECV:
        return one(i, p->out_n, (rank + p->ranks - 1) % p->ranks, 0);
    case BENCH_COLLECTIVES_N:
        break;
    }
    return (struct bench_piece){0};
}
