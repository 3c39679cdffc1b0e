/* SPDX-License-Identifier: MIT */
/* `launch [options] program [arguments]`: the main job. */
#ifndef LAUNCH_AGENT_CMD_RUN_H
#define LAUNCH_AGENT_CMD_RUN_H

/* Returns the exit code of the launcher. */
int cmd_run(int argc, char **argv);

#endif
