/* SPDX-License-Identifier: MIT */
/* Completion of the command line for three shells, made of the settings table and the commands. */
#ifndef LAUNCH_AGENT_CMD_COMPLETION_H
#define LAUNCH_AGENT_CMD_COMPLETION_H

#include <stdio.h>

void completion_print_bash(FILE *out);
void completion_print_zsh(FILE *out);
void completion_print_fish(FILE *out);

#endif
