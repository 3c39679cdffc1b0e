/* SPDX-License-Identifier: MIT */
/* Fills buffers and compares every element of what came out, on the host: the memory of a device is copied back piece by
 * piece. bench_data.c knows the values, bench_plan.c where they belong. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct bench_data data_of(const struct bench *b, const struct bench_plan *p)
{
    return (struct bench_data){p->type, p->op, b->ranks, b->seed};
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* n elements of the table, again and again: two copies to the device, the rest within it, twice as much each time. */
static int spread(struct bench *b, char *to, size_t n, size_t element)
{
    size_t have = least(n, BENCH_PERIOD);
    int r = b->on->put(b, to, b->table, have * element);
    while (r == LAUNCH_OK && have < n) {
        size_t more = least(have, n - have);
        r = b->on->move(b, to + have * element, to, more * element);
        have += more;
    }
    return r;
}

int bench_fill(struct bench *b, const struct bench_call *call, bool in_place)
{
    const struct bench_plan *p = &call->plan;
    struct bench_data data = data_of(b, p);
    size_t element = bench_type_size(p->type);
    size_t whole = bench_plan_bytes(p);
    int r =
        b->on->zero(b, in_place ? b->receive : call->out, in_place ? whole : p->out_n * element);

    if (r != LAUNCH_OK || p->in_n == 0 || !bench_plan_sends(p, b->rank))
        return r;
    bench_data_input(&data, b->rank, b->table, least(p->in_n, BENCH_PERIOD));
    return spread(b, call->in, p->in_n, element);
}

bool bench_fault(const struct bench *b, size_t first, size_t n, size_t *ret)
{
    const char *fault = getenv("LAUNCH_BENCH_FAULT");
    int rank;
    size_t index;
    if (!fault || sscanf(fault, "%d:%zu", &rank, &index) != 2 || rank != b->rank)
        return false;
    *ret = index - first;
    return index >= first && index - first < n;
}

/* The table of what must be in a piece, as much as is needed of it. */
static void make_table(struct bench *b, const struct bench_plan *p, const struct bench_piece *piece)
{
    struct bench_data data = data_of(b, p);
    size_t n = piece->first + piece->n > BENCH_PERIOD ? BENCH_PERIOD : piece->first + piece->n;
    if (piece->rank == BENCH_REDUCED)
        bench_data_reduced(&data, b->table, n);
    else if (piece->rank == BENCH_NOTHING)
        memset(b->table, 0, n * bench_type_size(p->type));
    else
        bench_data_input(&data, piece->rank, b->table, n);
}

int bench_verify_piece(struct bench *b, const struct bench_call *call,
                       const struct bench_piece *piece, size_t at, int64_t *wrong)
{
    const struct bench_plan *p = &call->plan;
    struct bench_data data = data_of(b, p);
    size_t element = bench_type_size(p->type), bad;

    make_table(b, p, piece);
    for (size_t done = 0; done < piece->n;) {
        size_t n = least(piece->n - done, BENCH_WINDOW_BYTES / element);
        int r = b->on->get(b, b->window, call->out + (at + done) * element, n * element);
        if (r != LAUNCH_OK)
            return r;
        if (bench_fault(b, at + done, n, &bad))
            ((char *)b->window)[bad * element] ^= 0x40; /* more than an average may be off */
        *wrong += (int64_t)bench_data_wrong(&data, b->window, b->table, piece->first + done, n,
                                            piece->rank == BENCH_REDUCED);
        done += n;
    }
    return LAUNCH_OK;
}

int bench_verify(struct bench *b, const struct bench_call *call, bool in_place, int64_t *ret)
{
    size_t at = 0;
    *ret = 0;
    for (int i = 0; i < b->ranks; i++) {
        struct bench_piece piece = bench_plan_piece(&call->plan, b->rank, in_place, i);
        int r = piece.n ? bench_verify_piece(b, call, &piece, at, ret) : LAUNCH_OK;
        if (r != LAUNCH_OK)
            return r;
        at += piece.n;
    }
    return LAUNCH_OK;
}
