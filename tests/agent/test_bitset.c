/* SPDX-License-Identifier: MIT */
/* agent/bitset.c against the kernel's way of writing lists. */
#include "../../agent/bitset.h"
#include "../harness.h"

TEST(lists_are_read_as_the_kernel_writes_them)
{
    static const struct {
        const char *text, *same;
        unsigned n;
    } cases[] = {
        {"0\n", "0", 1},
        {"0-3\n", "0-3", 4},
        {"0-3,8,10-11", "0-3,8,10-11", 7},
        {" 5 \n", "5", 1},
        {"\n", "", 0},
        {"", "", 0},
        {"7,6,5", "5-7", 3},
        {"63-64,127-128", "63-64,127-128", 4},
        {"8191", "8191", 1},
        {"8190-99999999999999999999", "8190-8191", 2},
    };
    char text[64];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bitset set;
        CHECK(bitset_parse(&set, cases[i].text));
        CHECK_INT(bitset_count(&set), ==, cases[i].n);
        CHECK_STR(bitset_text(&set, text, sizeof text), cases[i].same);
    }
}

TEST(what_is_no_list_leaves_the_set_empty)
{
    static const char *const junk[] = {"a",  "1-",  "-1",  "3-1", "1,,2",  ",1",
                                       "1,", "0x1", "1 2", "1;2", "1-2-3", "\xff"};
    for (size_t i = 0; i < ARRAY_LEN(junk); i++) {
        struct bitset set;
        memset(&set, 0xff, sizeof set);
        CHECK(!bitset_parse(&set, junk[i]));
        CHECK(bitset_empty(&set));
    }
}

TEST(a_text_that_does_not_fit_says_so)
{
    struct bitset set;
    char text[10];
    CHECK(bitset_parse(&set, "1,3,5,7,9,11"));
    CHECK_STR(bitset_text(&set, text, sizeof text), "1,3,5...");
    CHECK(bitset_parse(&set, "1,3,5"));
    CHECK_STR(bitset_text(&set, text, sizeof text), "1,3,5");
}

TEST(members_outside_are_in_no_set)
{
    struct bitset set = {0};
    bitset_add(&set, -1);
    bitset_add(&set, BITSET_MAX);
    CHECK(bitset_empty(&set));
    CHECK(!bitset_has(&set, -1) && !bitset_has(&set, BITSET_MAX));
    CHECK_INT(bitset_next(&set, BITSET_MAX), ==, -1);
    bitset_add(&set, BITSET_MAX - 1);
    CHECK_INT(bitset_next(&set, -1), ==, BITSET_MAX - 1);
    CHECK_INT(bitset_next(&set, BITSET_MAX - 1), ==, -1);
}

TEST(sets_are_joined_cut_and_subtracted)
{
    struct bitset a, b;
    char text[32];
    CHECK(bitset_parse(&a, "0-9,100") && bitset_parse(&b, "5-12,100"));
    struct bitset set = a;
    bitset_and(&set, &b);
    CHECK_STR(bitset_text(&set, text, sizeof text), "5-9,100");
    set = a;
    bitset_or(&set, &b);
    CHECK_STR(bitset_text(&set, text, sizeof text), "0-12,100");
    set = a;
    bitset_minus(&set, &b);
    CHECK_STR(bitset_text(&set, text, sizeof text), "0-4");
}
