/* SPDX-License-Identifier: MIT */
/* launch check: is this server healthy? */
#ifndef LAUNCH_AGENT_CMD_CHECK_H
#define LAUNCH_AGENT_CMD_CHECK_H

#include <stdio.h>

int cmd_check(int argc, char **argv);

void check_help(FILE *out);

#endif
