/* SPDX-License-Identifier: MIT */
/* The agent beside workers that write anything into the board at any moment: steps of the input are a worker's scribble or
 * something that the agent does. Stages are told in order, and what is shown of the board is fit for a terminal. */
#include "../../agent/aftermath.h"
#include "../../agent/hang.h"

#include "fuzz.h"

#include <sys/eventfd.h>

#define RANKS 3u
#define SPARES 1u
#define FRONT (sizeof(struct board_head) + (RANKS + SPARES) * sizeof(struct board_slot))

static uv_loop_t loop;
static struct host_board hb;
static struct group group;
static struct job_spec spec;
static enum stage told[RANKS];

static void on_stage(void *user, uint32_t rank, enum stage stage)
{
    (void)user;
    must(rank < RANKS && stage > STAGE_NONE && stage < STAGES_N, "a stage of nobody");
    must(told[rank] != STAGE_NONE || stage == STAGE_JOINED, "a stage before joining");
    must(told[rank] < STAGE_LEFT, "a stage after the last one");
    told[rank] = stage;
}

/* ---- a worker's scribble ---- */

static void scribble(struct fuzz_in *in)
{
    size_t bytes = 1u << in_u8(in) % 4, at = in_u64(in, 2) % (FRONT - 8);
    uint64_t value = in_u64(in, bytes);
    memcpy((char *)hb.board.head + at, &value, bytes);
}

/* What a worker may write, so that the agent goes on to look at the rest. */
static void be(struct fuzz_in *in)
{
    uint8_t what = in_u8(in);
    struct board_slot *slot = board_slot(&hb.board, what % RANKS);
    atomic_store(&slot->generation, hb.generation);
    atomic_store(&slot->stage, what / RANKS % STAGES_N);
    atomic_store(&slot->join_flags, in_u8(in));
    atomic_store(&slot->born, in_u8(in) % 4);
    atomic_store(&slot->state, in_u8(in) % 4);
}

static void complain(struct fuzz_in *in)
{
    struct board_slot *slot = board_slot(&hb.board, in_u8(in) % RANKS);
    size_t n = in_u8(in);
    n = n < in_left(in) ? n : in_left(in);
    memcpy(slot->error, in_bytes(in, n), n);
    atomic_store(&slot->error_bytes, in_u8(in) * 16777216u + (uint32_t)n);
}

/* ---- what the agent does ---- */

static void hear_bell(struct fuzz_in *in)
{
    (void)in;
    (void)!eventfd_write(hb.bell, 1);
    uv_run(&loop, UV_RUN_NOWAIT);
}

static void ask(struct fuzz_in *in)
{
    uint32_t rank = in_u8(in) % RANKS;
    char text[400];
    host_board_look_at(&hb, rank);
    must(host_board_stage(&hb, rank) < STAGES_N, "a stage that there is not");
    if (in_u8(in) & 1)
        host_board_occupy(&hb, rank);
    (void)host_board_catches_stop(&hb, rank);
    (void)host_board_has_left(&hb, rank);
    (void)host_board_false_stop(&hb, rank);
    (void)host_board_can_heal(&hb, rank);
    host_board_describe_missing(&hb, in_u64(in, 8), text, sizeof text);
    check_clean(text);
}

/* Every other generation is told early that it is gathered; what it was told, a worker may write over. */
static void release(struct fuzz_in *in)
{
    (void)in;
    bool told_early = hb.gathered, gather = !told_early && hb.generation % 2 == 0;
    bool whole = gather ? host_board_gather(&hb) : host_board_release(&hb);
    must(told_early || atomic_load(&hb.board.head->root) <= hb.members, "a root that is no rank");
    must(!told_early || whole, "what was told is taken back");
    must(!whole || gather || atomic_load(&hb.board.head->running) == hb.generation,
         "nobody was let go");
}

static void next_generation(struct fuzz_in *in)
{
    uint8_t lost = in_u8(in) % (2 * RANKS);
    if (lost < RANKS && !hb.dropped[lost] && hb.members > 1)
        host_board_drop(&hb, lost);
    host_board_next(&hb, hb.generation + 1, in_u64(in, 4));
    memset(told, STAGE_NONE, sizeof told);
}

static void use_spare(struct fuzz_in *in)
{
    host_board_vacate(&hb, 0);
    host_board_assign(&hb, 0, in_u8(in) % RANKS);
}

static void stop(struct fuzz_in *in)
{
    host_board_stop(&hb, in_u8(in));
}

/* As vigil.c has it. */
static void look_for_hangs(struct fuzz_in *in)
{
    static struct hang hang;
    static struct hang_rank ranks[RANKS];
    char text[400];
    uint64_t now = in_u8(in) * 1000u;
    if (!hang.ranks || in_u8(in) % 4 == 0)
        hang_begin(&hang, ranks, RANKS, 1000, now);
    hang_look(&hang, now + hang.looked_ns);
    for (uint32_t i = 0; i < RANKS; i++) {
        const struct progress progress = host_board_progress(&hb, i);
        struct hang_facts facts = {.alive = true,
                                   .stage = progress.stage,
                                   .step = progress.step,
                                   .heartbeat = progress.heartbeat,
                                   .entered = progress.entered,
                                   .finished = progress.finished};
        hang_note(&hang, i, &facts);
    }
    if (!hang_any(&hang))
        return;
    struct hang_verdict verdict = hang_judge(&hang, NULL);
    must(verdict.rank < RANKS && verdict.why < HANG_WHYS_N, "nobody hangs");
    hang_describe(&hang, &verdict, text, sizeof text);
    check_clean(text);
}

static void fail(struct fuzz_in *in)
{
    struct aftermath a;
    struct failure f;
    uint8_t how = in_u8(in);
    aftermath_init(&a, &spec, RANKS);
    for (uint32_t i = 0; i < RANKS; i++) {
        group.ranks[i].ended = true;
        group.ranks[i].signalled = how >> i & 1;
        group.ranks[i].code = how >> i & 1 ? 6 : 1;
        group.ranks[i].reason = REASON_EXIT;
    }
    aftermath_blame(&f, &group.ranks[how % RANKS], &hb.board, REASON_EXIT, 1);
    aftermath_settle(&a, &f, &group, &hb.board, how % (RANKS + 1));
    (void)aftermath_decide(&a, &f, false);
    must(f.rank < RANKS, "a rank that there is not");
    check_clean(f.error);
    check_clean(f.what);
    aftermath_finish(&a);
}

static void start(void)
{
    static struct rank ranks[RANKS];
    group = (struct group){.n = RANKS, .ranks = ranks};
    uv_loop_init(&loop);
    must(spec_init(&spec) == 0, "no memory");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static void (*const steps[])(struct fuzz_in * in) = {
        scribble, be,        complain, hear_bell,      ask,  release, next_generation,
        be,       use_spare, stop,     look_for_hangs, fail, scribble};
    struct fuzz_in in = {data, data + n};
    struct err err;
    const struct board_config config = {.world_size = RANKS,
                                        .spares = SPARES,
                                        .generation = 1,
                                        .rendezvous_timeout_ms = 1000,
                                        .run_id = "night"};
    if (!group.n)
        start();
    memset(told, STAGE_NONE, sizeof told);
    must(host_board_open(&hb, &loop, &config, on_stage, NULL, &err) == 0, err.text);
    for (unsigned i = 0; in_left(&in) && i < 256; i++)
        steps[in_u8(&in) % ARRAY_LEN(steps)](&in);
    host_board_close(&hb);
    uv_run(&loop, UV_RUN_NOWAIT);
    return 0;
}
