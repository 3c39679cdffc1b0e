/* SPDX-License-Identifier: MIT */
/* The collectives against a reference that was written without looking at them. */
#include "group.h"

#include <math.h>

enum { TYPES = 4, OPS = 4 };
static const size_t type_bytes[TYPES] = {4, 8, 4, 8};
static const uint32_t world_sizes[] = {1, 2, 3, 5, 8};

#define LARGEST_BYTES (3 * BOARD_CHUNK_BYTES + 16)

/* ---- the reference ---- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

union value {
    int32_t i32;
    int64_t i64;
    float f;
    double d;
};

/* What rank contributes at an index: whole-range integers (they wrap), fractions, now and then a
 * NaN. */
static union value element(int type, uint64_t seed, int rank, size_t index)
{
    uint64_t r = mix(seed * 0x9e3779b97f4a7c15ull + mix(index * 64 + (uint64_t)rank + 1));
    double fraction = r % 61 == 0 ? NAN : (double)(int64_t)(r % 20001) / 7 - 1000;
    union value v = {.i64 = 0};
    if (type == LAUNCH_INT32)
        v.i32 = (int32_t)(uint32_t)r;
    else if (type == LAUNCH_INT64)
        v.i64 = (int64_t)r;
    else if (type == LAUNCH_FLOAT)
        v.f = (float)fraction;
    else
        v.d = fraction;
    return v;
}

static int64_t whole(int op, int64_t a, int64_t b)
{
    switch (op) {
    case LAUNCH_SUM:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case LAUNCH_MIN:
        return a < b ? a : b;
    case LAUNCH_MAX:
        return a > b ? a : b;
    default:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    }
}

static double real(int op, double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    switch (op) {
    case LAUNCH_SUM:
        return a + b;
    case LAUNCH_MIN:
        return a < b ? a : b;
    case LAUNCH_MAX:
        return a > b ? a : b;
    default:
        return a * b;
    }
}

/* Sums and products of two floats are exact enough in double to be rounded once more without
 * harm. */
static union value combined(int type, int op, union value a, union value b)
{
    if (type == LAUNCH_INT32)
        a.i32 = (int32_t)whole(op, a.i32, b.i32);
    else if (type == LAUNCH_INT64)
        a.i64 = whole(op, a.i64, b.i64);
    else if (type == LAUNCH_FLOAT)
        a.f = (float)real(op, (double)a.f, (double)b.f);
    else
        a.d = real(op, a.d, b.d);
    return a;
}

static bool same(int type, union value a, union value b)
{
    if (type == LAUNCH_FLOAT && isnan(a.f))
        return isnan(b.f);
    if (type == LAUNCH_DOUBLE && isnan(a.d))
        return isnan(b.d);
    return memcmp(&a, &b, type_bytes[type]) == 0;
}

static void put(void *to, int type, size_t index, union value v)
{
    memcpy((char *)to + index * type_bytes[type], &v, type_bytes[type]);
}

static union value get(const void *from, int type, size_t index)
{
    union value v = {.i64 = 0};
    memcpy(&v, (const char *)from + index * type_bytes[type], type_bytes[type]);
    return v;
}

/* ---- one collective, checked ---- */

/* Buffers end where the data ends, so that a sanitizer sees one byte too many. */
static void check_all_reduce(struct launch *l, int type, int op, size_t count, uint64_t seed,
                             bool in_place)
{
    int rank = launch_rank(l), world = launch_world_size(l);
    AUTO_FREE void *in = malloc(count * type_bytes[type]);
    AUTO_FREE void *other = in_place ? NULL : malloc(count * type_bytes[type]);
    void *out = in_place ? in : other;
    for (size_t i = 0; i < count; i++)
        put(in, type, i, element(type, seed, rank, i));
    CHECK_INT(launch_all_reduce(l, in, out, count, (enum launch_type)type, (enum launch_op)op), ==,
              0);
    for (size_t i = 0; i < count; i++) {
        union value want = element(type, seed, 0, i);
        for (int r = 1; r < world; r++)
            want = combined(type, op, want, element(type, seed, r, i));
        if (!same(type, want, get(out, type, i)))
            test_fail(__FILE__, __LINE__, "type %d op %d count %zu: element %zu differs", type, op,
                      count, i);
        if (!in_place && !same(type, element(type, seed, rank, i), get(in, type, i)))
            test_fail(__FILE__, __LINE__, "the input was changed at %zu", i);
    }
}

static unsigned char byte_of(uint64_t seed, int rank, size_t index)
{
    return (unsigned char)mix(seed + (uint64_t)rank * 1000003 + index);
}

static void check_broadcast(struct launch *l, size_t bytes, int root, uint64_t seed)
{
    AUTO_FREE unsigned char *data = malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        data[i] = byte_of(seed, launch_rank(l), i);
    CHECK_INT(launch_broadcast(l, data, bytes, root), ==, 0);
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != byte_of(seed, root, i))
            test_fail(__FILE__, __LINE__, "%zu bytes from %d: byte %zu differs", bytes, root, i);
}

static void check_all_gather(struct launch *l, size_t bytes, uint64_t seed, bool in_place)
{
    int rank = launch_rank(l), world = launch_world_size(l);
    AUTO_FREE unsigned char *out = malloc(bytes * (size_t)world);
    AUTO_FREE unsigned char *apart = in_place ? NULL : malloc(bytes);
    unsigned char *in = in_place ? out + (size_t)rank * bytes : apart;
    for (size_t i = 0; i < bytes; i++)
        in[i] = byte_of(seed, rank, i);
    CHECK_INT(launch_all_gather(l, in, out, bytes), ==, 0);
    for (int r = 0; r < world; r++)
        for (size_t i = 0; i < bytes; i++)
            if (out[(size_t)r * bytes + i] != byte_of(seed, r, i))
                test_fail(__FILE__, __LINE__, "%zu bytes: byte %zu of rank %d differs", bytes, i,
                          r);
}

/* ---- whole domains ---- */

static void every_small_reduction(struct launch *l, void *user)
{
    static const size_t counts[] = {0, 1, 7, 16, 17, 1000, 3000};
    (void)user;
    for (int type = 0; type < TYPES; type++)
        for (int op = 0; op < OPS; op++)
            for (size_t i = 0; i < ARRAY_LEN(counts); i++)
                for (int in_place = 0; in_place < 2; in_place++)
                    check_all_reduce(l, type, op, counts[i], i + 1, in_place);
}

TEST(all_reduce_is_right_for_every_type_operation_and_small_size)
{
    for (size_t i = 0; i < ARRAY_LEN(world_sizes); i++)
        group_run(world_sizes[i], 0, every_small_reduction, NULL);
}

/* Every type and every operation once: 16 pairs would only take longer. */
static void large_reductions(struct launch *l, void *user)
{
    (void)user;
    for (int type = 0; type < TYPES; type++) {
        size_t chunk = BOARD_CHUNK_BYTES / type_bytes[type];
        size_t counts[] = {chunk - 1, chunk, chunk + 1, 3 * chunk,
                           2 * chunk + 9000 / type_bytes[type]};
        for (size_t i = 0; i < ARRAY_LEN(counts); i++)
            check_all_reduce(l, type, type, counts[i], i + 1, i % 2);
    }
}

TEST(all_reduce_is_right_around_the_chunk_size)
{
    for (size_t i = 0; i < ARRAY_LEN(world_sizes); i++)
        group_run(world_sizes[i], 0, large_reductions, NULL);
}

static void moves(struct launch *l, void *user)
{
    static const size_t sizes[] = {0,
                                   1,
                                   7,
                                   1000,
                                   BOARD_CHUNK_BYTES - 1,
                                   BOARD_CHUNK_BYTES,
                                   BOARD_CHUNK_BYTES + 1,
                                   3 * BOARD_CHUNK_BYTES};
    (void)user;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        int every = sizes[i] < BOARD_CHUNK_BYTES - 1 ? 1 : 3; /* large ones not from every root */
        for (int root = 0; root < launch_world_size(l); root += every)
            check_broadcast(l, sizes[i], root, i);
        check_all_gather(l, sizes[i], i, false);
        check_all_gather(l, sizes[i], i, true);
    }
}

TEST(broadcast_and_all_gather_are_right_around_the_chunk_size)
{
    for (size_t i = 0; i < ARRAY_LEN(world_sizes); i++)
        group_run(world_sizes[i], 0, moves, NULL);
}

static void mixed(struct launch *l, void *user)
{
    uint64_t seed = *(uint64_t *)user;
    for (int i = 0; i < 1000; i++) {
        uint64_t r = mix(seed + (uint64_t)i); /* equal on all ranks */
        size_t bytes = r % 97 == 0 ? r % LARGEST_BYTES : (r >> 8) % (r % 5 ? 100 : 20000);
        switch ((r >> 40) % 4) {
        case 0:
            CHECK_INT(launch_barrier(l), ==, 0);
            break;
        case 1:
            check_broadcast(l, bytes, (int)((r >> 42) % (uint64_t)launch_world_size(l)), r);
            break;
        case 2:
            check_all_gather(l, bytes, r, (r >> 43) % 2);
            break;
        default:
            check_all_reduce(l, (int)(r >> 44) % TYPES, (int)(r >> 46) % OPS, bytes / 8, r,
                             (r >> 43) % 2);
        }
    }
}

TEST(a_thousand_mixed_collectives_are_right_for_sleeping_ranks)
{
    uint64_t seed = 1;
    group_run(2, 0, mixed, &seed);
    group_run(5, 0, mixed, &seed);
}

TEST(a_thousand_mixed_collectives_are_right_for_ranks_that_look_first)
{
    uint64_t seed = 2;
    group_run(3, 2000, mixed, &seed);
}

/* ---- the barrier holds ---- */

/* Nobody may come out of barrier i before everybody went in; a shared counter tells. */
static void count_through(struct launch *l, void *user)
{
    const struct group *g = user;
    struct board_slot *first = board_slot(&g->board, 0);
    uint64_t world = (uint64_t)launch_world_size(l);
    for (uint64_t i = 1; i <= 300; i++) {
        atomic_fetch_add(&first->heartbeat, 1);
        CHECK_INT(launch_barrier(l), ==, 0);
        CHECK_INT(atomic_load(&first->heartbeat), >=, i * world);
    }
}

/* Meanwhile the epoch changes for no reason, which wakes everybody and may disturb nobody. */
TEST(nobody_leaves_a_barrier_before_all_have_come_whatever_the_epoch_does)
{
    for (uint32_t world = 2; world <= 9; world++) {
        struct group g;
        group_open(&g, world, 0);
        for (uint32_t i = 0; i < world; i++)
            group_spawn(&g, i, count_through, &g);
        group_start(&g);
        for (int i = 0; i < 200; i++)
            board_bump_epoch(&g.board);
        for (uint32_t i = 0; i < world; i++)
            CHECK_INT(group_reap(&g, i), ==, 0);
        group_close(&g);
    }
}

/* ---- ranks that disagree, die or are stopped ---- */

enum what { BARRIER, BROADCAST, GATHER, REDUCE };

struct made_call {
    enum what what;
    size_t n;
    int root;
    enum launch_type type;
    enum launch_op op;
};

static int make(struct launch *l, const struct made_call *c)
{
    static char in[4096], out[8 * 4096];
    switch (c->what) {
    case BARRIER:
        return launch_barrier(l);
    case BROADCAST:
        return launch_broadcast(l, in, c->n, c->root);
    case GATHER:
        return launch_all_gather(l, in, out, c->n);
    default:
        return launch_all_reduce(l, in, out, c->n, c->type, c->op);
    }
}

struct mismatch {
    struct made_call odd, rest; /* the last rank makes the odd one */
    const char *text;           /* part of what the last of 2 ranks says */
};

/* Exit code: 1 with LAUNCH_INVALID. */
static void disagree(struct launch *l, void *user)
{
    const struct mismatch *m = user;
    bool odd = launch_rank(l) == launch_world_size(l) - 1;
    CHECK_INT(launch_barrier(l), ==, 0);
    int result = make(l, odd ? &m->odd : &m->rest);
    CHECK(result == LAUNCH_OK || result == LAUNCH_INVALID);
    if (result == LAUNCH_INVALID) {
        CHECK_INT(launch_barrier(l), ==, LAUNCH_INVALID); /* for good */
        if (launch_world_size(l) == 2 && odd)
            CHECK_HAS(launch_error(l), m->text);
    }
    launch_leave(l);
    exit(result == LAUNCH_INVALID ? 7 : 0);
}

static const struct mismatch mismatches[] = {
    {{.what = BROADCAST, .n = 4},
     {.what = REDUCE, .n = 2},
     "rank 1 called broadcast of 4 bytes (root 0), rank 0 called all_reduce of 8 bytes (sum of "
     "int32)"},
    {{.what = BROADCAST, .n = 4},
     {.what = BROADCAST, .n = 4, .root = 1},
     "(root 0), rank 0 called"},
    {{.what = BROADCAST, .n = 4},
     {.what = BROADCAST, .n = 5},
     "rank 0 called broadcast of 5 bytes"},
    {{.what = GATHER, .n = 4}, {.what = GATHER, .n = 0}, "rank 0 called all_gather of 0 bytes"},
    {{.what = GATHER, .n = 4}, {.what = BARRIER}, "rank 0 called barrier"},
    {{.what = BARRIER},
     {.what = REDUCE, .n = 1},
     "rank 1 called barrier, rank 0 called all_reduce"},
    {{.what = REDUCE, .n = 2}, {.what = REDUCE, .n = 1, .type = LAUNCH_INT64}, "(sum of int64)"},
    {{.what = REDUCE, .n = 2}, {.what = REDUCE, .n = 2, .op = LAUNCH_MAX}, "(max of int32)"},
    {{.what = REDUCE, .n = 2}, {.what = REDUCE, .n = 2, .type = LAUNCH_FLOAT}, "(sum of float)"},
};

TEST(ranks_that_make_different_calls_are_told_so)
{
    for (size_t m = 0; m < ARRAY_LEN(mismatches); m++)
        for (uint32_t world = 2; world <= 8; world++) {
            struct group g;
            unsigned told = 0;
            group_open(&g, world, 0);
            for (uint32_t i = 0; i < world; i++)
                group_spawn(&g, i, disagree, (void *)(uintptr_t)&mismatches[m]);
            group_start(&g);
            for (uint32_t i = 0; i < world; i++) {
                int code = group_reap(&g, i);
                CHECK(code == 0 || code == 7);
                told += code == 7;
            }
            CHECK_INT(told, >=, world == 2 ? 2 : 1);
            group_close(&g);
        }
}

struct patience {
    struct group g;
    int result; /* that ends it */
};

/* Rings the bell itself, because nobody else does once it runs. */
static void call_until_told(struct launch *l, void *user)
{
    static double data[40000];
    const struct patience *p = user;
    uint64_t one = 1;
    int result = LAUNCH_OK;
    CHECK_INT(write(p->g.bell, &one, sizeof one), ==, sizeof one);
    while (result == LAUNCH_OK)
        result = launch_all_reduce(l, data, data, ARRAY_LEN(data), LAUNCH_DOUBLE, LAUNCH_SUM);
    CHECK_INT(result, ==, p->result);
    CHECK_INT(launch_barrier(l), ==, p->result);
    CHECK(launch_error(l)[0] != '\0');
}

static void start_patient_ranks(struct patience *p, uint32_t world_size, int result)
{
    group_open(&p->g, world_size, 0);
    p->result = result;
    for (uint32_t i = 0; i < world_size; i++)
        group_spawn(&p->g, i, call_until_told, p);
    group_start(&p->g);
    for (uint32_t i = 0; i < world_size; i++)
        group_await(&p->g, i, STAGE_RUNNING);
}

TEST(a_stop_ends_a_collective_that_others_will_not_come_to)
{
    for (uint32_t world = 2; world <= 5; world++) {
        struct patience p;
        start_patient_ranks(&p, world, LAUNCH_STOP);
        group_stop(&p.g);
        for (uint32_t i = 0; i < world; i++)
            CHECK_INT(group_reap(&p.g, i), ==, 0);
        group_close(&p.g);
    }
}

static void meet_nobody(struct launch *l, void *user)
{
    (void)user;
    CHECK_INT(launch_barrier(l), ==, LAUNCH_OK);
    if (launch_rank(l) == 0)
        return;
    CHECK_INT(launch_barrier(l), ==, LAUNCH_FAILED);
    CHECK_HAS(launch_error(l), "has left");
}

TEST(a_collective_that_a_rank_has_left_fails_and_a_finished_one_does_not)
{
    struct group g;
    group_open(&g, 2, 0);
    group_spawn(&g, 0, meet_nobody, NULL);
    group_spawn(&g, 1, meet_nobody, NULL);
    group_start(&g);
    CHECK_INT(group_reap(&g, 0), ==, 0);
    board_bump_epoch(&g.board); /* as the agent does when a rank leaves */
    CHECK_INT(group_reap(&g, 1), ==, 0);
    group_close(&g);
}

TEST(survivors_of_a_death_leave_their_collective_for_the_next_generation)
{
    for (uint32_t victim = 0; victim < 4; victim++) {
        struct patience p;
        start_patient_ranks(&p, 4, LAUNCH_AGAIN);
        kill(p.g.pid[victim], SIGKILL);
        CHECK_INT(group_reap(&p.g, victim), ==, 128 + SIGKILL);
        pthread_mutex_t *lock = &board_slot(&p.g.board, victim)->lock;
        CHECK_INT(pthread_mutex_trylock(lock), ==, EOWNERDEAD);
        pthread_mutex_consistent(lock);
        pthread_mutex_unlock(lock);
        group_next_generation(&p.g);
        for (uint32_t i = 0; i < 4; i++)
            if (i != victim)
                CHECK_INT(group_reap(&p.g, i), ==, 0);
        group_close(&p.g);
    }
}

/* ---- arguments and hostile peers ---- */

static void bad_arguments(struct launch *l, void *user)
{
    char byte = 0, both[2];
    (void)user;
    CHECK_INT(launch_broadcast(l, &byte, 1, -1), ==, LAUNCH_INVALID);
    CHECK_INT(launch_broadcast(l, &byte, 1, 2), ==, LAUNCH_INVALID);
    CHECK_HAS(launch_error(l), "root 2 of 2 ranks");
    CHECK_INT(launch_broadcast(l, NULL, 1, 0), ==, LAUNCH_INVALID);
    CHECK_INT(launch_all_gather(l, NULL, both, 1), ==, LAUNCH_INVALID);
    CHECK_INT(launch_all_gather(l, &byte, NULL, 1), ==, LAUNCH_INVALID);
    CHECK_INT(launch_all_gather(l, &byte, both, SIZE_MAX / 2 + 1), ==, LAUNCH_INVALID);
    CHECK_INT(launch_all_reduce(l, NULL, both, 1, LAUNCH_INT32, LAUNCH_SUM), ==, LAUNCH_INVALID);
    CHECK_INT(launch_all_reduce(l, both, NULL, 1, LAUNCH_INT32, LAUNCH_SUM), ==, LAUNCH_INVALID);
    CHECK_INT(launch_all_reduce(l, both, both, 1, (enum launch_type)4, LAUNCH_SUM), ==,
              LAUNCH_INVALID);
    CHECK_INT(launch_all_reduce(l, both, both, 1, LAUNCH_INT32, (enum launch_op)4), ==,
              LAUNCH_INVALID);
    CHECK_INT(launch_all_reduce(l, both, both, SIZE_MAX / 4 + 1, LAUNCH_INT32, LAUNCH_SUM), ==,
              LAUNCH_INVALID);
    /* None of these took part in anything. */
    CHECK_INT(launch_barrier(l), ==, LAUNCH_OK);
    CHECK_INT(launch_broadcast(l, NULL, 0, 1), ==, LAUNCH_OK);
    CHECK_INT(launch_all_gather(l, NULL, NULL, 0), ==, LAUNCH_OK);
    CHECK_INT(launch_all_reduce(l, NULL, NULL, 0, LAUNCH_INT32, LAUNCH_SUM), ==, LAUNCH_OK);
}

TEST(bad_arguments_are_refused_and_disturb_nobody)
{
    group_run(2, 0, bad_arguments, NULL);
}

static void meet_garbage(struct launch *l, void *user)
{
    double x = 1;
    (void)user;
    CHECK_INT(launch_all_reduce(l, &x, &x, 1, LAUNCH_DOUBLE, LAUNCH_SUM), ==, LAUNCH_INVALID);
    CHECK_HAS(launch_error(l), "rank 1 called something unknown");
}

TEST(a_peer_that_writes_garbage_is_named)
{
    struct group g;
    group_open(&g, 2, 0);
    group_spawn(&g, 0, meet_garbage, NULL);
    group_await(&g, 0, STAGE_JOINED);
    struct board_slot *peer = board_slot(&g.board, 1);
    memset(board_data(&g.board, 1), 0xff, BOARD_DATA_BYTES);
    for (unsigned k = 0; k < BOARD_BARRIER_ROUNDS; k++)
        atomic_store(&peer->arrive[k], 0x7fffffff); /* ahead of everybody */
    atomic_store(&peer->generation, 1);
    atomic_store(&peer->stage, 0xdead);
    group_start(&g);
    CHECK_INT(group_reap(&g, 0), ==, 0);
    group_close(&g);
}

/* ---- counters for those who watch ---- */

static void call_each(struct launch *l, void *user)
{
    (void)user;
    int32_t data[8] = {0};
    CHECK_INT(launch_barrier(l), ==, 0);
    CHECK_INT(launch_broadcast(l, data, sizeof *data, 0), ==, 0);
    CHECK_INT(launch_all_gather(l, data + 4 + launch_rank(l), data + 4, sizeof *data), ==, 0);
    CHECK_INT(launch_all_reduce(l, data, data, 1, LAUNCH_INT32, LAUNCH_SUM), ==, 0);
    CHECK_INT(launch_broadcast(l, data, sizeof *data, 99), ==, LAUNCH_INVALID);
    while (launch_check(l) == LAUNCH_OK)
        ; /* all are told to stop */
    CHECK_INT(launch_barrier(l), ==, LAUNCH_STOP);
}

TEST(collectives_that_were_entered_and_finished_are_counted)
{
    struct group g;
    for (uint32_t world = 1; world <= 3; world += 2) {
        group_open(&g, world, 0);
        for (uint32_t i = 0; i < world; i++)
            group_spawn(&g, i, call_each, NULL);
        group_start(&g);
        for (uint32_t i = 0; i < world; i++)
            while (atomic_load(&board_slot(&g.board, i)->finished) < 4)
                ;
        group_stop(&g);
        for (uint32_t i = 0; i < world; i++) {
            CHECK_INT(group_reap(&g, i), ==, 0);
            CHECK_INT(board_slot(&g.board, i)->entered, ==, 5);
            CHECK_INT(board_slot(&g.board, i)->finished, ==, 4);
        }
        group_close(&g);
    }
}
