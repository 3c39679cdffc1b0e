/* SPDX-License-Identifier: MIT */
/* Lines that hold one of some texts. */
#include "../../agent/sieve.h"
#include "../harness.h"

#include <stdlib.h>

static struct needles needles;
static char got[4 * SIEVE_LINE_MAX];
static size_t n_got;

static void on_line(void *user, const char *line, size_t n)
{
    (void)user;
    memcpy(got + n_got, line, n);
    n_got += n;
    got[n_got++] = '|';
    got[n_got] = '\0';
}

TEST(two_commas_are_one_in_a_text_and_empty_texts_are_left_out)
{
    static const struct {
        const char *list, *texts[4];
    } CASES[] = {{"a", {"a"}},
                 {"a,b c,d", {"a", "b c", "d"}},
                 {"a,,b", {"a,b"}},
                 {",,", {","}},
                 {",", {NULL}},
                 {"", {NULL}},
                 {",a,", {"a"}},
                 {"a,,,b", {"a,", "b"}},
                 {",,,,x,y", {",,x", "y"}}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_INT(needles_init(&needles, CASES[i].list), ==, 0);
        size_t n = 0;
        for (; CASES[i].texts[n]; n++) {
            CHECK_INT(needles.n, >, n);
            CHECK_STR(needles.text[n], CASES[i].texts[n]);
        }
        CHECK_INT(needles.n, ==, n);
        needles_finish(&needles);
    }
    CHECK_INT(needles_init(&needles, NULL), ==, 0);
    CHECK_INT(needles.n, ==, 0);
    needles_finish(&needles);
}

TEST(matching_lines_come_whole_in_whatever_pieces_they_arrive)
{
    static const char TEXT[] = "an ERROR\nfine\n\nERR\nOR\nloss=1\n\0loss\nlast ERROR";
    static const char WANT[] = "an ERROR|loss=1|\0loss|last ERROR|";
    CHECK_INT(needles_init(&needles, "ERROR,loss"), ==, 0);
    for (size_t piece = 1; piece < sizeof TEXT; piece++) {
        struct sieve sieve = {0};
        n_got = 0;
        for (size_t at = 0; at < sizeof TEXT - 1; at += piece) {
            size_t left = sizeof TEXT - 1 - at;
            sieve_add(&sieve, &needles, TEXT + at, piece < left ? piece : left, on_line, NULL);
        }
        sieve_finish(&sieve, &needles, on_line, NULL);
        CHECK_INT(n_got, ==, sizeof WANT - 1);
        CHECK(memcmp(got, WANT, n_got) == 0);
    }
    needles_finish(&needles);
}

TEST(an_endless_line_is_looked_at_up_to_a_limit)
{
    size_t n = 3 * SIEVE_LINE_MAX;
    char *text = malloc(n + 1);
    memset(text, 'x', n);
    memcpy(text, "begin", 5);
    memcpy(text + SIEVE_LINE_MAX + 10, "late", 4);
    text[n] = '\n';
    CHECK_INT(needles_init(&needles, "begin,late"), ==, 0);
    for (int whole = 0; whole < 2; whole++) {
        struct sieve sieve = {0};
        n_got = 0;
        for (size_t at = 0, piece = whole ? n + 1 : 1000; at <= n; at += piece)
            sieve_add(&sieve, &needles, text + at, piece < n + 1 - at ? piece : n + 1 - at, on_line,
                      NULL);
        CHECK_INT(n_got, ==, SIEVE_LINE_MAX + 1);
        sieve_finish(&sieve, &needles, on_line, NULL);
    }
    memcpy(text, "bEgin", 5);
    struct sieve sieve = {0};
    n_got = 0;
    sieve_add(&sieve, &needles, text, n + 1, on_line, NULL);
    CHECK_INT(n_got, ==, 0);
    sieve_finish(&sieve, &needles, on_line, NULL);
    needles_finish(&needles);
    free(text);
}
