/* SPDX-License-Identifier: MIT */
/* What a word that is no program, or no option of a command, was probably meant to be. */
#ifndef LAUNCH_AGENT_CMD_SUGGEST_H
#define LAUNCH_AGENT_CMD_SUGGEST_H

#include "../../proto/err.h"

/* Appends a guess to the error that says that the program was not found, if there is one. */
void suggest_program(const char *word, struct err *err);

/* The one of `known` (NULL-terminated) that an option, up to its '=', was probably meant to be; NULL: none is near. */
const char *suggest_option(const char *word, const char *const *known);

#endif
