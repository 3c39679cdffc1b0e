/* SPDX-License-Identifier: MIT */
/* Picks the lines that hold one of some texts. Knows bytes and lines only. */
#ifndef LAUNCH_AGENT_SIEVE_H
#define LAUNCH_AGENT_SIEVE_H

#include "../proto/base.h"

#include <stdbool.h>

/* A longer line is looked at, and passed on, up to here. */
#define SIEVE_LINE_MAX (64u * 1024u)

struct needles {
    size_t n;
    char **text; /* owned: n pointers into one block behind them */
};

/* From "ERROR,loss,,acc": two commas are one in a text; empty texts are left out. NULL: none. -ENOMEM. */
MUST_CHECK int needles_init(struct needles *needles, const char *list);
void needles_finish(struct needles *needles);
bool needles_match(const struct needles *needles, const char *line, size_t n);

/* One stream on its way through. Zeroed: fresh. */
struct sieve {
    char *line; /* owned: the beginning of an unfinished one */
    size_t n;
};

/* Calls on_line for every line that matches, without its newline. */
void sieve_add(struct sieve *sieve, const struct needles *needles, const char *data, size_t n,
               void (*on_line)(void *user, const char *line, size_t n), void *user);

/* The stream is at its end: the unfinished line counts. Gives the memory back. */
void sieve_finish(struct sieve *sieve, const struct needles *needles,
                  void (*on_line)(void *user, const char *line, size_t n), void *user);

#endif
