/* SPDX-License-Identifier: MIT */
/* See prefix.h. One memchr and one copy a line. Must never know ranks' lives or files. */
#include "prefix.h"

#include "../proto/env.h"

#include <stdio.h>
#include <string.h>

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

size_t prefix_lines(const struct prefix *prefix, bool *mid_line, const char **data, size_t *n,
                    char *out, size_t room)
{
    const char *in = *data, *end = in + *n;
    char *to = out, *stop = out + room;
    while (in < end && to < stop) {
        if (!*mid_line) {
            if ((size_t)(stop - to) <= prefix->n)
                break;
            memcpy(to, prefix->text, prefix->n);
            to += prefix->n;
        }
        const char *newline = memchr(in, '\n', (size_t)(end - in));
        size_t length = (size_t)((newline ? newline + 1 : end) - in);
        *mid_line = !newline;
        if (length > (size_t)(stop - to)) {
            length = (size_t)(stop - to);
            *mid_line = true;
        }
        memcpy(to, in, length);
        to += length;
        in += length;
    }
    *data = in;
    *n = (size_t)(end - in);
    return (size_t)(to - out);
}
