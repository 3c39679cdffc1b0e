/* SPDX-License-Identifier: MIT */
/* launch doctor: a row of commands.c. */
#ifndef LAUNCH_AGENT_CMD_DOCTOR_H
#define LAUNCH_AGENT_CMD_DOCTOR_H

int cmd_doctor(int argc, char **argv);

#endif
