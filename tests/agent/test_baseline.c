/* SPDX-License-Identifier: MIT */
#include "../../agent/json.h"
#include "bench_rig.h"

/* A baseline of n runs whose times are scaled as given, and one of a single run. */
static void make(struct baseline *b, const double *scales, unsigned n)
{
    struct bench_run runs[5];
    for (unsigned i = 0; i < n; i++)
        rig_run(&runs[i], scales[i]);
    rig_baseline(b, runs, n);
    for (unsigned i = 0; i < n; i++)
        bench_run_finish(&runs[i]);
}

static void compare(struct baseline_comparison *c, const struct baseline *then,
                    const struct bench_run *run, double floor)
{
    struct baseline now;
    struct err err = {0};
    rig_baseline(&now, run, 1);
    CHECK_INT(baseline_comparable(then, &now, false, &err), ==, 0);
    CHECK_INT(baseline_compare(c, then, &now, floor, &err), ==, 0);
    baseline_finish(&now);
}

static const double STEADY[] = {1, 1.005, 0.995};

TEST(a_planted_slowdown_at_one_size_is_found_and_nothing_else)
{
    struct baseline then;
    struct bench_run run;
    struct baseline_comparison c;
    make(&then, STEADY, 3);
    for (unsigned size = 0; size < RIG_SIZES; size++) {
        rig_run(&run, 1);
        rig_slow(&run, size, 1 / 0.8 + 0.01); /* a bandwidth smaller by 20 %, and a little */
        compare(&c, &then, &run, -1);
        CHECK_INT(c.verdict, ==, BASELINE_SLOWER);
        CHECK_INT(c.slower_n, ==, 1);
        CHECK_INT(c.faster_n, ==, 0);
        CHECK_INT(c.points[size][BASELINE_OUT].verdict, ==, BASELINE_SLOWER);
        CHECK_INT(c.points[size][BASELINE_IN].verdict, ==, BASELINE_SAME);
        baseline_comparison_finish(&c);
        bench_run_finish(&run);
    }
    baseline_finish(&then);
}

TEST(what_is_noise_depends_on_the_size_of_the_message)
{
    static const struct {
        unsigned size;
        double least; /* noise up to here */
    } CASES[] = {{RIG_1K, 0.25},  {RIG_64K, 0.25},  {RIG_1M, 0.10},
                 {RIG_64M, 0.10}, {RIG_256M, 0.05}, {RIG_1G, 0.05}};
    struct baseline then;
    make(&then, (const double[]){1}, 1);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++)
        for (int over = 0; over < 2; over++) {
            struct bench_run run;
            struct baseline_comparison c;
            rig_run(&run, 1);
            rig_slow(&run, CASES[i].size, 1 + CASES[i].least + (over ? 0.01 : -0.01));
            compare(&c, &then, &run, -1);
            CHECK_INT(c.verdict, ==, over ? BASELINE_SLOWER : BASELINE_SAME);
            baseline_comparison_finish(&c);
            bench_run_finish(&run);
        }
    baseline_finish(&then);
}

TEST(a_spread_that_was_measured_is_noise_up_to_three_times)
{
    struct baseline then;
    struct bench_run run;
    struct baseline_comparison c;
    make(&then, (const double[]){0.9, 1, 1.1}, 3); /* a spread of 10 % */
    CHECK_INT(then.points[RIG_1G].spread[BASELINE_OUT] * 1000 + 0.5, ==, 100);
    rig_run(&run, 1.28);
    compare(&c, &then, &run, -1);
    CHECK_INT(c.verdict, ==, BASELINE_SAME);
    baseline_comparison_finish(&c);
    bench_run_finish(&run);
    rig_run(&run, 1.32);
    compare(&c, &then, &run, -1);
    CHECK_INT(c.verdict, ==, BASELINE_SLOWER);
    CHECK_INT(c.slower_n, ==, RIG_SIZES);
    baseline_comparison_finish(&c);
    bench_run_finish(&run);
    baseline_finish(&then);
}

TEST(the_median_of_the_runs_counts_not_their_mean)
{
    struct baseline b;
    struct bench_run run;
    rig_run(&run, 1);
    make(&b, (const double[]){1, 9, 1.001, 0.999, 0.998}, 5);
    CHECK(b.points[RIG_1M].result.out_of_place.time == run.results[RIG_1M].out_of_place.time);
    CHECK_INT(b.runs, ==, 5);
    bench_run_finish(&run);
    baseline_finish(&b);
}

TEST(a_run_that_is_faster_than_its_limit_is_called_so)
{
    struct baseline then;
    struct bench_run run;
    struct baseline_comparison c;
    make(&then, STEADY, 3);
    rig_run(&run, 1);
    rig_slow(&run, RIG_1G, 0.8);
    compare(&c, &then, &run, -1);
    CHECK_INT(c.verdict, ==, BASELINE_FASTER);
    CHECK_INT(c.faster_n, ==, 1);
    baseline_comparison_finish(&c);
    bench_run_finish(&run);
    baseline_finish(&then);
}

TEST(a_tolerance_of_the_users_replaces_those_by_size)
{
    struct baseline then;
    struct bench_run run;
    struct baseline_comparison c;
    make(&then, (const double[]){1}, 1);
    rig_run(&run, 1);
    rig_slow(&run, RIG_1K, 1.04);
    compare(&c, &then, &run, 0.03);
    CHECK_INT(c.verdict, ==, BASELINE_SLOWER);
    baseline_comparison_finish(&c);
    compare(&c, &then, &run, 0.05);
    CHECK_INT(c.verdict, ==, BASELINE_SAME);
    baseline_comparison_finish(&c);
    bench_run_finish(&run);
    baseline_finish(&then);
}

TEST(a_run_that_is_broken_is_not_kept)
{
    struct topology *t = rig_topology(18);
    struct err err;
    for (int what = 0; what < 5; what++) {
        struct bench_run runs[2];
        struct baseline b;
        rig_run(&runs[0], 1);
        rig_run(&runs[1], 1);
        runs[1].ended = what != 0;
        runs[1].timed_out = what == 1;
        runs[1].wrong = what == 2;
        runs[1].results_n -= what == 3;
        runs[1].results[4].size += what == 4;
        CHECK_INT(baseline_make(&b, runs, 2, t, 0, &err), ==, -EINVAL);
        CHECK_HAS(err.text, "run 2 of 2: ");
        bench_run_finish(&runs[0]);
        bench_run_finish(&runs[1]);
    }
    free(t);
}

/* ---- what may be compared ---- */

/* A change to one run, or the server it was on, after which it can't be compared; and what the refusal says. */
static void refused(void (*change)(struct bench_run *run, struct topology *t), bool across,
                    const char *says)
{
    struct baseline then, now;
    struct bench_run run;
    struct err err = {0};
    struct topology *t = rig_topology(18);
    make(&then, STEADY, 3);
    rig_run(&run, 1);
    change(&run, t);
    CHECK_INT(baseline_make(&now, &run, 1, t, 0, &err), ==, 0);
    if (says) {
        CHECK_INT(baseline_comparable(&then, &now, across, &err), ==, -EINVAL);
        CHECK_HAS(err.text, says);
    } else {
        CHECK_INT(baseline_comparable(&then, &now, across, &err), ==, 0);
    }
    bench_run_finish(&run);
    baseline_finish(&then);
    baseline_finish(&now);
    free(t);
}

static void other_collective(struct bench_run *run, struct topology *t)
{
    (void)t;
    run->collective = BENCH_BROADCAST;
}

static void other_type(struct bench_run *run, struct topology *t)
{
    (void)t;
    for (unsigned i = 0; i < run->results_n; i++)
        run->results[i].type = BENCH_TYPE_HALF;
}

static void other_op(struct bench_run *run, struct topology *t)
{
    (void)t;
    run->results[3].op = BENCH_OP_MAX;
}

static void other_root(struct bench_run *run, struct topology *t)
{
    (void)t;
    run->results[0].root = 2;
}

static void other_sizes(struct bench_run *run, struct topology *t)
{
    (void)t;
    run->results[2].size += 4;
}

static void asked_for_otherwise(struct bench_run *run, struct topology *t)
{
    (void)t;
    run->max_bytes += 4096;
}

static void fewer_sizes(struct bench_run *run, struct topology *t)
{
    (void)t;
    run->results_n--;
}

static void fewer_ranks(struct bench_run *run, struct topology *t)
{
    (void)t;
    run->ranks = 2;
    run->devices_n = 2;
}

static void one_gpu(struct bench_run *run, struct topology *t)
{
    (void)t;
    for (unsigned i = 1; i < run->devices_n; i++)
        run->devices[i] = run->devices[0];
}

static void on_the_host(struct bench_run *run, struct topology *t)
{
    (void)t;
    run->host = true;
}

static void other_model(struct bench_run *run, struct topology *t)
{
    (void)t;
    for (unsigned i = 0; i < run->devices_n; i++)
        strcpy(run->devices[i].name, "NVIDIA H100 80GB HBM3");
}

static void another_gpu(struct bench_run *run, struct topology *t)
{
    (void)t;
    strcpy(run->devices[3].uuid, "GPU-ff");
}

static void a_link_less(struct bench_run *run, struct topology *t)
{
    (void)run;
    t->links[1][2] = 17;
}

static void narrow_pcie(struct bench_run *run, struct topology *t)
{
    (void)run;
    t->gpu[2].most.width = 8;
}

static void other_driver(struct bench_run *run, struct topology *t)
{
    (void)run;
    strcpy(t->driver, "590.1");
}

static void other_nccl(struct bench_run *run, struct topology *t)
{
    (void)t;
    run->nccl_library = 23003;
}

static void other_cpu(struct bench_run *run, struct topology *t)
{
    (void)run;
    t->cpus_n = 32;
}

static void sleeping_link(struct bench_run *run, struct topology *t)
{
    (void)run;
    t->gpu[2].now = (struct pci_link){1, 16};
}

static void ranks_in_another_order(struct bench_run *run, struct topology *t)
{
    (void)t;
    struct bench_device first = run->devices[0];
    run->devices[0] = run->devices[3];
    run->devices[3] = first;
}

TEST(what_is_not_comparable_is_refused_with_the_part_that_differs)
{
    refused(other_collective, false, "another collective: all_reduce then, broadcast now");
    refused(other_type, false, "another type: float then, half now");
    refused(other_op, false, "another operation: sum then, max now");
    refused(other_root, false, "another root: -1 then, 2 now");
    refused(other_sizes, false, "another sweep: its size number 3 was 16K, and is 16388");
    refused(fewer_sizes, false, "another sweep: 11 sizes then, 10 now");
    refused(fewer_ranks, false, "4 ranks then, 2 now");
    refused(one_gpu, false, "4 ranks then, 4 that share GPUs now");
    refused(on_the_host, false, "GPUs then, host memory now");
    refused(other_model, false, "GPUs: 4 x NVIDIA H200 then, 4 x NVIDIA H100 80GB HBM3 now");
    refused(another_gpu, false, "another machine: other UUIDs of the GPUs");
    refused(a_link_less, false, "another machine: other links");
    refused(narrow_pcie, false, "another machine: other links");
    refused(other_cpu, false, "CPU: A CPU, 64 CPUs then, A CPU, 32 CPUs now");
    refused(other_driver, false, "other software: driver: 580.95.05 then, 590.1 now (--across");
    refused(other_nccl, false, "other software: NCCL: 2.28.9 then, 2.30.3 now (--across");
}

TEST(what_says_nothing_about_the_machine_is_comparable)
{
    refused(sleeping_link, false, NULL);
    refused(ranks_in_another_order, false, NULL);
    refused(other_driver, true, NULL);
    refused(other_nccl, true, NULL);
}

TEST(a_machine_and_a_sweep_have_a_key_of_their_own_and_software_has_not)
{
    static void (*const CHANGES[])(struct bench_run * run, struct topology * t) = {
        other_driver, other_nccl, asked_for_otherwise, other_op,   other_sizes, fewer_sizes,
        fewer_ranks,  one_gpu,    on_the_host,         other_type, another_gpu, a_link_less,
        other_root,   other_cpu,  other_model};
    struct baseline then;
    make(&then, STEADY, 3);
    for (size_t i = 0; i < ARRAY_LEN(CHANGES); i++) {
        struct baseline now;
        struct bench_run run;
        struct err err;
        struct topology *t = rig_topology(18);
        rig_run(&run, 1);
        CHANGES[i](&run, t);
        CHECK_INT(baseline_make(&now, &run, 1, t, 0, &err), ==, 0);
        CHECK_INT(baseline_key(&then) == baseline_key(&now), ==, i < 3);
        bench_run_finish(&run);
        baseline_finish(&now);
        free(t);
    }
    baseline_finish(&then);
}

/* ---- as text ---- */

TEST(what_is_written_comes_back)
{
    struct baseline b, again;
    struct err err = {0};
    make(&b, STEADY, 3);
    baseline_note(&b, &b, BASELINE_SAVED, 0);
    baseline_note(&b, &b, BASELINE_SLOWER, 3);
    char *first = rig_text(&b);
    CHECK_INT(baseline_parse(&again, first, strlen(first), &err), ==, 0);
    char *second = rig_text(&again);
    CHECK_STR(second, first);
    CHECK_INT(baseline_comparable(&b, &again, false, &err), ==, 0);
    CHECK_INT(baseline_key(&b) == baseline_key(&again), ==, 1);
    free(first);
    free(second);
    baseline_finish(&b);
    baseline_finish(&again);
}

TEST(a_file_that_was_cut_anywhere_is_refused_in_one_line)
{
    struct baseline b, again;
    make(&b, (const double[]){1}, 1);
    baseline_note(&b, &b, BASELINE_SAVED, 0);
    char *text = rig_text(&b);
    size_t n = strlen(text);
    for (size_t cut = 0; cut < n - 2; cut++) { /* the last two: brace and newline */
        struct err err = {0};
        char *part = malloc(cut ? cut : 1); /* so that a sanitizer sees a read behind it */
        memcpy(part, text, cut);
        CHECK_INT(baseline_parse(&again, part, cut, &err), ==, -EINVAL);
        CHECK(err.text[0] && !strchr(err.text, '\n'));
        free(part);
    }
    struct err err = {0};
    CHECK_INT(baseline_parse(&again, text, n / 2, &err), ==, -EINVAL);
    CHECK_STR(err.text, "the file is damaged, perhaps cut short");
    free(text);
    baseline_finish(&b);
}

/* The text with the first `from` in it replaced. */
static char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    CHECK(at);
    char *result = NULL;
    CHECK(asprintf(&result, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
    return result;
}

TEST(a_member_that_makes_no_sense_is_named)
{
    static const struct {
        const char *from, *to, *says;
    } CASES[] = {
        {"\"format\": 1", "\"format\": 2", "format 2, written by launch " LAUNCH_RELEASE},
        {"\"format\": 1", "\"format\": \"x\"", "format 0"},
        {"\"launch\": {", "\"lunch\": {", "does not say what machine"},
        {"\"ranks\": 4", "\"ranks\": 0", "\"ranks\" makes no sense"},
        {"\"ranks\": 4", "\"ranks\": 1e9", "\"ranks\" makes no sense"},
        {"all_reduce", "all_reduced", "\"collective\" makes no sense"},
        {"\"size\": 4096", "\"size\": -1", "\"size\" makes no sense"},
        {"\"time\": ", "\"time\": -", "\"time\" makes no sense"},
        {"\"spread\": ", "\"spared\": ", "\"spread\" makes no sense"},
        {"\"type\": \"float\"", "\"type\": null", "\"type\" makes no sense"},
        {"\"results\": [", "\"results\": [], \"x\": [", "\"results\" makes no sense"},
        {"\"history\": [", "\"history\": 1, \"x\": [", "\"history\" makes no sense"},
        {"\"verdict\": \"saved\"", "\"verdict\": \"\"", "\"verdict\" makes no sense"},
        {"\"host\": false", "\"host\": 0", "\"host\" makes no sense"},
        {"\"devices\": [", "\"devices\": 3, \"x\": [", "\"devices\" makes no sense"},
    };
    struct baseline b, again;
    make(&b, (const double[]){1}, 1);
    baseline_note(&b, &b, BASELINE_SAVED, 0);
    char *text = rig_text(&b);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct err err = {0};
        char *bad = replaced(text, CASES[i].from, CASES[i].to);
        CHECK_INT(baseline_parse(&again, bad, strlen(bad), &err), ==, -EINVAL);
        CHECK_HAS(err.text, CASES[i].says);
        free(bad);
    }
    free(text);
    baseline_finish(&b);
}

TEST(names_that_are_hostile_stay_data)
{
    struct baseline b, again;
    struct bench_run run;
    struct err err = {0};
    rig_run(&run, 1);
    for (unsigned i = 0; i < RIG_RANKS; i++)
        strcpy(run.devices[i].name, "\"}],\x1b[31m\n\xff<svg>");
    rig_baseline(&b, &run, 1);
    char *text = rig_text(&b);
    CHECK_INT(baseline_parse(&again, text, strlen(text), &err), ==, 0);
    CHECK_INT(baseline_comparable(&b, &again, false, &err), ==, 0);
    CHECK_STR(again.identity.part[IDENTITY_GPUS], "4 x \"}],?[31m?"
                                                  "?<svg>");
    free(text);
    bench_run_finish(&run);
    baseline_finish(&b);
    baseline_finish(&again);
}

TEST(the_history_keeps_the_newest_entries)
{
    struct baseline b;
    make(&b, (const double[]){1}, 1);
    for (int i = 0; i < BASELINE_HISTORY_MAX + 7; i++) {
        b.runs = i + 1;
        baseline_note(&b, &b, BASELINE_SAME, 0);
    }
    CHECK_INT(b.history_n, ==, BASELINE_HISTORY_MAX);
    CHECK_INT(b.history[0].runs, ==, 8);
    CHECK_INT(b.history[BASELINE_HISTORY_MAX - 1].runs, ==, BASELINE_HISTORY_MAX + 7);
    CHECK_STR(b.history[0].date, "2026-11-29T20:59:45Z");
    CHECK_STR(b.history[0].driver, "580.95.05");
    baseline_finish(&b);
}

TEST(sizes_are_shown_as_they_are_typed)
{
    char text[24];
    CHECK_STR(baseline_put_size(0, text), "0");
    CHECK_STR(baseline_put_size(8, text), "8");
    CHECK_STR(baseline_put_size(1025, text), "1025");
    CHECK_STR(baseline_put_size(64 << 10, text), "64K");
    CHECK_STR(baseline_put_size((uint64_t)3 << 30, text), "3G");
    CHECK_STR(baseline_put_size((uint64_t)2048 << 40, text), "2048T");
}

TEST(a_comparison_names_the_slow_sizes_and_all_its_lines_are_comments)
{
    struct baseline then, now;
    struct bench_run run;
    struct baseline_comparison c;
    struct err err = {0};
    char *text = NULL;
    size_t n;
    make(&then, STEADY, 3);
    rig_run(&run, 1);
    rig_slow(&run, RIG_64M, 1.3);
    rig_baseline(&now, &run, 1);
    CHECK_INT(baseline_compare(&c, &then, &now, -1, &err), ==, 0);
    FILE *out = open_memstream(&text, &n);
    baseline_put_comparison(out, &then, &now, &c);
    fclose(out);
    CHECK_HAS(text, "# Baseline of 2026-11-29 20:59:45 UTC, median of 3 runs: 4 x NVIDIA H200, "
                    "driver 580.95.05, NCCL 2.28.9\n");
    CHECK_HAS(text, "# Compared with baseline: SLOWER at 1 of 11 sizes: 64M out-of-place by 30.0 % "
                    "(limit 10 %)\n");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        CHECK_INT(line[0], ==, '#');
    free(text);
    baseline_comparison_finish(&c);
    bench_run_finish(&run);
    baseline_finish(&then);
    baseline_finish(&now);
}
