/* SPDX-License-Identifier: MIT */
#include "../../agent/bench/bench_svg.h"
#include "bench_rig.h"

/* Draws it; the caller frees. */
static char *draw(const struct bench_run *run, const struct baseline *then,
                  const struct expected *expected)
{
    struct baseline now;
    struct baseline_comparison c;
    struct err err;
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    rig_baseline(&now, run, 1);
    if (then)
        CHECK_INT(baseline_compare(&c, then, &now, -1, &err), ==, 0);
    bench_svg(out, &now, then, then ? &c : NULL, expected);
    fclose(out);
    if (then)
        baseline_comparison_finish(&c);
    baseline_finish(&now);
    return text;
}

static unsigned count(const char *text, const char *part)
{
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        n++;
    return n;
}

/* Tags are closed in order, and nothing is left open. */
static void check_xml(const char *text)
{
    char open[16][16];
    unsigned depth = 0;
    for (const char *at = strchr(text, '<'); at; at = strchr(at + 1, '<')) {
        const char *end = strchr(at, '>');
        CHECK(end);
        size_t n = strcspn(at + 1, " />\n");
        if (at[1] == '/') {
            CHECK(depth > 0 && strncmp(at + 2, open[depth - 1], strlen(open[depth - 1])) == 0);
            depth--;
        } else if (end[-1] != '/') {
            CHECK(depth < 16 && n < 16);
            snprintf(open[depth++], 16, "%.*s", (int)n, at + 1);
        }
    }
    CHECK_INT(depth, ==, 0);
    for (const char *at = text; *at; at++)
        CHECK(*at == '\n' || (*at >= ' ' && *at < 127));
    CHECK(!strstr(text, "nan") && !strstr(text, "inf"));
}

TEST(a_sweep_is_drawn_with_its_baseline_and_what_is_expected)
{
    struct bench_run run;
    struct baseline then;
    rig_run(&run, 1);
    rig_baseline(&then, &run, 1);
    rig_slow(&run, RIG_1G, 1.3);
    const struct expected *e = expected_find(&run, EXPECTED_NVLINK);
    CHECK(e);
    char *text = draw(&run, &then, e);
    check_xml(text);
    CHECK_INT(count(text, "<polyline"), ==, 3);
    CHECK_INT(count(text, "<polygon class=\"then\""), ==, 1);
    CHECK_INT(count(text, "<circle class=\"slower\""), ==, 2); /* the point, and in the key */
    CHECK_INT(count(text, "<circle class=\"out\""), ==, RIG_SIZES);
    CHECK_HAS(text, "expected: 363 GB/s (4 x H200 over NVLink, ring; source: stas00");
    CHECK_HAS(text, "baseline of 2026-11-29 20:59:45, and its limits");
    CHECK_HAS(text, "all_reduce, 4 ranks, 1K to 1G of float, sum");
    CHECK_HAS(text, "prefers-color-scheme: dark");
    free(text);
    bench_run_finish(&run);
    baseline_finish(&then);
}

TEST(a_sweep_is_drawn_alone_and_out_of_place_only)
{
    struct bench_run run;
    rig_run(&run, 1);
    for (unsigned i = 0; i < run.results_n; i++)
        run.results[i].has_in_place = false;
    char *text = draw(&run, NULL, NULL);
    check_xml(text);
    CHECK_INT(count(text, "<polyline"), ==, 1);
    CHECK(!strstr(text, "in place"));
    CHECK(!strstr(text, "expected:"));
    free(text);
    bench_run_finish(&run);
}

TEST(hostile_device_names_leave_the_picture_valid)
{
    struct bench_run run;
    rig_run(&run, 1);
    for (unsigned i = 0; i < RIG_RANKS; i++) {
        memset(run.devices[i].name, '<', sizeof run.devices[i].name - 1);
        snprintf(run.devices[i].name, 40, "</svg>&\"'\x1b\xff]]><script>%u", i);
    }
    char *text = draw(&run, NULL, NULL);
    check_xml(text);
    CHECK(!strstr(text, "<script"));
    free(text);
    bench_run_finish(&run);
}

TEST(odd_sweeps_are_drawn_without_a_division_by_nothing)
{
    for (int what = 0; what < 4; what++) {
        struct bench_run run;
        rig_run(&run, 1);
        if (what == 0) /* one size */
            run.results_n = 1;
        else if (what == 1) /* one that is empty */
            run.results[0].size = 0, run.results_n = 1;
        for (unsigned i = 0; i < run.results_n; i++) {
            struct bench_result *r = &run.results[i];
            if (what == 2) /* one rank: its bus carries nothing */
                r->out_of_place.bus_bw = r->in_place.bus_bw = 0;
            else if (what == 3)
                r->out_of_place = r->in_place = (struct bench_half){0};
        }
        char *text = draw(&run, NULL, NULL);
        check_xml(text);
        CHECK_INT(strstr(text, ">algorithm bandwidth in GB/s<") != NULL, ==, what >= 2);
        free(text);
        bench_run_finish(&run);
    }
}
