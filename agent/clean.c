/* SPDX-License-Identifier: MIT */
#include "clean.h"

#include <stdbool.h>
#include <string.h>

/* Length of the UTF-8 character there and its code point; 0: none. */
static size_t take_character(const unsigned char *at, unsigned long *ret)
{
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    static const unsigned long least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = at[0] < 0x80 ? 1 : at[0] < 0xc0 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    if (n == 0 || at[0] > 0xf4)
        return 0;
    unsigned long point = at[0] & masks[n];
    for (size_t i = 1; i < n; i++) {
        if ((at[i] & 0xc0) != 0x80) /* a NUL, too */
            return 0;
        point = point << 6 | (at[i] & 0x3f);
    }
    *ret = point;
    return point < least[n] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000) ? 0 : n;
}

static bool is_harmless(unsigned long point)
{
    bool control = point < 0x20 || (point >= 0x7f && point < 0xa0);
    bool turns = point == 0x61c || point == 0x200e || point == 0x200f ||
                 (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
    bool line = point == 0x2028 || point == 0x2029;
    return !control && !turns && !line;
}

const char *clean(char *to, size_t size, const char *text)
{
    size_t used = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        unsigned long point = 0;
        size_t n = take_character(at, &point);
        bool fits = n > 0 && is_harmless(point);
        size_t need = fits ? n : 1;
        if (used + need >= size)
            break;
        if (fits)
            memmove(to + used, at, n);
        else
            to[used] = *at == '\t' ? ' ' : '?';
        used += need;
        at += n ? n : 1;
    }
    to[used] = '\0';
    return to;
}

void clean_lines(char *text, size_t n)
{
    for (size_t i = 0, used; i < n; i += used) {
        unsigned char at[5] = {0}; /* what is cut off at the end is no character */
        unsigned long point = 0;
        memcpy(at, text + i, n - i < 4 ? n - i : 4);
        size_t length = take_character(at, &point);
        used = length ? length : 1;
        if (length == 0 || !(is_harmless(point) || point == '\n' || point == '\t'))
            memset(text + i, '?', used);
    }
}
