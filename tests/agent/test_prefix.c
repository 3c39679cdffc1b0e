/* SPDX-License-Identifier: MIT */
/* Prefixes: what a template makes, and where they stand. */
#include "../../agent/prefix.h"
#include "../harness.h"

#include <stdlib.h>

static struct prefix prefix;
static struct err err;

static const char *made(const char *template)
{
    static char text[PREFIX_MAX_BYTES + 1];
    if (prefix_make(&prefix, template, "default", 12, &err) < 0)
        return err.text;
    memcpy(text, prefix.text, prefix.n);
    text[prefix.n] = '\0';
    return text;
}

TEST(the_default_is_the_role_and_the_local_rank_in_brackets)
{
    CHECK_STR(made(NULL), "[default12]:");
}

TEST(a_template_fills_in_its_macros_and_keeps_the_rest)
{
    CHECK_STR(made("[${role_name}${local_rank}]:"), "[default12]:");
    CHECK_STR(made("rank ${rank} of $role_name: "), "rank 12 of default: ");
    CHECK_STR(made("$local_rank.$rank|"), "12.12|");
    CHECK_STR(made("$$rank $${rank} $$"), "$rank ${rank} $");
    CHECK_STR(made("$ranks $rank_ ${rank ${ranks} ${} $ $"),
              "$ranks $rank_ ${rank ${ranks} ${} $ $");
    CHECK_STR(made("\x1b[3${rank}m\xe2\x96\x88"), "\x1b[312m\xe2\x96\x88");
    CHECK_STR(made(""), "");
    CHECK_INT(prefix.n, ==, 0);
}

TEST(a_prefix_is_one_line_of_bounded_length)
{
    char template[PREFIX_MAX_BYTES + 2] = "";
    memset(template, 'x', PREFIX_MAX_BYTES);
    CHECK_STR(made(template), template);
    template[PREFIX_MAX_BYTES] = 'x';
    CHECK_HAS(made(template), "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
    CHECK_INT(err.code, ==, -EINVAL);
    CHECK_INT(prefix.n, ==, PREFIX_MAX_BYTES); /* as it was */
    CHECK_HAS(made("a\nb"), "one line");
    memcpy(template + PREFIX_MAX_BYTES - 7, "${rank}", 8);
    CHECK_INT(strlen(made(template)), ==, PREFIX_MAX_BYTES - 5);
}

/* The text in pieces of `piece`, through a buffer of `room`. */
static char *prefixed(const char *text, size_t n, size_t piece, size_t room, size_t *ret_n)
{
    char *all = malloc(n * (prefix.n + 1u) + 1);
    size_t used = 0;
    bool mid_line = false;
    for (size_t at = 0; at < n; at += piece) {
        const char *data = text + at;
        size_t left = piece < n - at ? piece : n - at;
        while (left)
            used += prefix_lines(&prefix, &mid_line, &data, &left, all + used, room);
    }
    *ret_n = used;
    all[used] = '\0';
    return all;
}

TEST(the_prefix_stands_at_line_starts_only_however_the_bytes_come)
{
    static const char TEXT[] = "one\n\ntwo \r 50%\r100%\n\0zero\nlast";
    static const char WANT[] = "<7>one\n<7>\n<7>two \r 50%\r100%\n<7>\0zero\n<7>last";
    CHECK_INT(prefix_make(&prefix, "<$rank>", "", 7, &err), ==, 0);
    for (size_t piece = 1; piece < sizeof TEXT; piece++) {
        for (size_t room = 129; room > 3; room--) {
            size_t n;
            char *got = prefixed(TEXT, sizeof TEXT - 1, piece, room, &n);
            CHECK_INT(n, ==, sizeof WANT - 1);
            CHECK(memcmp(got, WANT, n) == 0);
            free(got);
        }
    }
}
