/* SPDX-License-Identifier: MIT */
/* Comparing names as a person writes them: '-' equals '_'. Knows no table. */
#ifndef LAUNCH_CONFIG_NAMES_H
#define LAUNCH_CONFIG_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#define NAMES_MAX_BYTES 64 /* longer words are no name of ours */

bool names_same(const char *a, size_t a_n, const char *b, size_t b_n);

/* How many characters must be put in, left out or changed to make one of the other (Levenshtein). Both at most
 * NAMES_MAX_BYTES. */
size_t names_distance(const char *a, size_t a_n, const char *b, size_t b_n);

#endif
