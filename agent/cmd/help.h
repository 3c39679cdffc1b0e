/* SPDX-License-Identifier: MIT */
/* `launch --help` and `launch help [TOPIC]`: the settings table, the commands and the topics as text of at most 80
 * columns; also (--man, --bash, --zsh, --fish) as manual page and completion. */
#ifndef LAUNCH_AGENT_CMD_HELP_H
#define LAUNCH_AGENT_CMD_HELP_H

#include "../../proto/err.h"

#include <stdio.h>

/* Everything. */
void help_print(FILE *out);

/* All that goes by that name: a topic, a group of options, a command, an option in any spelling, a variable.
 * -ENOENT: nothing does; one line with the nearest name. */
MUST_CHECK int help_print_topic(FILE *out, const char *name, struct err *err);

int cmd_help(int argc, char **argv);

#endif
