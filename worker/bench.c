/* SPDX-License-Identifier: MIT */
/* The job from its options to its last record: what is measured, in nccl-tests' order. */
#include "bench.h"

#include "../proto/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FP8_SM 90

/* ---- what was asked for ---- */

/* Rank 0 says it for all, before the first that ends has the launcher end the others. */
static int refuse(struct bench *b, const char *why)
{
    if (b->rank == 0)
        fprintf(stderr, "%s\n", why);
    (void)launch_barrier(b->l);
    launch_fail(b->l, LAUNCH_INVALID, "%s", why);
    return EXIT_CODE_USAGE;
}

static bool has(unsigned set, int bit)
{
    return bit < 0 || set >> bit & 1;
}

/* What the options ask of this backend and of these ranks; 0, or the exit code. */
static int check_options(struct bench *b)
{
    const struct bench_options *o = &b->o;
    const char *what = NULL;
    char why[160];
    if (!has(b->on->collectives, (int)o->collective))
        what = bench_collective_text(o->collective);
    else if (o->pairs && !b->on->pairs)
        what = "--pairs";
    else if (!has(b->on->types, o->type))
        what = bench_type_text((enum bench_type)o->type);
    else if (bench_has_op(o->collective) && !has(b->on->ops, o->op))
        what = bench_op_text(o->op);
    if (what) {
        snprintf(why, sizeof why, "launch-bench: %s: not over %s", what, b->on->words);
        return refuse(b, why);
    }
    if (bench_plan_has_root(o->collective) && o->root >= b->ranks) {
        snprintf(why, sizeof why, "launch-bench: root %d: there are %d ranks, 0 to %d", o->root,
                 b->ranks, b->ranks - 1);
        return refuse(b, why);
    }
    if (o->pairs && b->ranks < 2)
        return refuse(b, "launch-bench: --pairs wants two ranks, there is 1");
    return 0;
}

/* ---- devices ---- */

static int sharers(const struct bench_device *devices, int n, int of)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += strcmp(devices[i].bus, devices[of].bus) == 0;
    return count;
}

static bool is_fp8(int type)
{
    return type == BENCH_TYPE_F8E4M3 || type == BENCH_TYPE_F8E5M2;
}

/* Lowers -e to what all devices have room for. */
static void limit_sizes(struct bench *b, const struct bench_device *devices)
{
    uint64_t room = UINT64_MAX;
    for (int i = 0; i < b->ranks; i++) {
        uint64_t one = b->on->room(&devices[i], sharers(devices, b->ranks, i), b->o.checks ? 3 : 2);
        room = one < room ? one : room;
    }
    if (b->o.max_bytes <= room)
        return;
    b->o.max_bytes = room;
    if (b->o.min_bytes > room)
        b->o.min_bytes = room;
    bench_record_note(b, "Reducing maxBytes to %llu due to memory limitation",
                      (unsigned long long)room);
}

/* All know all devices; first records. *ret_fp8: every device calculates with such numbers. */
static int meet_devices(struct bench *b, const struct bench_device *mine, bool *ret_fp8)
{
    struct bench_device *devices = calloc((size_t)b->ranks, sizeof *devices);
    if (!devices)
        return launch_fail(b->l, LAUNCH_FAILED, "out of memory");
    int r = launch_all_gather(b->l, mine, devices, sizeof *devices);
    bool told = false;
    *ret_fp8 = true;
    bench_record_head(b);
    for (int i = 0; r == LAUNCH_OK && i < b->ranks; i++) {
        bench_record_device(b, &devices[i]);
        *ret_fp8 &= devices[i].sm >= FP8_SM;
        told |= devices[i].sm < FP8_SM;
    }
    if (r == LAUNCH_OK)
        limit_sizes(b, devices);
    if (r == LAUNCH_OK && told && has(b->on->types, BENCH_TYPE_F8E4M3) && b->o.type < 0)
        bench_record_note(b, "f8e4m3 and f8e5m2 are left out: they need compute capability 9.0");
    free(devices);
    return r;
}

static int alloc_all(struct bench *b)
{
    b->table = malloc(BENCH_PERIOD * BENCH_ELEMENT_BYTES);
    if (!b->table)
        return launch_fail(b->l, LAUNCH_FAILED, "out of memory");
    int r = b->on->alloc(b, &b->send, b->o.max_bytes);
    return r == LAUNCH_OK ? b->on->alloc(b, &b->receive, b->o.max_bytes) : r;
}

/* ---- the sweep ---- */

static uint64_t next_size(const struct bench_options *o, uint64_t size)
{
    if (o->step_factor)
        return size > o->max_bytes / o->step_factor ? UINT64_MAX : size * o->step_factor;
    return size + o->step_bytes;
}

static int measure_size(struct bench *b, const struct bench_plan *p)
{
    struct bench_half halves[2];
    if (b->o.pairs)
        return bench_measure_pairs(b, p);
    bench_record_at(b, p);
    int r = bench_measure(b, p, false, &halves[0]);
    if (r == LAUNCH_OK)
        r = bench_measure(b, p, true, &halves[1]);
    if (r == LAUNCH_OK)
        bench_record_result(b, p, halves);
    return r;
}

/* All sizes of one type, operation and root. */
static int sweep_sizes(struct bench *b, enum bench_type type, int op, int root)
{
    const struct bench_options *o = &b->o;
    enum bench_collective collective = o->pairs ? BENCH_SENDRECV : o->collective;
    struct bench_plan p = bench_plan_make(collective, type, op, root, b->ranks, o->min_bytes);
    int r = launch_barrier(b->l);
    if (r == LAUNCH_OK)
        r = b->on->prepare(b, &p);
    for (uint64_t size = o->min_bytes; r == LAUNCH_OK && size <= o->max_bytes;
         size = size ? size * 2 : 1) {
        p = bench_plan_make(collective, type, op, root, b->ranks, size);
        r = bench_warm_up(b, &p);
    }
    for (uint64_t size = o->min_bytes; r == LAUNCH_OK && size <= o->max_bytes;
         size = next_size(o, size)) {
        p = bench_plan_make(collective, type, op, root, b->ranks, size);
        r = measure_size(b, &p);
    }
    if (r == LAUNCH_OK)
        b->on->restore(b);
    return r;
}

/* -1: all of `n` that are in the set; else the one. A collective without it has one turn with -1. */
struct turns {
    int from, to;
    unsigned set;
};

static struct turns turns_of(bool has_any, int wanted, int n, unsigned set)
{
    if (!has_any)
        return (struct turns){-1, 0, ~0u};
    return wanted < 0 ? (struct turns){0, n, set} : (struct turns){wanted, wanted + 1, ~0u};
}

static int sweep_type(struct bench *b, enum bench_type type)
{
    const struct bench_options *o = &b->o;
    bool plain = o->pairs;
    struct turns ops =
        turns_of(!plain && bench_has_op(o->collective), o->op, BENCH_OPS_N, b->on->ops);
    struct turns roots =
        turns_of(!plain && bench_plan_has_root(o->collective), o->root, b->ranks, ~0u);
    int r = LAUNCH_OK;
    for (int op = ops.from; op < ops.to; op++)
        for (int root = roots.from; has(ops.set, op) && root < roots.to && r == LAUNCH_OK; root++)
            r = sweep_sizes(b, type, op, root);
    return r;
}

static int sweep(struct bench *b, bool fp8)
{
    struct turns types = turns_of(true, b->o.type, BENCH_TYPES_N, b->on->types);
    int r = LAUNCH_OK;
    for (int type = types.from; r == LAUNCH_OK && type < types.to; type++)
        if (has(types.set, type) && (fp8 || !is_fp8(type)))
            r = sweep_type(b, (enum bench_type)type);
    return r;
}

/* Where something failed, the end of the process frees: freeing may wait for what will not end. */
static int measure(struct bench *b, const struct bench_device *device)
{
    bool fp8 = false;
    int r = meet_devices(b, device, &fp8);
    if (r == LAUNCH_OK && is_fp8(b->o.type) && !fp8)
        r = launch_fail(b->l, LAUNCH_INVALID,
                        "%s needs compute capability 9.0, which not all GPUs have",
                        bench_type_text((enum bench_type)b->o.type));
    if (r == LAUNCH_OK)
        r = alloc_all(b);
    if (r == LAUNCH_OK)
        r = sweep(b, fp8);
    free(b->table);
    b->table = NULL;
    if (r != LAUNCH_OK)
        return r;
    b->on->free(b->send);
    b->on->free(b->receive);
    bench_record_end(b);
    return LAUNCH_OK;
}

/* ---- launch check's ---- */

static int check_sum(struct bench *b)
{
    int64_t sum = 0, right = (int64_t)b->ranks * (b->ranks - 1) / 2;
    size_t place;
    int r = b->on->sum(b, b->rank, &sum);
    if (r != LAUNCH_OK)
        return r;
    if (bench_fault(b, 0, 1, &place))
        sum ^= 1;
    printf("rank %d of %d: sum = %lld\n", b->rank, b->ranks, (long long)sum);
    fflush(stdout);
    r = launch_barrier(b->l); /* a rank that fails ends the others: all have told theirs before */
    if (r != LAUNCH_OK || sum == right)
        return r;
    return launch_fail(b->l, LAUNCH_FAILED, "the sum of all ranks is %lld, not %lld",
                       (long long)sum, (long long)right);
}

static int run_all(struct bench *b)
{
    struct bench_device device = {.rank = b->rank, .device = -1, .pid = (long)getpid()};
    gethostname(device.host, sizeof device.host - 1);
    int r = b->on->open(b, &device);
    if (r == LAUNCH_OK)
        r = b->o.check ? check_sum(b) : measure(b, &device);
    if (r == LAUNCH_OK)
        b->on->close(b);
    /* There is nothing to go on with after a loss. */
    return r == LAUNCH_AGAIN ? LAUNCH_FAILED : r;
}

int launch_main(struct launch *l, int argc, char **argv)
{
    struct bench b = {
        .l = l, .rank = launch_rank(l), .ranks = launch_world_size(l), .on = &BENCH_BACKEND};
    char why[160];
    if (bench_options_parse(&b.o, argc, argv, why, sizeof why) < 0)
        return refuse(&b, why);
    int code = b.o.check ? 0 : check_options(&b);
    return code ? code : run_all(&b);
}
