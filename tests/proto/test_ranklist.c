/* SPDX-License-Identifier: MIT */
#include "../../proto/ranklist.h"
#include "../harness.h"

static const char *list_of(uint32_t from, uint32_t n, uint32_t most, char *text, size_t size)
{
    struct ranklist list;
    ranklist_begin(&list, text, size, most);
    for (uint32_t i = 0; i < n; i++)
        ranklist_add(&list, from + i);
    CHECK_INT(ranklist_end(&list), ==, n);
    return text;
}

TEST(ranks_beyond_those_shown_are_counted)
{
    char text[128];
    CHECK_STR(list_of(0, 0, 8, text, sizeof text), "");
    CHECK_STR(list_of(3, 1, 8, text, sizeof text), "3");
    CHECK_STR(list_of(0, 3, 3, text, sizeof text), "0, 1, 2");
    CHECK_STR(list_of(0, 15, 3, text, sizeof text), "0, 1, 2 and 12 more");
}

TEST(a_list_is_cut_where_its_text_is_full)
{
    for (size_t size = 1; size < 200; size++) {
        char text[200], guard[200];
        memset(text, '#', sizeof text);
        memset(guard, '#', sizeof guard);
        list_of(UINT32_MAX - 999, 1000, 900, text, size);
        CHECK_INT(strlen(text), ==, size - 1);
        CHECK(memcmp(text + size, guard, sizeof text - size) == 0);
    }
    char text[4];
    CHECK_STR(list_of(5, 2, 8, text, sizeof text), "5, ");
}
