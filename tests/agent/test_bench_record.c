/* SPDX-License-Identifier: MIT */
/* The records of bench's job: what a good one writes, and whatever else may come. */
#include "../../agent/bench/record.h"
#include "../harness.h"

#include <stdio.h>
#include <stdlib.h>

static struct bench_run run;
static struct bench_result at;
static struct err err;

#define BENCH                                                                                      \
    "{\"bench\": {\"version\": 1, \"backend\": \"nccl\", \"collective\": \"reduce\", "             \
    "\"ranks\": 4, \"library\": 22809, \"headers\": 22807, \"min_bytes\": 8, \"max_bytes\": 64, "  \
    "\"step_bytes\": 0, \"step_factor\": 2, \"iterations\": 20, \"warmup\": 1, \"check\": 1, "     \
    "\"runtime\": 13000, \"driver\": 13010}}"
#define DEVICE                                                                                     \
    "{\"device\": {\"rank\": 3, \"pid\": 12, \"host\": \"box\", \"device\": 1, "                   \
    "\"bus\": \"0000:18:00.0\", \"name\": \"NVIDIA H200\", \"uuid\": \"GPU-1\"}}"
#define RESULT                                                                                     \
    "{\"result\": {\"size\": 8, \"count\": 2, \"type\": \"float\", \"redop\": \"sum\", "           \
    "\"root\": 3, \"out_of_place\": {\"time\": 1.5, \"alg_bw\": 2e-3, \"bus_bw\": 4, "             \
    "\"nwrong\": 1, \"checked\": 1}, \"in_place\": {\"time\": 2, \"alg_bw\": 3, \"bus_bw\": 6, "   \
    "\"nwrong\": null, \"checked\": 0.25}}}"
#define PAIR                                                                                       \
    "{\"pair\": {\"from\": 0, \"to\": 3, \"size\": 64, \"time\": 1, \"alg_bw\": 40.5, "            \
    "\"both_bw\": 70, \"nwrong\": 0}}"
#define END "{\"end\": {\"wrong\": 1, \"timeout\": false}}"

static int take(const char *line)
{
    return bench_run_take(&run, line, strlen(line), &at, &err);
}

TEST(what_a_good_job_writes_is_a_run)
{
    CHECK_INT(take(BENCH), ==, BENCH_RECORD_BENCH);
    CHECK_INT(run.collective, ==, BENCH_REDUCE);
    CHECK(!run.host);
    CHECK_INT(run.ranks, ==, 4);
    CHECK_INT(run.nccl_library, ==, 22809);
    CHECK_INT(run.cuda_driver, ==, 13010);
    CHECK_INT(run.step_factor, ==, 2);
    CHECK_INT(take(DEVICE), ==, BENCH_RECORD_DEVICE);
    CHECK_STR(bench_device_of(&run, 3)->name, "NVIDIA H200");
    CHECK(!bench_device_of(&run, 0));
    CHECK_INT(take("{\"note\": \"a \\u001b[31mred\\nnote\"}"), ==, BENCH_RECORD_NOTE);
    CHECK_STR(run.notes[0], "a ?[31mred?note");
    CHECK_INT(
        take("{\"at\": {\"size\": 8, \"type\": \"half\", \"redop\": \"none\", \"root\": -1}}"), ==,
        BENCH_RECORD_AT);
    CHECK(at.type == BENCH_TYPE_HALF && at.op == -1 && at.root == -1);
    CHECK_INT(take(RESULT), ==, BENCH_RECORD_RESULT);
    const struct bench_result *r = &run.results[0];
    CHECK(r->out_of_place.time == 1.5 && r->out_of_place.alg_bw == 0.002);
    CHECK_INT(r->out_of_place.wrong, ==, 1);
    CHECK(r->has_in_place && r->in_place.checked == 0.25);
    CHECK_INT(r->in_place.wrong, ==, -1);
    CHECK(r->op == BENCH_OP_SUM && r->root == 3);
    CHECK_INT(take(PAIR), ==, BENCH_RECORD_PAIR);
    CHECK(run.pairs[0].to == 3 && run.pairs[0].both_bw == 70);
    CHECK_INT(take(END), ==, BENCH_RECORD_END);
    CHECK(run.ended && !run.timed_out && run.wrong == 1);
    CHECK(bench_average(&run) == 5);
    CHECK_INT(bench_wrong(&run), ==, 1);
    bench_run_finish(&run);
    CHECK(!run.results && !run.ranks);
}

TEST(other_lines_are_no_records)
{
    static const char *const LINES[] = {"",
                                        "{",
                                        "{}",
                                        "NCCL INFO x",
                                        "{\"other\": 1}",
                                        "{\"benches\": {}}",
                                        " {\"end\": {}}",
                                        "[\"end\"]"};
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++)
        CHECK_INT(take(LINES[i]), ==, BENCH_RECORD_NONE);
}

TEST(records_have_an_order)
{
    CHECK_INT(take(RESULT), ==, -EINVAL);
    CHECK_HAS(err.text, "'result' is out of order");
    CHECK_INT(take(BENCH), ==, BENCH_RECORD_BENCH);
    CHECK_INT(take(BENCH), ==, -EINVAL);
    CHECK_INT(take(END), ==, BENCH_RECORD_END);
    CHECK_INT(take(RESULT), ==, -EINVAL);
    CHECK_INT(take(END), ==, -EINVAL);
    bench_run_finish(&run);
}

/* The line with the first `from` in it replaced. */
static const char *with(const char *line, const char *from, const char *to)
{
    static char text[2048];
    const char *hit = strstr(line, from);
    CHECK(hit != NULL);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(hit - line), line, to, hit + strlen(from));
    return text;
}

TEST(a_member_out_of_its_range_or_of_another_type_is_named)
{
    static const char *const BAD[][4] = {
        {RESULT, "\"size\": 8", "\"size\": -8", "size"},
        {RESULT, "\"size\": 8", "\"size\": 9223372036854775808", "size"},
        {RESULT, "\"size\": 8", "\"size\": 8.5", "size"},
        {RESULT, "\"size\": 8", "\"size\": \"8\"", "size"},
        {RESULT, "\"size\": 8", "\"sizes\": 8", "size"},
        {RESULT, "\"count\": 2", "\"count\": null", "count"},
        {RESULT, "\"float\"", "\"flaot\"", "type"},
        {RESULT, "\"float\"", "4", "type"},
        {RESULT, "\"sum\"", "\"none \"", "redop"},
        {RESULT, "\"root\": 3", "\"root\": 4", "root"},
        {RESULT, "\"root\": 3", "\"root\": -2", "root"},
        {RESULT, "1.5", "-1.5", "time"},
        {RESULT, "1.5", "1e999", "time"},
        {RESULT, "1.5", "0.00000000000000000000000000000000000000001", "time"},
        {RESULT, "\"nwrong\": 1", "\"nwrong\": -1", "nwrong"},
        {RESULT, "\"nwrong\": 1", "\"nwrong\": \"1\"", "nwrong"},
        {RESULT, "0.25", "1.25", "checked"},
        {RESULT, "\"in_place\": {\"time\": 2", "\"in_place\": {\"x\": 2", "time"},
        {DEVICE, "\"rank\": 3", "\"rank\": 4", "rank"},
        {DEVICE, "\"pid\": 12", "\"pid\": -1", "pid"},
        {DEVICE, "\"box\"", "7", "host"},
        {PAIR, "\"to\": 3", "\"to\": 77", "to"},
        {PAIR, "\"from\": 0", "\"from\": -1", "from"},
        {END, "\"wrong\": 1", "\"wrong\": []", "wrong"},
    };
    char want[64];
    CHECK_INT(take(BENCH), ==, BENCH_RECORD_BENCH);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        CHECK_INT(take(with(BAD[i][0], BAD[i][1], BAD[i][2])), ==, -EINVAL);
        snprintf(want, sizeof want, "look at its '%s'", BAD[i][3]);
        CHECK_HAS(err.text, want);
    }
    CHECK_INT(run.results_n + run.devices_n + run.pairs_n, ==, 0);
    CHECK(!run.ended);
    CHECK_INT(take(with(RESULT, "1.5", "nan")), ==, -EINVAL);
    CHECK_HAS(err.text, "'result' is no JSON");
    CHECK_INT(take("{\"note\": 1}"), ==, -EINVAL);
    bench_run_finish(&run);
}

TEST(a_first_record_that_makes_no_sense_begins_no_run)
{
    static const char *const BAD[][2] = {{"\"ranks\": 4", "\"ranks\": 0"},
                                         {"\"ranks\": 4", "\"ranks\": 1000000"},
                                         {"\"reduce\"", "\"reduces\""},
                                         {"\"max_bytes\": 64", "\"max_bytes\": -1"},
                                         {"\"iterations\": 20", "\"iterations\": 3000000000"},
                                         {"\"version\": 1", "\"version\": 2"}};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        CHECK_INT(take(with(BENCH, BAD[i][0], BAD[i][1])), ==, -EINVAL);
        CHECK_INT(run.ranks, ==, 0);
    }
    CHECK_HAS(err.text, "version 2");
    bench_run_finish(&run);
}

TEST(lists_have_an_end)
{
    CHECK_INT(take(BENCH), ==, BENCH_RECORD_BENCH);
    for (int i = 0; i < 4; i++)
        CHECK_INT(take(DEVICE), ==, BENCH_RECORD_DEVICE);
    CHECK_INT(take(DEVICE), ==, -EINVAL);
    CHECK_HAS(err.text, "more than 4");
    int pairs = 0; /* of several sizes, so more than the square of the ranks */
    while (pairs < 1000000 && take(PAIR) == BENCH_RECORD_PAIR)
        pairs++;
    CHECK_INT(pairs, ==, 1 << 17);
    int notes = 0;
    while (notes < 100000 && take("{\"note\": \"x\"}") == BENCH_RECORD_NOTE)
        notes++;
    CHECK_INT(notes, ==, 256);
    int results = 0;
    while (results < 1000000 && take(RESULT) == BENCH_RECORD_RESULT)
        results++;
    CHECK_INT(results, ==, 1 << 17);
    bench_run_finish(&run);
}

TEST(a_record_with_any_one_byte_changed_does_no_harm)
{
    static const char *const LINES[] = {BENCH, DEVICE, RESULT, PAIR, END};
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++)
        for (size_t k = 0; LINES[i][k]; k++)
            for (int c = 0; c < 256; c += 5) {
                char text[2048];
                memcpy(text, LINES[i], strlen(LINES[i]) + 1);
                text[k] = (char)c;
                if (i > 0)
                    CHECK_INT(take(BENCH), ==, BENCH_RECORD_BENCH);
                (void)!bench_run_take(&run, text, strlen(LINES[i]), &at, &err);
                bench_run_finish(&run);
            }
}

TEST(factors_and_names_are_those_of_nccl_tests)
{
    CHECK(bench_factor(BENCH_ALL_REDUCE, 8) == 1.75);
    CHECK(bench_factor(BENCH_ALL_REDUCE, 1) == 0);
    CHECK(bench_factor(BENCH_ALLTOALL, 4) == 0.75);
    CHECK(bench_factor(BENCH_SENDRECV, 4) == 1);
    for (int i = 0; i < BENCH_COLLECTIVES_N; i++)
        CHECK_INT(bench_collective_find(bench_collective_name((enum bench_collective)i)), ==, i);
    for (int i = 0; i < BENCH_TYPES_N; i++)
        CHECK_INT(bench_type_find(bench_type_name((enum bench_type)i)), ==, i);
    for (int i = 0; i < BENCH_OPS_N; i++)
        CHECK_INT(bench_op_find(bench_op_name(i)), ==, i);
    CHECK_STR(bench_op_name(-1), "none");
    CHECK_INT(bench_type_find("all"), ==, -1);
    CHECK(bench_reduces(BENCH_REDUCE) && bench_has_root(BENCH_REDUCE));
    CHECK(!bench_reduces(BENCH_GATHER) && !bench_has_root(BENCH_ALLTOALL));
    CHECK_INT(bench_type_bytes(BENCH_TYPE_BFLOAT16), ==, 2);
}
