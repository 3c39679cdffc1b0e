/* SPDX-License-Identifier: MIT */
/* Maps of ranks: any number of digits, and nothing that says two things. */
#include "../../config/rankmap.h"
#include "../harness.h"

#include <stdio.h>

TEST(one_digit_is_meant_for_every_rank)
{
    for (unsigned value = 0; value <= RANKMAP_MAX; value++) {
        struct rankmap map;
        char text[2] = {(char)('0' + value), '\0'};
        memset(&map, 0xa5, sizeof map);
        CHECK(rankmap_parse(&map, text));
        CHECK_INT(map.listed, ==, 0);
        for (uint32_t rank = 0; rank < BOARD_MAX_RANKS; rank++)
            CHECK_INT(rankmap_get(&map, rank), ==, value);
        CHECK_INT(rankmap_get(&map, BOARD_MAX_RANKS), ==, 0);
        CHECK_INT(rankmap_get(&map, UINT32_MAX), ==, 0);
    }
}

TEST(every_rank_and_value_can_be_named_alone)
{
    for (uint32_t rank = 0; rank < BOARD_MAX_RANKS; rank++) {
        for (unsigned value = 0; value <= RANKMAP_MAX; value++) {
            struct rankmap map;
            char text[16];
            snprintf(text, sizeof text, "%u:%u", rank, value);
            CHECK(rankmap_parse(&map, text));
            CHECK_INT(map.listed, ==, rank + 1);
            CHECK_INT(rankmap_get(&map, rank), ==, value);
            CHECK_INT(rankmap_get(&map, rank ? rank - 1 : 1), ==, 0);
            CHECK_INT(rankmap_get(&map, rank + 1), ==, 0);
        }
    }
}

TEST(ranks_of_several_digits_stand_beside_others)
{
    struct rankmap map;
    CHECK(rankmap_parse(&map, "0:3,10:1,007:2,4095:3,10:1"));
    CHECK_INT(map.listed, ==, 4096);
    CHECK_INT(rankmap_get(&map, 0), ==, 3);
    CHECK_INT(rankmap_get(&map, 1), ==, 0);
    CHECK_INT(rankmap_get(&map, 7), ==, 2);
    CHECK_INT(rankmap_get(&map, 10), ==, 1);
    CHECK_INT(rankmap_get(&map, 4095), ==, 3);
    CHECK(rankmap_parse_list(&map, "2,0,2,11"));
    for (uint32_t rank = 0; rank < 20; rank++)
        CHECK_INT(rankmap_get(&map, rank), ==, rank == 0 || rank == 2 || rank == 11);
    CHECK_INT(map.listed, ==, 12);
}

TEST(what_is_no_map_is_refused_and_changes_nothing)
{
    static const char *const BAD[] = {"",         "4",        "9",
                                      "33",       "-1",       "+1",
                                      " 3",       "3 ",       "x",
                                      ":",        "0:",       ":3",
                                      "0:4",      "0:33",     "0:3,",
                                      ",0:3",     "0:3,,1:3", "0:3 ,1:3",
                                      "0:3, 1:3", "0:3;1:3",  "0:3,1",
                                      "0,1",      "0:-1",     "-1:3",
                                      "0x1:3",    "4096:3",   "99999999999999999999:1",
                                      "0:3,0:1",  "1:0,1:2",  "1:2,1:0",
                                      "0:3:1",    "0=3"};
    struct rankmap map, before;
    memset(&before, 0x5a, sizeof before);
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        map = before;
        if (rankmap_parse(&map, BAD[i]))
            test_fail(__FILE__, __LINE__, "\"%s\" is taken for a map", BAD[i]);
        CHECK(memcmp(&map, &before, sizeof map) == 0);
    }
    static const char *const BAD_LIST[] = {"",     "x",    ",",  "0,",  ",0",
                                           "0,,1", "0, 1", "-1", "0:3", "4096"};
    for (size_t i = 0; i < ARRAY_LEN(BAD_LIST); i++) {
        map = before;
        if (rankmap_parse_list(&map, BAD_LIST[i]))
            test_fail(__FILE__, __LINE__, "\"%s\" is taken for a list", BAD_LIST[i]);
        CHECK(memcmp(&map, &before, sizeof map) == 0);
    }
}
