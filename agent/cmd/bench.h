/* SPDX-License-Identifier: MIT */
/* `launch bench`: how fast the links of this server are. */
#ifndef LAUNCH_AGENT_CMD_BENCH_H
#define LAUNCH_AGENT_CMD_BENCH_H

/* Returns the exit code of the launcher. */
int cmd_bench(int argc, char **argv);

#endif
