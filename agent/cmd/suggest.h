/* SPDX-License-Identifier: MIT */
/* What a word that is no program, or not one of a command's, was probably meant to be. */
#ifndef LAUNCH_AGENT_CMD_SUGGEST_H
#define LAUNCH_AGENT_CMD_SUGGEST_H

#include "../../config/fields.h"
#include "../../proto/err.h"

/* Appends a guess to the error that says that the program was not found, if there is one; one that is a job file gets a line
 * of its own. */
void suggest_program(const char *word, struct err *err);

/* A variable, "LAUNCH_MAX_RESTART=3", that is read by nobody and nearly one of a setting's: which one, in buf; else NULL. */
const char *suggest_variable(const char *word, char buf[FIELD_ENV_BYTES]);

/* -EINVAL: a word, "" for a missing one, is wrong in a command: which of its options (NULL-terminated; NULL: not asked) it was
 * probably meant to be, up to its '='; or, if none is near, why, and the command's usage. */
int suggest_refuse(struct err *err, const char *command, const char *word, const char *why,
                   const char *const *options);

#endif
