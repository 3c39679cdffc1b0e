/* SPDX-License-Identifier: MIT */
/* `launch topo`: the picture of the server. */
#ifndef LAUNCH_AGENT_CMD_TOPO_H
#define LAUNCH_AGENT_CMD_TOPO_H

#include <stdio.h>

/* Returns the exit code of the launcher. */
int cmd_topo(int argc, char **argv);

void topo_help(FILE *out);

#endif
