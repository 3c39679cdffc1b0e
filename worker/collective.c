/* SPDX-License-Identifier: MIT */
/* Barrier, broadcast, all-gather and all-reduce of host memory over the board. Owns the arrive[]
 * words and the data area of its rank. Must never know how the group came together, nor touch a
 * device.
 *
 * Everything is made of exchanges. In exchange number s a rank
 *   1. writes the description of its call and its data into half s mod 2 of its own area,
 *   2. passes a barrier of all ranks,
 *   3. compares the others' descriptions with its own, and reads their data;
 *   4. (long all-reduces:) writes its part of the result into its half, passes a second barrier,
 *      and reads the others' parts.
 * No barrier is needed at the end. A rank writes again to the half that it used in exchange s
 * only in exchange s + 2, so after it has passed the first barrier of s + 1. Nobody passes that
 * one before every rank has come to it, and a rank comes to it only when it has finished reading
 * in exchange s. Hence nobody reads a half while its owner writes the next data into it. The
 * description lies in the same half for the same reason: a single one per rank could be
 * overwritten by a fast rank before a slow one has compared it. */
#include "worker.h"

#include "reduce.h"

#include "../proto/clock.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Up to here every rank reduces everything: N times the arithmetic, but one barrier less. */
#define ALL_REDUCE_SHORT_BYTES 8192u

/* A piece that stays in the first-level cache while all ranks' data is folded into it. */
#define FOLD_BYTES 8192u

/* Low bit of arrive[]: the one peer that waits for the word sleeps, or is about to. Without it
 * every arrival would have to call the kernel. The barrier number is counted in the bits above. */
#define SLEEPER 1u
#define BARRIER_ONE 2u

enum call_op { CALL_NONE, CALL_BARRIER, CALL_BROADCAST, CALL_ALL_GATHER, CALL_ALL_REDUCE, CALLS_N };

static const char *const call_names[CALLS_N] = {"nothing", "barrier", "broadcast", "all_gather",
                                                "all_reduce"};

/* Half of a rank's data area. The output is never full: with 2 ranks each makes half a chunk of
 * results. */
struct half {
    _Alignas(CACHE_LINE) struct board_call call;
    _Alignas(CACHE_LINE) unsigned char input[BOARD_CHUNK_BYTES];
    unsigned char output[BOARD_CHUNK_BYTES - CACHE_LINE];
};
static_assert(2 * sizeof(struct half) == BOARD_DATA_BYTES, "two halves make a data area");
static_assert(sizeof(struct board_call) <= CACHE_LINE, "the description outgrew its line");
static_assert(offsetof(struct half, output) % REDUCE_LINE_BYTES == 0, "kernels want whole lines");
static_assert(BOARD_CHUNK_BYTES % FOLD_BYTES == 0 && FOLD_BYTES % REDUCE_LINE_BYTES == 0,
              "as above");
static_assert(ALL_REDUCE_SHORT_BYTES <= BOARD_CHUNK_BYTES / 2, "must fit the output");

static struct half *half_of(const struct launch *l, uint32_t rank)
{
    return (struct half *)board_data(&l->board, l->place_of[rank]) + l->steps % 2;
}

/* memcpy() of nothing may not be given NULL; in place there is nothing to do. */
static void copy(void *to, const void *from, size_t bytes)
{
    if (bytes && to != from)
        memcpy(to, from, bytes);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

void collective_reset(struct launch *l)
{
    l->steps = l->barriers = 0;
    l->disagreed = false;
    /* Release: who sees the 0 sees the new generation, too (has_arrived()). */
    for (unsigned k = 0; k < BOARD_BARRIER_ROUNDS; k++)
        atomic_store_explicit(&l->slot->arrive[k], 0, memory_order_release);
}

/* The slot's counters have one writer, us. */
static void count(_Atomic uint64_t *counter)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + 1, memory_order_relaxed);
}

/* ---- the barrier ---- */

static void arrive(struct launch *l, unsigned round)
{
    _Atomic uint32_t *word = &l->slot->arrive[round];
    if (atomic_exchange_explicit(word, l->barriers, memory_order_acq_rel) & SLEEPER)
        board_wake(word);
}

/* Numbers wrap, so their difference is looked at. A peer may be ahead of us, never by much. After 2^30 barriers the 0 of a
 * peer that has gone on to the next generation would look like that. */
static bool has_arrived(const struct launch *l, uint32_t seen)
{
    uint32_t number = seen & ~SLEEPER;
    return (int32_t)(number - l->barriers) >= 0 && (number || launch_check(l) != LAUNCH_AGAIN);
}

/* First look without announcing anything; when that was in vain, announce, so that the peer
 * wakes us. Both go through the same word: either the peer's exchange sees the bit, or our
 * setting it fails. */
static int await_arrival(struct launch *l, uint32_t peer, unsigned round)
{
    struct board_slot *slot = worker_peer(l, peer);
    _Atomic uint32_t *word = &slot->arrive[round];
    for (bool looked = l->spin_ns == 0;;) {
        /* The stage first: whoever leaves has stored all its arrivals before. */
        bool left = atomic_load_explicit(&slot->stage, memory_order_acquire) == STAGE_LEFT;
        uint32_t seen = atomic_load_explicit(word, memory_order_acquire);
        if (has_arrived(l, seen))
            return LAUNCH_OK;
        if (left) {
            int verdict = worker_verdict(l); /* which may be why it left */
            return verdict ? verdict
                           : launch_fail(l, LAUNCH_FAILED,
                                         "rank %u has left; a collective needs every rank", peer);
        }
        uint64_t deadline = CLOCK_NEVER;
        if (!looked) {
            looked = true;
            deadline = clock_now_ns() + l->spin_ns;
        } else if (!(seen & SLEEPER)) {
            if (!atomic_compare_exchange_strong(word, &seen, seen | SLEEPER))
                continue;
            seen |= SLEEPER;
        }
        int rc = worker_wait(l, word, seen, deadline);
        if (rc != LAUNCH_OK && rc != LAUNCH_TIMEOUT)
            return rc;
    }
}

/* Dissemination: in round k, tell the rank 2^k ahead and hear from the rank 2^k behind. After
 * log2(N) rounds each has heard, directly or not, from all; acquire and release along the way
 * make all their writes visible. */
static int pass_barrier(struct launch *l)
{
    l->barriers += BARRIER_ONE;
    unsigned round = 0;
    for (uint32_t distance = 1; distance < l->world_size; distance *= 2, round++) {
        uint32_t behind = (l->rank + l->world_size - distance) % l->world_size;
        arrive(l, round);
        int rc = await_arrival(l, behind, round);
        if (rc)
            return rc;
    }
    return LAUNCH_OK;
}

/* ---- do all ranks make the same call? ---- */

static void describe(char *text, size_t size, const struct board_call *call)
{
    unsigned long long bytes = call->bytes;
    const char *name = call->op < CALLS_N ? call_names[call->op] : "something unknown";
    if (call->op == CALL_ALL_REDUCE)
        snprintf(text, size, "%s of %llu bytes (%s of %s)", name, bytes,
                 reduce_op_name(call->reduce), reduce_type_name(call->type));
    else if (call->op == CALL_BROADCAST)
        snprintf(text, size, "%s of %llu bytes (root %u)", name, bytes, call->root);
    else if (call->op == CALL_ALL_GATHER)
        snprintf(text, size, "%s of %llu bytes", name, bytes);
    else
        snprintf(text, size, "%s", name);
}

static int disagree(struct launch *l, const struct board_call *ours, uint32_t peer,
                    const struct board_call *theirs)
{
    char a[96], b[96];
    describe(a, sizeof a, ours);
    describe(b, sizeof b, theirs);
    l->disagreed = true;
    return launch_fail(l, LAUNCH_INVALID,
                       "collectives differ: rank %u called %s, rank %u called %s", l->rank, a, peer,
                       b);
}

/* Volatile: what is compared is what is printed, whatever the peer writes meanwhile. */
static struct board_call read_call(const volatile struct board_call *c)
{
    return (struct board_call){
        .op = c->op, .type = c->type, .reduce = c->reduce, .root = c->root, .bytes = c->bytes};
}

/* Whoever reads data looks at all peers, so any two ranks that differ are found by one of them
 * at least. A barrier reads no data and only looks at the peers that it hears from directly. */
static int compare_calls(struct launch *l, const struct board_call *ours)
{
    bool all = ours->op != CALL_BARRIER;
    for (uint32_t distance = 1; distance < l->world_size;
         distance = all ? distance + 1 : distance * 2) {
        uint32_t peer = (l->rank + l->world_size - distance) % l->world_size;
        struct board_call theirs = read_call(&half_of(l, peer)->call);
        if (theirs.op != ours->op || theirs.type != ours->type || theirs.reduce != ours->reduce ||
            theirs.root != ours->root || theirs.bytes != ours->bytes)
            return disagree(l, ours, peer, &theirs);
    }
    return LAUNCH_OK;
}

/* ---- one exchange ---- */

/* Our half of the next exchange, to be filled. */
static struct half *next_half(struct launch *l)
{
    l->steps++;
    return half_of(l, l->rank);
}

/* Afterwards the halves of all ranks may be read. */
static int exchange(struct launch *l, const struct board_call *call)
{
    struct board_call *mine = &half_of(l, l->rank)->call;
    mine->op = call->op;
    mine->type = call->type;
    mine->reduce = call->reduce;
    mine->root = call->root;
    mine->bytes = call->bytes;
    count(&l->slot->heartbeat); /* a long collective is many exchanges */
    int rc = pass_barrier(l);
    return rc ? rc : compare_calls(l, call);
}

/* Heads every collective, after its arguments were checked. */
static int enter(struct launch *l)
{
    count(&l->slot->entered);
    if (l->disagreed)
        return LAUNCH_INVALID; /* with the text of that time */
    return worker_verdict(l);
}

/* Ends every collective that did not fail. */
static int finish(struct launch *l)
{
    count(&l->slot->finished);
    return LAUNCH_OK;
}

static int bad_argument(struct launch *l, const char *text)
{
    return launch_fail(l, LAUNCH_INVALID, "%s", text);
}

/* ---- the collectives ---- */

int launch_barrier(struct launch *l)
{
    struct board_call call = {.op = CALL_BARRIER};
    int rc = enter(l);
    if (rc)
        return rc;
    if (l->world_size == 1)
        return finish(l);
    next_half(l);
    rc = exchange(l, &call);
    return rc ? rc : finish(l);
}

int launch_broadcast(struct launch *l, void *data, size_t bytes, int root)
{
    if (root < 0 || (uint32_t)root >= l->world_size)
        return launch_fail(l, LAUNCH_INVALID, "launch_broadcast: root %d of %u ranks", root,
                           l->world_size);
    if (!data && bytes)
        return bad_argument(l, "launch_broadcast: data is NULL");
    return collective_broadcast(l, data, bytes, (uint32_t)root);
}

int collective_broadcast(struct launch *l, void *data, size_t bytes, uint32_t root)
{
    struct board_call call = {.op = CALL_BROADCAST, .root = root, .bytes = bytes};
    int rc = enter(l);
    if (rc)
        return rc;
    if (l->world_size == 1)
        return finish(l);

    bool sends = l->rank == call.root;
    size_t done = 0, n;
    do {
        n = smaller(bytes - done, BOARD_CHUNK_BYTES);
        struct half *mine = next_half(l);
        unsigned char *piece = n && data ? (unsigned char *)data + done : NULL;
        if (sends)
            copy(mine->input, piece, n);
        rc = exchange(l, &call);
        if (rc)
            return rc;
        if (!sends && piece)
            copy(piece, half_of(l, root)->input, n);
        done += n;
    } while (done < bytes);
    return finish(l);
}

int launch_all_gather(struct launch *l, const void *in, void *out, size_t bytes_each)
{
    size_t total;
    if (__builtin_mul_overflow(bytes_each, l->world_size, &total))
        return bad_argument(l, "launch_all_gather: the result is too large");
    if ((!in || !out) && bytes_each)
        return bad_argument(l, "launch_all_gather: in or out is NULL");
    struct board_call call = {.op = CALL_ALL_GATHER, .bytes = bytes_each};
    int rc = enter(l);
    if (rc)
        return rc;
    if (l->world_size == 1) {
        copy(out, in, bytes_each);
        return finish(l);
    }

    size_t done = 0, n;
    do {
        n = smaller(bytes_each - done, BOARD_CHUNK_BYTES);
        copy(next_half(l)->input, n ? (const unsigned char *)in + done : NULL, n);
        rc = exchange(l, &call);
        if (rc)
            return rc;
        for (uint32_t r = 0; n && r < l->world_size; r++)
            copy((unsigned char *)out + r * bytes_each + done, half_of(l, r)->input, n);
        done += n;
    } while (done < bytes_each);
    return finish(l);
}

/* Bytes [from, from + bytes) of all ranks' inputs, combined in order of rank, into our output. */
static void combine(struct launch *l, const struct board_call *call, size_t from, size_t bytes)
{
    unsigned char *output = half_of(l, l->rank)->output;
    for (size_t done = 0; done < bytes; done += FOLD_BYTES) {
        size_t n = smaller(bytes - done, FOLD_BYTES);
        memcpy(output + done, half_of(l, 0)->input + from + done, n);
        for (uint32_t r = 1; r < l->world_size; r++)
            reduce_fold(call->type, call->reduce, output + done, half_of(l, r)->input + from + done,
                        n);
    }
}

/* A chunk in a single barrier: everybody combines everything. */
static int all_reduce_short(struct launch *l, const struct board_call *call, unsigned char *out,
                            size_t n)
{
    combine(l, call, 0, n);
    copy(out, half_of(l, l->rank)->output, n);
    return LAUNCH_OK;
}

/* A chunk in two barriers: every rank combines its part (whole lines), then collects the
 * others'. */
static int all_reduce_long(struct launch *l, const struct board_call *call, unsigned char *out,
                           size_t n)
{
    size_t lines = (n + REDUCE_LINE_BYTES - 1) / REDUCE_LINE_BYTES;
    size_t part = (lines + l->world_size - 1) / l->world_size * REDUCE_LINE_BYTES;
    size_t from = smaller(l->rank * part, n);
    combine(l, call, from, smaller(part, n - from));
    int rc = pass_barrier(l);
    if (rc)
        return rc;
    for (uint32_t r = 0; r < l->world_size; r++) {
        from = smaller(r * part, n);
        copy(out + from, half_of(l, r)->output, smaller(part, n - from));
    }
    return LAUNCH_OK;
}

int launch_all_reduce(struct launch *l, const void *in, void *out, size_t count,
                      enum launch_type type, enum launch_op op)
{
    size_t bytes;
    if (!reduce_type_bytes((uint32_t)type) || !reduce_op_known((uint32_t)op))
        return bad_argument(l, "launch_all_reduce: unknown type or operation");
    if (__builtin_mul_overflow(count, reduce_type_bytes((uint32_t)type), &bytes))
        return bad_argument(l, "launch_all_reduce: count is too large");
    if ((!in || !out) && bytes)
        return bad_argument(l, "launch_all_reduce: in or out is NULL");
    struct board_call call = {
        .op = CALL_ALL_REDUCE, .type = (uint32_t)type, .reduce = (uint32_t)op, .bytes = bytes};
    int rc = enter(l);
    if (rc)
        return rc;
    if (l->world_size == 1) {
        copy(out, in, bytes);
        return finish(l);
    }

    size_t done = 0, n;
    do {
        n = smaller(bytes - done, BOARD_CHUNK_BYTES);
        copy(next_half(l)->input, n ? (const unsigned char *)in + done : NULL, n);
        unsigned char *piece = n ? (unsigned char *)out + done : NULL;
        rc = exchange(l, &call);
        if (!rc)
            rc = n <= ALL_REDUCE_SHORT_BYTES ? all_reduce_short(l, &call, piece, n)
                                             : all_reduce_long(l, &call, piece, n);
        if (rc)
            return rc;
        done += n;
    } while (done < bytes);
    return finish(l);
}
