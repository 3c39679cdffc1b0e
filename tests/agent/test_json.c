/* SPDX-License-Identifier: MIT */
#include "../../agent/json.h"
#include "../../proto/base.h"
#include "../harness.h"

/* Parses a copy of exactly n bytes on the heap, so that a sanitizer sees every byte read too many. */
static int parse(const char *text, size_t n)
{
    char *copy = malloc(n ? n : 1);
    memcpy(copy, text, n);
    struct json_value value;
    int rc = json_parse(&value, copy, n);
    if (rc == 0) {
        struct json_value member;
        char out[64];
        json_member(&value, "a", &member);
        json_string(&value, out, sizeof out);
        CHECK(value.at >= copy && value.at + value.n <= copy + n);
    }
    free(copy);
    return rc;
}

TEST(json_is_taken_and_everything_else_is_refused)
{
    static const char *const GOOD[] = {"{}",
                                       "[]",
                                       "null",
                                       "true",
                                       "false",
                                       "0",
                                       "-0",
                                       "12.5e+3",
                                       "1E5",
                                       "\"\"",
                                       "\"\\u00e4\\n\\/\"",
                                       " { \"a\" : [ 1 , {\"b\":null} ] , \"a\":2 }\r\n\t",
                                       "[[],{},[{}]]",
                                       "\"\xff\"",
                                       "[1,[2,[3]],4]",
                                       "-1.0e-9"};
    static const char *const BAD[] = {"",
                                      " ",
                                      "{",
                                      "}",
                                      "[",
                                      "]",
                                      "{]",
                                      "[}",
                                      "nul",
                                      "nulls",
                                      "True",
                                      "01",
                                      "1.",
                                      ".5",
                                      "-",
                                      "+1",
                                      "1e",
                                      "1e+",
                                      "\"",
                                      "\"\\x\"",
                                      "\"\\u12g4\"",
                                      "\"\\u123\"",
                                      "\"a\nb\"",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\":1,}",
                                      "{1:2}",
                                      "[1,]",
                                      "[,1]",
                                      "[1 2]",
                                      "1 2",
                                      "{\"a\":1 \"b\":2}",
                                      "{\"a\" 1}",
                                      "NaN",
                                      "Infinity",
                                      "'a'",
                                      "[1]]",
                                      "\"\\",
                                      "{\"a\":1}x",
                                      "\"\\u"};
    for (size_t i = 0; i < ARRAY_LEN(GOOD); i++)
        if (parse(GOOD[i], strlen(GOOD[i])) != 0)
            test_fail(__FILE__, __LINE__, "refused: %s", GOOD[i]);
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++)
        if (parse(BAD[i], strlen(BAD[i])) != -EINVAL)
            test_fail(__FILE__, __LINE__, "taken: %s", BAD[i]);
}

static const char DOCUMENT[] =
    "{\"message\": {\"a\": \"x\\ud83d\\ude00\\n\", \"b\": [1, {\"c\": -2.5e1}, "
    "true]}, \"a\": null, \"\": \"\\\\\"}";

TEST(every_beginning_of_a_document_is_refused_and_no_byte_too_many_is_read)
{
    CHECK_INT(parse(DOCUMENT, sizeof DOCUMENT - 1), ==, 0);
    for (size_t n = 0; n < sizeof DOCUMENT - 1; n++)
        CHECK_INT(parse(DOCUMENT, n), ==, -EINVAL);
}

TEST(a_document_with_any_one_byte_changed_does_no_harm)
{
    char text[sizeof DOCUMENT];
    for (size_t i = 0; i < sizeof DOCUMENT - 1; i++)
        for (int c = 0; c < 256; c++) {
            memcpy(text, DOCUMENT, sizeof DOCUMENT);
            text[i] = (char)c;
            parse(text, sizeof DOCUMENT - 1);
        }
}

TEST(nesting_has_a_limit)
{
    char text[2 * JSON_DEPTH_MAX + 3];
    for (unsigned depth = 1; depth <= JSON_DEPTH_MAX + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        CHECK_INT(parse(text, 2 * depth), ==, depth <= JSON_DEPTH_MAX ? 0 : -EINVAL);
    }
}

static struct json_value value_of(const char *text)
{
    struct json_value value;
    CHECK_INT(json_parse(&value, text, strlen(text)), ==, 0);
    return value;
}

TEST(a_member_is_found_by_its_whole_name_and_the_last_one_counts)
{
    struct json_value root = value_of("{\"ab\": 1, \"a\": [2, \"a\", 3], \"a\": {\"a\": 4}}"),
                      found;
    CHECK(json_member(&root, "a", &found));
    CHECK_INT(found.type, ==, JSON_OBJECT);
    CHECK(json_member(&found, "a", &found));
    CHECK_INT(found.n, ==, 1);
    CHECK_INT(found.at[0], ==, '4');
    CHECK(!json_member(&root, "b", &found));
    CHECK(!json_member(&root, "", &found));
    struct json_value other = value_of("[\"a\", 1]");
    CHECK(!json_member(&other, "a", &found));
    other = value_of("{ }");
    CHECK(!json_member(&other, "a", &found));
}

TEST(strings_are_decoded_to_utf8)
{
    char text[64];
    static const struct {
        const char *json, *want;
    } CASES[] = {
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"\\u0041\\u00e4\\u20ac\\ud83d\\ude00\"", "A\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\"\\u0000x\"", "\xef\xbf\xbdx"},
        {"\"\\ud83dx\"", "\xef\xbf\xbdx"},
        {"\"\\ude00\\ud83d\"", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\"\\ud83d\\u0041\"", "\xef\xbf\xbd"
                               "A"},
        {"12", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct json_value value = value_of(CASES[i].json);
        CHECK_INT(json_string(&value, text, sizeof text), ==, strlen(CASES[i].want));
        CHECK_STR(text, CASES[i].want);
    }
}

TEST(a_string_that_is_too_long_is_cut_between_characters)
{
    /* Each character as it is and escaped, in the midst and at the end; bytes that are none are cut one by one. */
    static const struct {
        const char *json, *want[10]; /* by size */
    } CASES[] = {
        {"\"a\xc3\xa4\\u20acz\"",
         {"", "", "a", "a", "a\xc3\xa4", "a\xc3\xa4", "a\xc3\xa4", "a\xc3\xa4\xe2\x82\xac",
          "a\xc3\xa4\xe2\x82\xacz"}},
        {"\"a\\u00e4\xe2\x82\xac\"",
         {"", "", "a", "a", "a\xc3\xa4", "a\xc3\xa4", "a\xc3\xa4", "a\xc3\xa4\xe2\x82\xac"}},
        {"\"\xf0\x9f\x98\x80\"", {"", "", "", "", "", "\xf0\x9f\x98\x80"}},
        {"\"\\ud83d\\ude00\"", {"", "", "", "", "", "\xf0\x9f\x98\x80"}},
        {"\"\x82\x82\xe2\x82\"", {"", "", "\x82", "\x82\x82", "\x82\x82\xe2", "\x82\x82\xe2\x82"}},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct json_value value = value_of(CASES[i].json);
        for (size_t size = 1; size < ARRAY_LEN(CASES[i].want) && CASES[i].want[size]; size++) {
            char text[16];
            memset(text, '#', sizeof text);
            CHECK_INT(json_string(&value, text, size), ==, strlen(CASES[i].want[size]));
            CHECK_STR(text, CASES[i].want[size]);
            CHECK_INT(text[size], ==, '#');
        }
    }
}

/* Writes the text, and reads what was written into size bytes. */
static void write_and_read(char *text, size_t size)
{
    char *json;
    size_t n;
    FILE *out = open_memstream(&json, &n);
    json_put_string(out, text, strlen(text));
    fclose(out);
    struct json_value value = value_of(json);
    json_string(&value, text, size);
    free(json);
}

TEST(what_was_written_once_comes_back_from_a_small_place_as_it_is)
{
    static const char *const PIECES[] = {"a",    "\xc3\xa4", "\xe2\x82\xac", "\xe2",
                                         "\x82", "\\u20ac",  "\\u0000",      "\\\""};
    enum { PIECES_N = ARRAY_LEN(PIECES) };
    for (unsigned i = 0; i < PIECES_N * PIECES_N * PIECES_N * PIECES_N; i++)
        for (size_t size = 1; size <= 13; size++) {
            char json[64], text[16] = "", again[16];
            snprintf(json, sizeof json, "\"%s%s%s%s\"", PIECES[i % PIECES_N],
                     PIECES[i / PIECES_N % PIECES_N], PIECES[i / PIECES_N / PIECES_N % PIECES_N],
                     PIECES[i / PIECES_N / PIECES_N / PIECES_N]);
            struct json_value value = value_of(json);
            json_string(&value, text, size);
            write_and_read(text, size); /* replaces what is no UTF-8 */
            memcpy(again, text, sizeof again);
            write_and_read(again, size);
            CHECK_STR(again, text);
        }
}

TEST(what_is_written_is_read_back_for_every_byte)
{
    for (int c = 0; c < 256; c++) {
        char *json, byte = (char)c, back[8];
        size_t n;
        FILE *out = open_memstream(&json, &n);
        json_put_string(out, &byte, 1);
        fclose(out);
        struct json_value value = value_of(json);
        json_string(&value, back, sizeof back);
        if (c == 0 || c >= 128)
            CHECK_STR(back, "\xef\xbf\xbd");
        else
            CHECK(back[0] == byte && !back[1]);
        free(json);
    }
}

TEST(only_true_utf8_is_written_as_it_is)
{
    static const struct {
        const char *bytes, *want;
    } CASES[] = {
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"\xc0\x80", "\"\\ufffd\\ufffd\""},
        {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},
        {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
        {"\xe2\x82", "\"\\ufffd\\ufffd\""},
        {"a\xe2\x82z", "\"a\\ufffd\\ufffdz\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char *json;
        size_t n;
        FILE *out = open_memstream(&json, &n);
        json_put_string(out, CASES[i].bytes, strlen(CASES[i].bytes));
        fclose(out);
        CHECK_STR(json, CASES[i].want);
        free(json);
    }
}

TEST(members_are_separated_and_what_is_not_known_is_null)
{
    char *json;
    size_t n;
    FILE *out = open_memstream(&json, &n);
    struct json_members m = {.out = out, .before = "{", .between = ", "};
    json_text(&m, "text", "a\"b");
    json_text(&m, "empty", "");
    json_text(&m, "none", NULL);
    m.before = ",\n ";
    json_bytes(&m, "bytes", "xyz", 2);
    json_number(&m, "number", true, -7);
    json_number(&m, "unknown", false, 5);
    json_bool(&m, "yes", 1);
    json_bool(&m, "no", 0);
    json_bool(&m, "untold", -1);
    json_name(&m, "own");
    fputs("[]}", out);
    fclose(out);
    CHECK_STR(json, "{\"text\": \"a\\\"b\", \"empty\": null, \"none\": null,\n \"bytes\": \"xy\", "
                    "\"number\": -7, \"unknown\": null, \"yes\": true, \"no\": false, "
                    "\"untold\": null, \"own\": []}");
    struct json_value value;
    CHECK_INT(json_parse(&value, json, n), ==, 0);
    free(json);
}

TEST(the_elements_of_an_array_are_walked_one_by_one)
{
    static const struct {
        const char *text;
        unsigned n;
    } CASES[] = {
        {"[]", 0},        {"[ ]", 0},     {"[1]", 1}, {" [ [1,2] , {\"a\":[]} ,\n\"],\" ] ", 3},
        {"{\"a\":1}", 0}, {"\"[1]\"", 0}, {"7", 0}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct json_value array = value_of(CASES[i].text), at = {0};
        unsigned n = 0;
        while (json_next(&array, &at))
            n++;
        CHECK_INT(n, ==, CASES[i].n);
    }
}

TEST(numbers_are_read_whole_in_their_range_or_not_at_all)
{
    int64_t whole = 5;
    double real = 5;
    struct json_value value = value_of("-3");
    CHECK(json_get_whole(&value, -3, 9, &whole));
    CHECK_INT(whole, ==, -3);
    CHECK(!json_get_whole(&value, -2, 9, &whole));
    CHECK(!json_get_real(&value, &real));
    static const char *const BAD[] = {"1.5", "1e3", "\"1\"", "null", "99999999999999999999", "[1]"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        value = value_of(BAD[i]);
        CHECK(!json_get_whole(&value, INT64_MIN, INT64_MAX, &whole));
    }
    CHECK_INT(whole, ==, -3);
    value = value_of("1e999");
    CHECK(!json_get_real(&value, &real));
    value = value_of("2.5e1");
    CHECK(json_get_real(&value, &real));
    CHECK(real == 25);
}

TEST(a_string_for_a_line_has_no_control_characters)
{
    char text[32];
    struct json_value value = value_of("\"a\\n\\u001b[31m\\u007fb\"");
    json_line(&value, text, sizeof text);
    CHECK_STR(text, "a??[31m?b");
}
