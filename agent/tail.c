/* SPDX-License-Identifier: MIT */
/* See tail.h. Moving is rare: once in TAIL_BYTES at most. Must never know whose bytes these are. */
#include "tail.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void tail_finish(struct tail *t)
{
    if (!t)
        return;
    free(t->bytes);
    *t = (struct tail){0};
}

void tail_reset(struct tail *t)
{
    tail_finish(t);
}

void tail_add(struct tail *t, const char *data, size_t n)
{
    if (!t->bytes && !(t->bytes = malloc(TAIL_ROOM)))
        return;
    /* One byte more than is shown is kept: it tells whether the shown ones start a line. */
    if (n > TAIL_BYTES) {
        data += n - (TAIL_BYTES + 1);
        n = TAIL_BYTES + 1;
        t->n = 0;
    }
    if (t->n + n > TAIL_ROOM) {
        memmove(t->bytes, t->bytes + t->n - TAIL_BYTES, TAIL_BYTES);
        t->n = TAIL_BYTES;
    }
    memcpy(t->bytes + t->n, data, n);
    t->n += n;
}

const char *tail_text(const struct tail *t, size_t *ret_n)
{
    *ret_n = 0;
    if (!t->bytes)
        return "";
    size_t n = t->n < TAIL_BYTES ? t->n : TAIL_BYTES;
    const char *text = t->bytes + t->n - n;
    bool mid_line = t->n > n && text[-1] != '\n';
    const char *newline = mid_line ? memchr(text, '\n', n) : NULL;
    if (newline && newline + 1 < text + n) {
        n -= (size_t)(newline + 1 - text);
        text = newline + 1;
    }
    *ret_n = n;
    return text;
}
