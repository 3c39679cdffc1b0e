/* SPDX-License-Identifier: MIT */
/* launch check: is this server healthy? */
#ifndef LAUNCH_AGENT_CMD_CHECK_H
#define LAUNCH_AGENT_CMD_CHECK_H

int cmd_check(int argc, char **argv);

#endif
