/* SPDX-License-Identifier: MIT */
/* The text in front of each line of a rank on the console. Knows lines, not where they come from. */
#ifndef LAUNCH_AGENT_PREFIX_H
#define LAUNCH_AGENT_PREFIX_H

#include "../proto/err.h"

#include <stdbool.h>
#include <stdint.h>

#define PREFIX_MAX_BYTES 128u

struct prefix {
    uint8_t n; /* 0: none */
    char text[PREFIX_MAX_BYTES];
};

/* Fills in a template: ${role_name}, ${local_rank}, ${rank}, each also without braces, and $$ for a dollar;
 * what is none of these stays as it is. template: NULL: torchrun's default "[${role_name}${local_rank}]:".
 * -EINVAL: longer than PREFIX_MAX_BYTES, or a newline in it. */
MUST_CHECK int prefix_make(struct prefix *prefix, const char *template, const char *role,
                           uint32_t rank, struct err *err);

/* Copies what fits into out, with the prefix where a line begins; moves *data and *n on. *mid_line: whether
 * the text stands inside a line, kept from call to call. room: more than PREFIX_MAX_BYTES. Returns the bytes
 * in out. */
size_t prefix_lines(const struct prefix *prefix, bool *mid_line, const char **data, size_t *n,
                    char *out, size_t room);

#endif
