/* SPDX-License-Identifier: MIT */
#include "../../config/codeset.h"
#include "../harness.h"

#include <signal.h>
#include <stdio.h>

static struct codeset set_of(const char *text)
{
    struct codeset set;
    if (codeset_parse(&set, text) < 0)
        test_fail(__FILE__, __LINE__, "refused: %s", text);
    return set;
}

TEST(every_range_of_codes_holds_just_what_it_says)
{
    for (int first = 1; first < 256; first += 7)
        for (int last = first; last < 256; last += 11) {
            char text[16];
            snprintf(text, sizeof text, "%d-%d", first, last);
            struct codeset set = set_of(text);
            for (int code = 0; code < 300; code++)
                CHECK_INT(codeset_has(&set, code, 0, false), ==, code >= first && code <= last);
            CHECK(!codeset_has(&set, 124, 0, true));
        }
}

TEST(signals_are_matched_by_name_and_by_the_code_that_they_give)
{
    struct codeset segv = set_of("SIGSEGV"), code = set_of("139"), any = set_of("signal");
    for (int sig = 1; sig <= 64; sig++) {
        CHECK_INT(codeset_has(&segv, 128 + sig, sig, false), ==, sig == SIGSEGV);
        CHECK_INT(codeset_has(&code, 128 + sig, sig, false), ==, sig == SIGSEGV);
        CHECK(codeset_has(&any, 128 + sig, sig, false));
    }
    CHECK(!codeset_has(&segv, 139, 0, false)); /* a shell that exits with 139 */
    CHECK(codeset_has(&code, 139, 0, false));
    for (int exit_code = 1; exit_code < 256; exit_code++)
        CHECK(!codeset_has(&any, exit_code, 0, false));
}

TEST(lists_words_all_and_none)
{
    struct codeset set = set_of("1,3-5,TERM,hang");
    for (int code = 1; code < 256; code++)
        CHECK_INT(codeset_has(&set, code, 0, false), ==, code == 1 || (code >= 3 && code <= 5));
    CHECK(codeset_has(&set, 143, SIGTERM, false));
    CHECK(codeset_has(&set, 124, 0, true));
    struct codeset all = set_of("all"), none = set_of("none");
    for (int code = 1; code < 256; code++) {
        CHECK(codeset_has(&all, code, 0, false) && !codeset_has(&none, code, 0, false));
        int sig = code > 128 && code <= 192 ? code - 128 : 0;
        CHECK(codeset_has(&all, code, sig, true) && !codeset_has(&none, code, sig, true));
    }
}

TEST(anything_else_is_refused)
{
    static const char *const BAD[] = {
        "",        "0",      "256",   "-1",    "1-",
        "-5",      "5-3",    "1--2",  "1,",    ",1",
        "1,,2",    "1 ",     " 1",    "x",     "1-2-3",
        "1.5",     "0x3",    "all,1", "1,all", "none,1",
        "signals", "SIGFOO", "0-5",   "1-256", "99999999999999999999"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        struct codeset set = {.hang = true};
        if (codeset_parse(&set, BAD[i]) != -EINVAL)
            test_fail(__FILE__, __LINE__, "taken: %s", BAD[i]);
        CHECK(set.hang);
    }
}
