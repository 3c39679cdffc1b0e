/* SPDX-License-Identifier: MIT */
#include "../../config/gpus.h"
#include "../harness.h"

#include <stdio.h>

static struct job_spec spec;

static int set(const char *text, struct err *err)
{
    return field_set(field_find("gpus", 4), &spec, text, "--gpus", err);
}

static void takes(const char *text, enum gpus_mode mode, unsigned n, const char *list)
{
    struct err err = {0};
    if (set(text, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK_INT(spec.gpus_mode, ==, mode);
    CHECK_INT(spec.gpus_n, ==, n);
    if (list)
        CHECK_STR(spec.gpus_list, list);
    else
        CHECK(spec.gpus_list == NULL);
}

TEST(a_number_is_how_many_and_a_list_is_which)
{
    CHECK_INT(spec_init(&spec), ==, 0);
    CHECK_INT(spec.gpus_mode, ==, GPUS_VISIBLE);
    takes("1", GPUS_COUNT, 1, NULL);
    takes("64", GPUS_COUNT, 64, NULL);
    takes("08", GPUS_COUNT, 8, NULL);
    takes("auto", GPUS_AUTO, 0, NULL);
    takes("all", GPUS_ALL, 0, NULL);
    takes("4-7", GPUS_LIST, 0, "4,5,6,7");
    takes("0,2", GPUS_LIST, 0, "0,2");
    takes("3-3", GPUS_LIST, 0, "3");
    takes("0-1,5,62-63", GPUS_LIST, 0, "0,1,5,62,63");
    takes("GPU-8f2a", GPUS_LIST, 0, "GPU-8f2a");
    takes("2,MIG-GPU-8f2a/1/0,MIG-77", GPUS_LIST, 0, "2,MIG-GPU-8f2a/1/0,MIG-77");
    spec_finish(&spec);
}

TEST(what_is_no_choice_of_gpus_is_refused_and_changes_nothing)
{
    static const char *const BAD[] = {
        "",    "0",       "00",  "65",   "-1",    "1.5", "Auto", "ALL",    "none",
        " 2",  "2 ",      "0,",  ",0",   "0,,1",  "7-4", "0-64", "64-64",  "1-2-3",
        "-3",  "3-",      "GPU", "GPU-", "GPU-z", "0;1", "MIG-", "0,auto", "99999999999999999999",
        "0x1", "GPU-a b", "1\n"};
    CHECK_INT(spec_init(&spec), ==, 0);
    takes("1-2", GPUS_LIST, 0, "1,2");
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        struct err err = {0};
        if (set(BAD[i], &err) != -EINVAL)
            test_fail(__FILE__, __LINE__, "taken: \"%s\"", BAD[i]);
        CHECK_HAS(err.text, "--gpus: must be how many");
        CHECK_STR(spec.gpus_list, "1,2");
    }
    spec_finish(&spec);
}

TEST(a_list_longer_than_any_server_is_refused)
{
    static char text[40000];
    CHECK_INT(spec_init(&spec), ==, 0);
    for (size_t i = 0; i + 60 < sizeof text; i += strlen(text + i))
        snprintf(text + i, sizeof text - i, "%s0-63", i ? "," : "");
    CHECK_INT(set(text, NULL), ==, -EINVAL);
    spec_finish(&spec);
}
