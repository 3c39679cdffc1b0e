/* SPDX-License-Identifier: MIT */
#include "../../agent/bench/expected.h"
#include "bench_rig.h"

/* A run of n GPUs of that name; their collective runs at bw from 1 KiB up. */
static void run_of(struct bench_run *run, const char *name, int n, double bw)
{
    rig_run(run, 1);
    run->ranks = n;
    run->devices = realloc(run->devices, (size_t)n * sizeof *run->devices);
    run->devices_n = 0;
    for (int i = 0; i < n; i++) {
        struct bench_device *d = &run->devices[run->devices_n++];
        *d = (struct bench_device){.rank = i, .device = i};
        snprintf(d->bus, sizeof d->bus, "0000:%02x:00.0", 0x18 + i);
        snprintf(d->name, sizeof d->name, "%s", name);
    }
    for (unsigned i = 0; i < run->results_n; i++)
        run->results[i].out_of_place.bus_bw = run->results[i].in_place.bus_bw = bw;
    run->results[RIG_1G].size = (uint64_t)4 << 30;
}

static char *told(const struct expected *e, const struct bench_run *run)
{
    static char text[1024];
    FILE *out = fmemopen(text, sizeof text, "w");
    expected_put(out, e, run);
    fclose(out);
    return text;
}

/* The first of the names that a row has. */
static void name_of(const struct expected *e, char ret[80])
{
    snprintf(ret, 80, "NVIDIA %.*s", (int)strcspn(e->model, "|"), e->model);
}

TEST(every_row_of_the_expectations_makes_sense_and_is_found)
{
    for (unsigned i = 0; i < EXPECTED_N; i++) {
        const struct expected *e = &EXPECTED[i];
        char name[80], text[EXPECTED_BYTES];
        struct bench_run run;
        CHECK(e->model[0] && e->source[0] && e->how);
        CHECK_INT(e->gpus, >=, 2);
        CHECK(e->low > 0 && e->high >= e->low && e->high < 1000);
        CHECK(e->plain >= 0 && e->plain < e->low);
        CHECK_INT(e->from_bytes, >=, 1 << 20);
        CHECK_INT(strstr(expected_value(e, text), "estimate") != NULL, ==, e->estimated);
        CHECK_INT(strlen(expected_machine(e, text)), <, EXPECTED_BYTES - 1);
        name_of(e, name);
        run_of(&run, name, e->gpus, e->low);
        run.collective = e->collective;
        CHECK(expected_find(&run, e->link) == e);
        CHECK_HAS(told(e, &run), "# Expected bus bandwidth: about ");
        CHECK_HAS(told(e, &run), e->source);
        CHECK_HAS(told(e, &run), "100 % of it\n");
        bench_run_finish(&run);
    }
}

TEST(every_row_of_the_expectations_warns_below_its_share_and_not_above)
{
    for (unsigned i = 0; i < EXPECTED_N; i++) {
        const struct expected *e = &EXPECTED[i];
        struct bench_run run;
        double least = e->link == EXPECTED_PCIE ? 0.60 : 0.85;
        run_of(&run, "any", e->gpus, e->low * (least + 0.005));
        CHECK(!strstr(told(e, &run), "WARNING"));
        bench_run_finish(&run);
        run_of(&run, "any", e->gpus, e->low * (least - 0.005));
        CHECK_HAS(told(e, &run), "# WARNING: reached ");
        bench_run_finish(&run);
    }
}

TEST(nothing_is_expected_of_machines_that_are_not_in_the_table)
{
    static const struct {
        const char *name;
        int gpus;
        enum expected_link link;
    } CASES[] = {{"NVIDIA H200", 4, EXPECTED_PCIE},       {"NVIDIA H200", 3, EXPECTED_NVLINK},
                 {"NVIDIA H200 NVL", 4, EXPECTED_NVLINK}, {"NVIDIA H100 PCIe", 8, EXPECTED_NVLINK},
                 {"NVIDIA GB200", 4, EXPECTED_NVLINK},    {"NVIDIA H2000", 4, EXPECTED_NVLINK},
                 {"NVIDIA V100", 8, EXPECTED_NVLINK},     {"", 4, EXPECTED_NVLINK}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct bench_run run;
        run_of(&run, CASES[i].name, CASES[i].gpus, 100);
        CHECK(expected_find(&run, CASES[i].link) == NULL);
        bench_run_finish(&run);
    }
}

TEST(nothing_is_expected_of_mixed_or_shared_gpus_or_of_the_host)
{
    for (int what = 0; what < 4; what++) {
        struct bench_run run;
        run_of(&run, "NVIDIA H200", 4, 363);
        CHECK(expected_find(&run, EXPECTED_NVLINK) != NULL);
        if (what == 0)
            run.host = true;
        else if (what == 1)
            run.devices[2] = run.devices[1];
        else if (what == 2)
            strcpy(run.devices[2].name, "NVIDIA H100 80GB HBM3");
        else
            run.collective = BENCH_GATHER;
        CHECK(expected_find(&run, EXPECTED_NVLINK) == NULL);
        bench_run_finish(&run);
    }
}

TEST(one_pair_without_nvlink_makes_it_a_pcie_machine)
{
    struct bench_run run;
    struct topology *t = rig_topology(18);
    rig_run(&run, 1);
    CHECK_INT(expected_link(&run, t), ==, EXPECTED_NVLINK);
    t->links[2][1] = 0;
    CHECK_INT(expected_link(&run, t), ==, EXPECTED_PCIE);
    t->links[2][1] = 1;
    t->list.vendor = GPU_AMD;
    CHECK_INT(expected_link(&run, t), ==, EXPECTED_XGMI);
    strcpy(run.devices[0].bus, "0000:ff:00.0"); /* not in the topology */
    CHECK_INT(expected_link(&run, t), ==, EXPECTED_PCIE);
    bench_run_finish(&run);
    free(t);
}

TEST(small_messages_are_not_held_against_the_expectation)
{
    struct bench_run run;
    run_of(&run, "NVIDIA H200", 4, 1);
    const struct expected *e = expected_find(&run, EXPECTED_NVLINK);
    CHECK(e);
    run.results_n--; /* the large one */
    CHECK_HAS(told(e, &run), "Not compared with it: no message of 1G or more was measured");
    CHECK_HAS(told(e, &run),
              "about 363 GB/s from 1G up (4 x H200 over NVLink, ring; source: stas00");
    bench_run_finish(&run);
}

TEST(what_nvls_gives_when_it_is_off_is_told_in_the_warning)
{
    struct bench_run run;
    run_of(&run, "NVIDIA H200", 8, 366);
    const struct expected *e = expected_find(&run, EXPECTED_NVLINK);
    CHECK(e);
    CHECK_HAS(told(e, &run),
              "WARNING: reached 366.00 GB/s, 77 % of it; that is what is left without "
              "NVLS (about 367 GB/s)");
    bench_run_finish(&run);
}
