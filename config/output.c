/* SPDX-License-Identifier: MIT */
/* See output.h. Must never know where files are or what a stream is. */
#include "output.h"

#include "parse.h"

#include <limits.h>
#include <string.h>

int output_parse_map(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field;
    if (!rankmap_parse(into, text))
        return parse_refuse(
            err, text,
            "0 (none), 1 (stdout), 2 (stderr), 3 (both), or one of these for each of "
            "some ranks such as 0:3,10:1");
    return 0;
}

int output_parse_list(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field;
    if (!rankmap_parse_list(into, text))
        return parse_refuse(err, text, "local ranks with a comma between them such as 0,2");
    return 0;
}

/* Digits only, at most max, at least one of them; *end: behind them. */
static bool take_number(const char *text, uint64_t max, uint64_t *ret, const char **end)
{
    uint64_t value = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (value > (max - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *ret = value;
    *end = p;
    return p > text;
}

int output_parse_stdin(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field;
    struct job_spec *spec = CONTAINER_OF(into, struct job_spec, stdin_mode);
    uint64_t rank = 0;
    const char *end;
    if (strcmp(text, "none") == 0)
        spec->stdin_mode = STDIN_NONE;
    else if (strcmp(text, "all") == 0)
        spec->stdin_mode = STDIN_ALL;
    else if (take_number(text, BOARD_MAX_RANKS - 1, &rank, &end) && !*end)
        spec->stdin_mode = STDIN_RANK;
    else
        return parse_refuse(err, text, "'none', 'all' or the local rank that gets it");
    spec->stdin_rank = (uint32_t)rank;
    return 0;
}

int output_parse_size(const struct field *field, const char *text, void *into, struct err *err)
{
    static const char UNITS[] = "KMG";
    (void)field;
    uint64_t value = 0;
    unsigned shift = 0;
    const char *end = text;
    bool good = take_number(text, (uint64_t)INT64_MAX, &value, &end);
    const char *unit = good && *end ? strchr(UNITS, *end) : NULL;
    if (unit) {
        shift = 10 * (unsigned)(unit - UNITS + 1);
        end++;
    }
    if (!good || *end || value > (uint64_t)INT64_MAX >> shift)
        return parse_refuse(err, text, "a number of bytes such as 500, 64K, 10M or 2G");
    *(uint64_t *)into = value << shift;
    return 0;
}

int output_parse_text(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field;
    if (!*text)
        return parse_refuse(err, text, "a text that is not empty");
    return parse_put_text(text, into, err);
}
