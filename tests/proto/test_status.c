/* SPDX-License-Identifier: MIT */
/* proto/status.[ch]: every number of a list has its words, no other number has. */
#include "../../proto/status.h"
#include "../harness.h"

#define COUNT_ROW(n, name, text) +1
#define NUMBER_ROW(n, name, text) n,
#define TEXT_ROW(n, name, text) text,

TEST(every_stage_has_a_name_and_a_sentence)
{
    CHECK_INT(STAGES_N, ==, STAGE_LIST(COUNT_ROW));
    for (unsigned i = 0; i < STAGES_N; i++) {
        CHECK(strlen(stage_name(i)) > 1);
        CHECK(strlen(stage_text(i)) > 1);
        for (unsigned j = 0; j < i; j++)
            CHECK(strcmp(stage_name(i), stage_name(j)) != 0);
    }
    CHECK_STR(stage_name(STAGE_RUNNING), "RUNNING");
}

TEST(every_reason_has_a_sentence)
{
    CHECK_INT(REASONS_N, ==, REASON_LIST(COUNT_ROW));
    for (unsigned i = 0; i < REASONS_N; i++)
        CHECK(strlen(reason_text(i)) > 1);
}

TEST(a_number_outside_the_lists_has_no_words)
{
    for (unsigned bit = 0; bit < 32; bit++) {
        unsigned n = 1u << bit;
        if (n >= STAGES_N) {
            CHECK_STR(stage_name(n), "?");
            CHECK_STR(stage_text(n), "?");
        }
        if (n >= REASONS_N)
            CHECK_STR(reason_text(n), "?");
    }
    CHECK_STR(stage_name(STAGES_N), "?");
    CHECK_STR(reason_text(REASONS_N), "?");
    CHECK_STR(stage_name((unsigned)-1), "?");
}

TEST(exit_codes_are_different_and_fit_a_byte)
{
    static const int codes[] = {EXIT_CODE_LIST(NUMBER_ROW)};
    static const char *const texts[] = {EXIT_CODE_LIST(TEXT_ROW)};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        CHECK(codes[i] >= 0 && codes[i] < 128); /* 128 and more: killed by a signal */
        CHECK(strlen(texts[i]) > 1);
        for (size_t j = 0; j < i; j++)
            CHECK_INT(codes[i], !=, codes[j]);
    }
}
