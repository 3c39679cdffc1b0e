/* SPDX-License-Identifier: MIT */
/* The standbys of a job, for launch status: what they are up to and how much memory they hold. */
#ifndef LAUNCH_AGENT_CMD_STANDBY_H
#define LAUNCH_AGENT_CMD_STANDBY_H

#include "../../proto/wire.h"

#include <stddef.h>

/* A line each; nothing without any. */
void standby_print(const struct wire_rank *list, size_t n);

/* The member "standby" of the job's object, with what separates it from the one before. */
void standby_print_json(const struct wire_rank *list, size_t n);

#endif
