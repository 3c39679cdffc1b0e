/* SPDX-License-Identifier: MIT */
/* The last bytes of a stream, kept as they were. Knows bytes only; costs nothing before the
 * first one. */
#ifndef LAUNCH_AGENT_TAIL_H
#define LAUNCH_AGENT_TAIL_H

#include <stddef.h>

#define TAIL_BYTES 4096u
#define TAIL_ROOM (2 * TAIL_BYTES + 1)

struct tail {
    char *bytes; /* TAIL_ROOM: filled, then its end is moved to the front */
    size_t n;    /* more than TAIL_BYTES as soon as anything was forgotten */
};

void tail_finish(struct tail *t);

/* Forgets everything; keeps no memory. */
void tail_reset(struct tail *t);

/* Without memory nothing is kept. */
void tail_add(struct tail *t, const char *data, size_t n);

/* At most the last TAIL_BYTES; begins behind a newline when something was cut and there is one. */
const char *tail_text(const struct tail *t, size_t *ret_n);

#endif
