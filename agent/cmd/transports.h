/* SPDX-License-Identifier: MIT */
/* launch topo --transports and launch bench --transports: what NCCL really uses between the GPUs. */
#ifndef LAUNCH_AGENT_CMD_TRANSPORTS_H
#define LAUNCH_AGENT_CMD_TRANSPORTS_H

#include <stdbool.h>

/* The words hold --transports. */
bool transports_asked(int argc, char **argv);

/* argv[0]: the subcommand; besides --transports, --json and --format=text|json all words are launch's. Returns the exit code. */
int cmd_transports(int argc, char **argv);

#endif
