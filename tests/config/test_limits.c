/* SPDX-License-Identifier: MIT */
#include "../../config/limits.h"
#include "../harness.h"

#include <stdio.h>

TEST(each_class_takes_a_limit_and_leaves_the_others_alone)
{
    for (unsigned c = 0; c < RESTART_CLASSES_N; c++) {
        char text[32];
        struct limits limits;
        snprintf(text, sizeof text, "%s:%u", LIMITS_NAMES[c], c);
        CHECK_INT(limits_parse(&limits, text), ==, 0);
        for (unsigned other = 0; other < RESTART_CLASSES_N; other++)
            CHECK_INT(limits.of[other], ==, other == c ? c : LIMITS_NONE);
    }
}

TEST(lists_of_limits)
{
    struct limits limits;
    CHECK_INT(limits_parse(&limits, "same:3,startup:0,hang:1000000"), ==, 0);
    CHECK_INT(limits.of[RESTART_SAME], ==, 3);
    CHECK_INT(limits.of[RESTART_STARTUP], ==, 0);
    CHECK_INT(limits.of[RESTART_HANG], ==, 1000000);
    CHECK_INT(limits.of[RESTART_EXIT], ==, LIMITS_NONE);
    CHECK_INT(limits_parse(&limits, "none"), ==, 0);
    for (unsigned c = 0; c < RESTART_CLASSES_N; c++)
        CHECK_INT(limits.of[c], ==, LIMITS_NONE);
}

TEST(other_text_is_no_limit)
{
    static const char *const BAD[] = {
        "",        "startup",      "startup:",         "startup:x",     "startup:-1",
        "start:1", "hang:1,",      ",hang:1",          "hang:1,hang:2", "hang:1 ",
        "hang=1",  "hang:1000001", "hang:99999999999", "none,hang:1",   "hang:1;exit:1"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        struct limits limits = {.of = {7}};
        if (limits_parse(&limits, BAD[i]) != -EINVAL)
            test_fail(__FILE__, __LINE__, "taken: %s", BAD[i]);
        CHECK_INT(limits.of[0], ==, 7);
    }
}
