/* SPDX-License-Identifier: MIT */
#include "../../agent/errorfile.h"
#include "../../agent/json.h"
#include "../../proto/base.h"
#include "../harness.h"

static const char TORCH[] = "{\"message\": {\"message\": \"ValueError: boom\", \"extraInfo\": "
                            "{\"py_callstack\": \"Traceback "
                            "(most recent call last):\\n  File \\\"t.py\\\", line 3\\nValueError: "
                            "boom\\n\", \"timestamp\": "
                            "\"1795955969\"}}}";

static struct errorfile parsed(const char *bytes)
{
    static struct errorfile e;
    errorfile_parse(&e, bytes, strlen(bytes));
    return e;
}

TEST(the_file_that_pytorch_writes_is_understood)
{
    struct errorfile e = parsed(TORCH);
    CHECK(e.is_json);
    CHECK_STR(e.message, "ValueError: boom");
    CHECK_HAS(e.traceback, "call last):\n  File \"t.py\", line 3\nValueError");
    CHECK_INT(e.timestamp, ==, 1795955969);
}

TEST(a_message_that_is_plain_text_is_understood)
{
    struct errorfile e = parsed("{\"message\": \"boom\", \"timestamp\": 12}");
    CHECK(e.is_json);
    CHECK_STR(e.message, "boom");
    CHECK_STR(e.traceback, "");
    CHECK_INT(e.timestamp, ==, 12);
}

TEST(bad_json_is_shown_as_the_text_that_it_is)
{
    struct errorfile e = parsed("\n  RuntimeError: {\nsecond line\n");
    CHECK(!e.is_json);
    CHECK_STR(e.message, "RuntimeError: {");
    CHECK_STR(e.traceback, "RuntimeError: {\nsecond line\n");
    e = parsed("{\"massage\": 1}");
    CHECK(!e.is_json);
    CHECK_STR(e.message, "{\"massage\": 1}");
    e = parsed("");
    CHECK_STR(e.message, "");
    e = parsed(" \n ");
    CHECK_STR(e.message, "");
}

TEST(values_of_the_wrong_type_are_left_out)
{
    static const char *const ODD[] = {
        "{\"message\": 5}",
        "{\"message\": null}",
        "{\"message\": {\"message\": [1]}}",
        "{\"message\": {\"extraInfo\": 3}}",
        "{\"message\": {\"extraInfo\": {\"py_callstack\": {}}}}",
        "{\"message\": {\"extraInfo\": {\"timestamp\": \"x\"}}, \"timestamp\": []}"};
    for (size_t i = 0; i < ARRAY_LEN(ODD); i++) {
        struct errorfile e = parsed(ODD[i]);
        CHECK(e.is_json);
        CHECK_STR(e.message, "");
        CHECK_STR(e.traceback, "");
        CHECK_INT(e.timestamp, ==, 0);
    }
}

TEST(of_a_long_traceback_the_end_is_kept)
{
    char *text = malloc(100001);
    memset(text, 'x', 100000);
    strcpy(text + 99990, "\nthe end");
    struct errorfile e = parsed(text);
    CHECK_INT(strlen(e.message), ==, sizeof e.message - 1);
    CHECK_INT(strlen(e.traceback), ==, sizeof e.traceback - 1);
    CHECK_STR(e.traceback + sizeof e.traceback - 9, "\nthe end");
    free(text);
}

TEST(every_beginning_of_a_file_does_no_harm)
{
    for (size_t n = 0; n < sizeof TORCH; n++) {
        char *copy = malloc(n ? n : 1);
        memcpy(copy, TORCH, n);
        struct errorfile e;
        errorfile_parse(&e, copy, n);
        size_t out_n;
        char *out = errorfile_with_code(copy, n, 3, &out_n);
        struct json_value root, message, code;
        CHECK_INT(json_parse(&root, out, out_n), ==, 0);
        CHECK(json_member(&root, "message", &message) && json_member(&message, "errorCode", &code));
        free(out);
        free(copy);
    }
}

TEST(the_error_code_is_added_and_nothing_else_is_touched)
{
    static const struct {
        const char *in, *want;
    } CASES[] = {
        {"{\"message\": {\"message\": \"m\"}, \"x\": 1}\n",
         "{\"message\": {\"message\": \"m\", \"errorCode\": -9}, \"x\": 1}\n"},
        {"{\"message\": { }}", "{\"message\": { \"errorCode\": -9}}"},
        {"{\"message\": {\"errorCode\": 1}}",
         "{\"message\": {\"errorCode\": 1, \"errorCode\": -9}}"},
        {"{\"message\": \"plain\", \"timestamp\": 7}",
         "{\"message\": \"plain\", \"timestamp\": 7}"},
        {"no json",
         "{\"message\": {\"message\": \"no json\", \"extraInfo\": {\"py_callstack\": \"\", "
         "\"timestamp\": \"0\"}, \"errorCode\": -9}}\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        size_t n;
        char *text = errorfile_with_code(CASES[i].in, strlen(CASES[i].in), -9, &n);
        CHECK_STR(text, CASES[i].want);
        CHECK_INT(n, ==, strlen(text));
        free(text);
    }
}
