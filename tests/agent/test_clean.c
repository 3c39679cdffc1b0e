/* SPDX-License-Identifier: MIT */
#include "../../agent/clean.h"
#include "../harness.h"

static const char *cleaned(const char *text)
{
    static char buf[256];
    return clean(buf, sizeof buf, text);
}

TEST(text_that_is_for_reading_stays)
{
    CHECK_STR(cleaned("loss 0.25 \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
              "loss 0.25 \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
    CHECK_STR(cleaned("a\tb"), "a b");
    CHECK_STR(cleaned(""), "");
}

TEST(what_steers_a_terminal_is_shown_as_a_question_mark)
{
    CHECK_STR(cleaned("\x1b]0;title\x07\x1b[2J"), "?]0;title??[2J");
    for (int c = 1; c < 0x20; c++)
        if (c != '\t')
            CHECK_STR(cleaned((char[]){(char)c, 'x', 0}), "?x");
    CHECK_STR(cleaned("\x7f"), "?");
    for (int c = 0x80; c < 0xa0; c++) /* C1, as UTF-8 and as a lone byte */
        CHECK_STR(cleaned((char[]){(char)0xc2, (char)c, 'x', 0}), "?x");
    CHECK_STR(cleaned("\x9b"
                      "2J"),
              "?2J");
}

TEST(marks_that_turn_the_direction_of_text_go)
{
    CHECK_STR(cleaned("a\xe2\x80\xae"
                      "b\xe2\x81\xa6"
                      "c\xe2\x80\xa8"
                      "d\xd8\x9c"),
              "a?b?c?d?");
}

TEST(bytes_that_are_no_utf8_go_one_by_one)
{
    CHECK_STR(cleaned("\xff\xfe"), "??");
    CHECK_STR(cleaned("\xc0\xaf"), "??");      /* too long a form */
    CHECK_STR(cleaned("\xed\xa0\x80"), "???"); /* a surrogate */
    CHECK_STR(cleaned("\xf4\x90\x80\x80"), "????");
    CHECK_STR(cleaned("x\xe2\x82"), "x??"); /* cut */
}

TEST(what_is_too_long_is_cut_at_a_character)
{
    char buf[6];
    CHECK_STR(clean(buf, sizeof buf, "abc\xe2\x82\xac"), "abc");
    CHECK_STR(clean(buf, sizeof buf, "ab\xe2\x82\xac"), "ab\xe2\x82\xac");
    CHECK_STR(clean(buf, sizeof buf, "abcdefgh"), "abcde");
}

TEST(lines_keep_their_length_their_newlines_and_their_tabs)
{
    char text[] = "a\tb\n\x1b[1m\xc3\xa9\r\xc2\x9b\0\xe2\x80\xae\xe2\x82";
    clean_lines(text, sizeof text - 1);
    CHECK_STR(text, "a\tb\n?[1m\xc3\xa9????\?????");
    clean_lines(text, 0);
}
