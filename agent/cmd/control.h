/* SPDX-License-Identifier: MIT */
/* Subcommands that speak to running jobs; rows of commands.c. */
#ifndef LAUNCH_AGENT_CMD_CONTROL_H
#define LAUNCH_AGENT_CMD_CONTROL_H

#include "../client.h"

int cmd_ps(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_logs(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_stop(int argc, char **argv);
int cmd_restart(int argc, char **argv);
int cmd_grow(int argc, char **argv);
int cmd_signal(int argc, char **argv);

/* The members of a job's JSON object. */
void control_put_job(const struct client_job *job);

#endif
