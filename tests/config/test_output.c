/* SPDX-License-Identifier: MIT */
/* Settings of streams and log files, through the table. */
#include "../../config/output.h"
#include "../harness.h"

static struct job_spec spec;
static struct err err;

static int set(const char *name, const char *text)
{
    const struct field *field = field_find(name, strlen(name));
    CHECK(field != NULL);
    return field_set(field, &spec, text, name, &err);
}

static void refused(const char *name, const char *text, const char *what)
{
    if (set(name, text) != -EINVAL)
        test_fail(__FILE__, __LINE__, "%s takes \"%s\"", name, text);
    CHECK_HAS(err.text, name);
    CHECK_HAS(err.text, what);
    CHECK(!strchr(err.text, '\n'));
}

TEST(sizes_have_units_of_1024)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } GOOD[] = {{"0", 0},
                {"1", 1},
                {"500", 500},
                {"64K", 65536},
                {"10M", 10485760},
                {"2G", 2147483648},
                {"007", 7},
                {"8589934591G", 8589934591ull << 30},
                {"9223372036854775807", INT64_MAX}};
    CHECK_INT(spec_init(&spec), ==, 0);
    CHECK_INT(spec.rotate_bytes, ==, 0);
    for (size_t i = 0; i < ARRAY_LEN(GOOD); i++) {
        CHECK_INT(set("log-rotate-size", GOOD[i].text), ==, 0);
        CHECK_INT(spec.rotate_bytes, ==, GOOD[i].bytes);
    }
    static const char *const BAD[] = {"",
                                      " ",
                                      "K",
                                      "-1",
                                      "+1",
                                      "1k",
                                      "1KB",
                                      "1.5M",
                                      "1 K",
                                      "0x10",
                                      "8589934592G",
                                      "9223372036854775808",
                                      "99999999999999999999"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++)
        refused("log-rotate-size", BAD[i], "10M");
    CHECK_INT(spec.rotate_bytes, ==, INT64_MAX);
    spec_finish(&spec);
}

TEST(stdin_goes_to_nobody_one_or_all)
{
    CHECK_INT(spec_init(&spec), ==, 0);
    CHECK_INT(spec.stdin_mode, ==, STDIN_DEFAULT);
    CHECK_INT(set("stdin", "none"), ==, 0);
    CHECK_INT(spec.stdin_mode, ==, STDIN_NONE);
    CHECK_INT(set("stdin", "all"), ==, 0);
    CHECK_INT(spec.stdin_mode, ==, STDIN_ALL);
    CHECK_INT(set("stdin", "12"), ==, 0);
    CHECK_INT(spec.stdin_mode, ==, STDIN_RANK);
    CHECK_INT(spec.stdin_rank, ==, 12);
    static const char *const BAD[] = {"",   "None", "ALL",  "-1",
                                      "1 ", "0,1",  "4096", "18446744073709551616"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++)
        refused("stdin", BAD[i], "'none', 'all'");
    CHECK_INT(spec.stdin_rank, ==, 12);
    spec_finish(&spec);
}

TEST(maps_land_in_their_own_places)
{
    CHECK_INT(spec_init(&spec), ==, 0);
    CHECK_INT(set("redirects", "0:1,10:2"), ==, 0);
    CHECK_INT(set("tee", "3"), ==, 0);
    CHECK_INT(set("local-ranks-filter", "1,10"), ==, 0);
    CHECK_INT(rankmap_get(&spec.redirects, 10), ==, RANKMAP_STDERR);
    CHECK_INT(rankmap_get(&spec.redirects, 0), ==, RANKMAP_STDOUT);
    CHECK_INT(rankmap_get(&spec.tee, 77), ==, 3);
    CHECK_INT(rankmap_get(&spec.shown_ranks, 10), ==, 1);
    CHECK_INT(rankmap_get(&spec.shown_ranks, 0), ==, 0);
    refused("redirects", "0:3,0:1", "0:3,10:1");
    refused("tee", "5", "0 (none)");
    refused("local-ranks-filter", "a\nb", "a\\nb");
    spec_finish(&spec);
}

TEST(texts_are_kept_as_they_are_and_not_empty)
{
    static const char *const NAMES[] = {"log-dir", "duplicate-stdout-filters",
                                        "duplicate-stderr-filters"};
    CHECK_INT(spec_init(&spec), ==, 0);
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        CHECK_INT(set(NAMES[i], "first"), ==, 0);
        CHECK_INT(set(NAMES[i], "a,,b, c"), ==, 0);
        refused(NAMES[i], "", "not empty");
    }
    CHECK_STR(spec.log_dir, "a,,b, c");
    CHECK_STR(spec.stdout_filters, "a,,b, c");
    CHECK_STR(spec.stderr_filters, "a,,b, c");
    spec_finish(&spec);
    CHECK(!spec.log_dir && !spec.stdout_filters && !spec.stderr_filters);
}
