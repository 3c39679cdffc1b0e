/* SPDX-License-Identifier: MIT */
/* See sieve.h. A whole line in a chunk is looked at where it lies. Must never know whose lines these are. */
#include "sieve.h"

#include <string.h>

int needles_init(struct needles *needles, const char *list)
{
    *needles = (struct needles){0};
    if (!list)
        return 0;
    size_t bytes = strlen(list) + 1, most = 1;
    for (const char *c = list; *c; c++)
        most += *c == ',';
    char **text = malloc(most * sizeof *text + bytes);
    if (!text)
        return -ENOMEM;
    char *to = (char *)(text + most);
    size_t n = 0;
    for (text[0] = to;; list++) {
        bool comma = *list == ',';
        if (*list && (!comma || list[1] == ',')) {
            *to++ = *list;
            list += comma;
            continue;
        }
        *to++ = '\0';
        n += *text[n] != '\0';
        if (!*list)
            break;
        text[n] = to;
    }
    *needles = (struct needles){.n = n, .text = text};
    return 0;
}

void needles_finish(struct needles *needles)
{
    free(needles->text);
    *needles = (struct needles){0};
}

bool needles_match(const struct needles *needles, const char *line, size_t n)
{
    for (size_t i = 0; i < needles->n; i++)
        if (memmem(line, n, needles->text[i], strlen(needles->text[i])))
            return true;
    return false;
}

static void keep(struct sieve *sieve, const char *data, size_t n)
{
    if (!sieve->line && !(sieve->line = malloc(SIEVE_LINE_MAX)))
        return;
    size_t room = SIEVE_LINE_MAX - sieve->n;
    n = n < room ? n : room;
    memcpy(sieve->line + sieve->n, data, n);
    sieve->n += n;
}

void sieve_add(struct sieve *sieve, const struct needles *needles, const char *data, size_t n,
               void (*on_line)(void *user, const char *line, size_t n), void *user)
{
    for (const char *newline; n && (newline = memchr(data, '\n', n));) {
        size_t length = (size_t)(newline - data);
        const char *line = data;
        size_t line_n = length < SIEVE_LINE_MAX ? length : SIEVE_LINE_MAX;
        if (sieve->n) {
            keep(sieve, data, length);
            line = sieve->line;
            line_n = sieve->n;
            sieve->n = 0;
        }
        if (needles_match(needles, line, line_n))
            on_line(user, line, line_n);
        data = newline + 1;
        n -= length + 1;
    }
    if (n)
        keep(sieve, data, n);
}

void sieve_finish(struct sieve *sieve, const struct needles *needles,
                  void (*on_line)(void *user, const char *line, size_t n), void *user)
{
    if (sieve->n && needles_match(needles, sieve->line, sieve->n))
        on_line(user, sieve->line, sieve->n);
    free(sieve->line);
    *sieve = (struct sieve){0};
}
