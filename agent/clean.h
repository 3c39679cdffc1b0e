/* SPDX-License-Identifier: MIT */
/* Foreign text made fit for a terminal. */
#ifndef LAUNCH_AGENT_CLEAN_H
#define LAUNCH_AGENT_CLEAN_H

#include <stddef.h>

/* Copies text up to its NUL, cut at a character to size - 1: what steers a terminal or turns the direction of writing becomes
 * '?', and so do bytes that are no UTF-8; a tab becomes a blank. Returns `to`, which may
 * be text itself. */
const char *clean(char *to, size_t size, const char *text);

/* The same for n bytes of a stream, in place and byte by byte: newlines and tabs stay, and a NUL becomes '?', too. */
void clean_lines(char *text, size_t n);

#endif
