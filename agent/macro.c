/* SPDX-License-Identifier: MIT */
#include "macro.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_name_char(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Length of "local_rank" or "{local_rank}" at the start of text; 0: it is something else. */
static size_t name_at(const char *text)
{
    static const char NAME[] = "local_rank";
    const size_t n = sizeof NAME - 1;
    bool braced = *text == '{';
    const char *name = text + braced;
    if (strncmp(name, NAME, n) != 0)
        return 0;
    if (braced)
        return name[n] == '}' ? n + 2 : 0;
    return is_name_char(name[n]) ? 0 : n;
}

/* The first dollar from `text` on that is replaced or, before another one and a macro, left out; NULL: none. */
static const char *find(const char *text)
{
    while ((text = strchr(text, '$'))) {
        bool doubled = text[1] == '$';
        if (name_at(text + 1 + doubled))
            return text;
        text += 1 + doubled;
    }
    return NULL;
}

bool macro_in(const char *text)
{
    return find(text) != NULL;
}

char *macro_expand(const char *text, uint32_t local_rank)
{
    char *expanded = NULL;
    size_t size;
    FILE *out = open_memstream(&expanded, &size);
    if (!out)
        return NULL;
    bool whole = true; /* a stream in memory tells a failure here, but not by fclose() */
    for (const char *dollar; (dollar = find(text));) {
        size_t n = (size_t)(dollar - text);
        whole = fwrite(text, 1, n, out) == n && whole;
        bool doubled = dollar[1] == '$';
        const char *name = dollar + 1 + doubled;
        text = name + name_at(name);
        if (doubled)
            whole = fprintf(out, "$%.*s", (int)(text - name), name) > 0 && whole;
        else
            whole = fprintf(out, "%u", local_rank) > 0 && whole;
    }
    whole = fputs(text, out) >= 0 && whole;
    if (fclose(out) == 0 && whole)
        return expanded;
    free(expanded);
    return NULL;
}
