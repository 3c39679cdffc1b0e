/* SPDX-License-Identifier: MIT */
/* What a person or a program is told of who has which GPU. What a job says about itself was escaped already (holder.h) and
 * is not known to be true. */
#ifndef LAUNCH_AGENT_HOLDINGS_H
#define LAUNCH_AGENT_HOLDINGS_H

#include "gpu_users.h"
#include "units.h"

#include <stdio.h>

/* "run night (./train, user ann, pid 812, since 14:03:12)". Returns text. */
#define HOLDINGS_WHO_BYTES 320
const char *holdings_who(const struct holder *who, char text[HOLDINGS_WHO_BYTES]);

/* "python3 (pid 4711, user bob, 31744 MiB)". Returns text. */
const char *holdings_user(const struct gpu_user *user, char text[HOLDINGS_WHO_BYTES]);

/* A line for each GPU and holder, and for each job that waits. All files of u must be open. */
void holdings_print(FILE *out, const struct units *u, const struct gpu_list *gpus,
                    const struct gpu_users *users, const char *before);
void holdings_print_json(FILE *out, const struct units *u, const struct gpu_list *gpus,
                         const struct gpu_users *users);

#endif
