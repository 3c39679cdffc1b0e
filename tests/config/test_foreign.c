/* SPDX-License-Identifier: MIT */
/* Words of other launchers: none of them is one of ours, and what is named in their place is. */
#include "../../config/fields.h"
#include "../../config/foreign.h"
#include "../harness.h"

#include <string.h>

/* Every "--name" of the text. */
static void check_options(const char *text)
{
    for (const char *at = strstr(text, "--"); at; at = strstr(at, "--")) {
        at += 2;
        CHECK(field_find(at, strspn(at, "abcdefghijklmnopqrstuvwxyz-")) != NULL);
    }
}

TEST(no_foreign_word_is_an_option_of_ours_or_in_two_rows)
{
    for (size_t i = 0; i < FOREIGN_N; i++) {
        for (const char *word = FOREIGN[i].words; *word; word += strspn(word, " ")) {
            size_t n = strcspn(word, " ");
            if (FOREIGN[i].kind != FOREIGN_VERB) {
                CHECK(field_find(word, n) == NULL);
                CHECK(n != 1 || field_find_letter(*word) == NULL);
            }
            CHECK_STR(foreign_find(FOREIGN[i].kind, word, n), FOREIGN[i].instead);
            word += n;
        }
    }
}

TEST(what_is_named_instead_is_an_option_of_ours)
{
    for (size_t i = 0; i < FOREIGN_N; i++)
        check_options(FOREIGN[i].instead);
}

TEST(a_foreign_word_is_known_with_dashes_or_underscores_and_whole)
{
    CHECK(foreign_find(FOREIGN_OPTION, "map-by", 6) != NULL);
    CHECK(foreign_find(FOREIGN_OPTION, "map_by=core", 6) != NULL);
    CHECK(foreign_find(FOREIGN_OPTION, "map-b", 5) == NULL);
    CHECK(foreign_find(FOREIGN_OPTION, "map-by ", 7) == NULL);
    CHECK(foreign_find(FOREIGN_OPTION, "", 0) == NULL);
    CHECK(foreign_find(FOREIGN_KEY, "map-by", 6) == NULL);
}
