/* SPDX-License-Identifier: MIT */
/* `launch gpus`: who has which GPU of this server. */
#ifndef LAUNCH_AGENT_CMD_GPUS_H
#define LAUNCH_AGENT_CMD_GPUS_H

/* Returns the exit code of the launcher. */
int cmd_gpus(int argc, char **argv);

#endif
