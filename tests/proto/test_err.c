/* SPDX-License-Identifier: MIT */
/* proto/err.c: codes come back, texts stay one line and inside their array. */
#include "../../proto/err.h"
#include "../harness.h"

#include <errno.h>
#include <stdio.h>

TEST(an_error_returns_its_code_and_keeps_its_text)
{
    struct err err = {0};
    CHECK_INT(err_set(&err, -EINVAL, "rank %d", 3), ==, -EINVAL);
    CHECK_INT(err.code, ==, -EINVAL);
    CHECK_STR(err.text, "rank 3");
}

TEST(an_errno_is_spelled_out)
{
    struct err err = {0};
    CHECK_INT(err_set_errno(&err, -ENOENT, "open %s", "x"), ==, -ENOENT);
    CHECK_STR(err.text, "open x: No such file or directory");
}

TEST(each_level_puts_its_name_in_front)
{
    struct err err = {0};
    err_set(&err, -EIO, "read");
    CHECK_INT(err_wrap(&err, -EINVAL, "board %d", 1), ==, -EIO);
    CHECK_INT(err_wrap(&err, -EINVAL, "rank %d", 2), ==, -EIO);
    CHECK_STR(err.text, "rank 2: board 1: read");
}

TEST(without_an_err_only_the_code_comes_back)
{
    CHECK_INT(err_set(NULL, -EIO, "x"), ==, -EIO);
    CHECK_INT(err_set_errno(NULL, -EIO, "x"), ==, -EIO);
    CHECK_INT(err_wrap(NULL, -EIO, "x"), ==, -EIO);
}

TEST(texts_of_every_length_stay_inside)
{
    static char text[2 * ERR_TEXT_BYTES + 1];
    struct {
        struct err err;
        char guard;
    } box = {.guard = 'g'};
    for (size_t n = 0; n < sizeof text; n++) {
        memset(text, 'x', n);
        text[n] = '\0';
        size_t cut = n < ERR_TEXT_BYTES ? n : ERR_TEXT_BYTES - 1;
        err_set(&box.err, -EIO, "%s", text);
        CHECK_INT(strlen(box.err.text), ==, cut);
        err_wrap(&box.err, -EIO, "%s", text);
        CHECK_INT(strlen(box.err.text), <, ERR_TEXT_BYTES);
        err_set_errno(&box.err, -EIO, "%s", text);
        CHECK_INT(strlen(box.err.text), <, ERR_TEXT_BYTES);
        CHECK_INT(box.guard, ==, 'g');
    }
}

TEST(a_long_prefix_leaves_room_for_the_text)
{
    struct err err = {0};
    char prefix[1000];
    memset(prefix, 'p', sizeof prefix - 1);
    prefix[sizeof prefix - 1] = '\0';
    err_set(&err, -EIO, "the reason");
    err_wrap(&err, -EIO, "%s", prefix);
    CHECK_HAS(err.text, "pp: the reason");
}

TEST(a_long_text_is_cut_only_where_it_does_not_fit)
{
    struct err err = {0};
    char text[401];
    memset(text, 't', 400);
    text[400] = '\0';
    err_set(&err, -EIO, "%s", text);
    err_wrap(&err, -EIO, "p");
    CHECK_INT(strlen(err.text), ==, 403);
}

TEST(no_byte_of_a_name_can_break_the_line)
{
    for (int c = 1; c < 256; c++) {
        struct err err = {0};
        char name[] = {'a', (char)c, 'b', '\0'};
        err_set(&err, -EIO, "%s", name);
        err_wrap(&err, -EIO, "%s", name);
        bool control = c < ' ' || c == 127;
        char shown = control ? '?' : (char)c;
        char want[] = {'a', shown, 'b', ':', ' ', 'a', shown, 'b', '\0'};
        CHECK_STR(err.text, want);
    }
}
