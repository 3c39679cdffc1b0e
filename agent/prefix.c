/* SPDX-License-Identifier: MIT */
/* See prefix.h. One memchr and one copy a line. Must never know ranks' lives or files. */
#include "prefix.h"

#include "../proto/env.h"

#include <stdio.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define DEFAULT_TEMPLATE "[${role_name}${local_rank}]:"

/* The macro that stands at `at`, which is behind a dollar; *ret_n: its length with the braces. */
static const char *find_macro(const char *at, const char *role, const char *rank, size_t *ret_n)
{
    const struct {
        const char *name, *value;
    } MACROS[] = {{"role_name", role}, {"local_rank", rank}, {"rank", rank}};
    bool braces = *at == '{';
    for (size_t i = 0; i < ARRAY_LEN(MACROS); i++) {
        size_t n = strlen(MACROS[i].name);
        const char *end = at + braces + n;
        if (strncmp(at + braces, MACROS[i].name, n) != 0)
            continue;
        bool ends = braces ? *end == '}'
                           : !strspn(end, "abcdefghijklmnopqrstuvwxyz_0123456789"
                                          "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        if (!ends)
            continue;
        *ret_n = n + 2 * braces;
        return MACROS[i].value;
    }
    return NULL;
}

int prefix_make(struct prefix *prefix, const char *template, const char *role, uint32_t rank,
                struct err *err)
{
    struct prefix made = {0};
    char number[16];
    snprintf(number, sizeof number, "%u", rank);
    for (const char *at = template ? template : DEFAULT_TEMPLATE; *at;) {
        size_t n = 1;
        const char *value = NULL;
        if (at[0] == '$' && at[1] == '$')
            at++;
        else if (at[0] == '$' && (value = find_macro(at + 1, role, number, &n)))
            at++;
        size_t bytes = value ? strlen(value) : 1;
        if (*at == '\n' || made.n + bytes > PREFIX_MAX_BYTES)
            return err_set(err, -EINVAL,
                           ENV_LINE_PREFIX ": must be one line that makes at most %u bytes",
                           PREFIX_MAX_BYTES);
        memcpy(made.text + made.n, value ? value : at, bytes);
        made.n += (uint8_t)bytes;
        at += n;
    }
    *prefix = made;
    return 0;
}

#ifdef __SSE2__
/* Copies up to and with the first newline, 16 bytes at a time, as far as whole pieces go: to has room for as many bytes as
 * in has. Returns what was copied; *found: it ends with the newline. A line is passed once instead of twice. */
static size_t copy_pieces(char *to, const char *in, size_t n, bool *found)
{
    const __m128i newline = _mm_set1_epi8('\n');
    size_t done = 0;
    for (; n - done >= 16; done += 16) {
        __m128i piece = _mm_loadu_si128((const void *)(in + done));
        unsigned hit = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(piece, newline));
        _mm_storeu_si128((void *)(to + done), piece);
        if (hit) {
            *found = true;
            return done + (size_t)__builtin_ctz(hit) + 1;
        }
    }
    return done;
}
#else
static size_t copy_pieces(char *to, const char *in, size_t n, bool *found)
{
    (void)to, (void)in, (void)n, (void)found;
    return 0;
}
#endif

/* As copy_pieces(), to the end. */
static size_t copy_line(char *to, const char *in, size_t n, bool *found)
{
    size_t done = copy_pieces(to, in, n, found);
    if (*found || done == n)
        return done;
    const char *newline = memchr(in + done, '\n', n - done);
    size_t rest = newline ? (size_t)(newline + 1 - (in + done)) : n - done;
    memcpy(to + done, in + done, rest);
    *found = newline != NULL;
    return done + rest;
}

size_t prefix_lines(const struct prefix *prefix, bool *mid_line, const char **data, size_t *n,
                    char *out, size_t room)
{
    const char *in = *data, *end = in + *n;
    char *to = out, *stop = out + room;
    while (in < end && to < stop) {
        size_t left = (size_t)(stop - to);
        if (!*mid_line) {
            if (left <= prefix->n)
                break;
            /* The usual prefix is short, and a copy of known length is no call. */
            if (prefix->n <= 16 && left >= 16)
                memcpy(to, prefix->text, 16);
            else
                memcpy(to, prefix->text, prefix->n);
            to += prefix->n;
            left -= prefix->n;
        }
        bool found = false;
        size_t ahead = (size_t)(end - in);
        size_t length = copy_line(to, in, ahead < left ? ahead : left, &found);
        *mid_line = !found;
        to += length;
        in += length;
    }
    *data = in;
    *n = (size_t)(end - in);
    return (size_t)(to - out);
}
