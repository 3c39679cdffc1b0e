/* SPDX-License-Identifier: MIT */
/* The manual page launch(1), in the man macros of roff. */
#ifndef LAUNCH_AGENT_CMD_MAN_H
#define LAUNCH_AGENT_CMD_MAN_H

#include <stdio.h>

void man_print(FILE *out);

#endif
