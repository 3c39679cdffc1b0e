/* SPDX-License-Identifier: MIT */
/* `launch doctor`: what is wrong with this machine, with a running job, or with one whose log is there. */
#ifndef LAUNCH_AGENT_CMD_DOCTOR_H
#define LAUNCH_AGENT_CMD_DOCTOR_H

#include <stdio.h>

/* Exit codes: 0 nothing is broken (warnings and what could not be looked at included), 1 something is. */
int cmd_doctor(int argc, char **argv);

void doctor_help(FILE *out);

#endif
