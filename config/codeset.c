/* SPDX-License-Identifier: MIT */
#include "codeset.h"

#include "siglist.h"

#include <string.h>

static bool take_number(const char **at, const char *end, unsigned *ret)
{
    const char *digit = *at;
    unsigned value = 0;
    while (digit < end && *digit >= '0' && *digit <= '9' && value <= 255)
        value = value * 10 + (unsigned)(*digit++ - '0');
    if (digit == *at || value < 1 || value > 255)
        return false;
    *ret = value;
    *at = digit;
    return true;
}

/* "7" or "3-5" */
static bool add_range(struct codeset *set, const char *word, size_t n)
{
    const char *at = word, *end = word + n;
    unsigned first, last;
    if (!take_number(&at, end, &first))
        return false;
    last = first;
    if (at < end && *at == '-') {
        at++;
        if (!take_number(&at, end, &last))
            return false;
    }
    if (at != end || last < first)
        return false;
    for (unsigned code = first; code <= last; code++)
        set->codes[code / 64] |= 1ull << (code % 64);
    return true;
}

static bool add_word(struct codeset *set, const char *word, size_t n)
{
    if (n == 6 && memcmp(word, "signal", n) == 0) {
        set->signals = UINT64_MAX;
        return true;
    }
    if (n == 4 && memcmp(word, "hang", n) == 0) {
        set->hang = 1;
        return true;
    }
    int sig = siglist_number(word, n);
    if (sig)
        set->signals |= 1ull << (sig - 1);
    return sig || add_range(set, word, n);
}

int codeset_parse(struct codeset *ret, const char *text)
{
    struct codeset set = {0};
    if (strcmp(text, "all") == 0) {
        memset(set.codes, 0xff, sizeof set.codes);
        set.signals = UINT64_MAX;
        set.hang = 1;
    } else if (strcmp(text, "none") != 0) {
        for (bool more = true; more;) {
            size_t n = strcspn(text, ",");
            if (!add_word(&set, text, n))
                return -EINVAL;
            more = text[n] == ',';
            text += n + more;
        }
    }
    *ret = set;
    return 0;
}

bool codeset_has(const struct codeset *set, int exit_code, int signal, bool hang)
{
    if (hang)
        return set->hang != 0;
    if (signal > 0 && signal <= 64 && (set->signals & (1ull << (signal - 1))))
        return true;
    return exit_code > 0 && exit_code < 256 &&
           (set->codes[exit_code / 64] & (1ull << (exit_code % 64)));
}
