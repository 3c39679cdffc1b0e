/* SPDX-License-Identifier: MIT */
/* torchrun's macro in the program's arguments: ${local_rank} or $local_rank becomes the worker's number on this server.
 * Other words behind a dollar and a dollar alone stay as they are. So does "$$", which torchrun makes "$" of: that breaks
 * the arguments of those who never heard of macros. Only before the macro itself it is the escape that it is there:
 * "$${local_rank}" is "${local_rank}". */
#ifndef LAUNCH_AGENT_MACRO_H
#define LAUNCH_AGENT_MACRO_H

#include <stdbool.h>
#include <stdint.h>

/* Whether there is anything to replace. */
bool macro_in(const char *text);

/* The text with everything replaced, for free(); NULL: no memory. */
char *macro_expand(const char *text, uint32_t local_rank);

#endif
