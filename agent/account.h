/* SPDX-License-Identifier: MIT */
/* Names of users. */
#ifndef LAUNCH_AGENT_ACCOUNT_H
#define LAUNCH_AGENT_ACCOUNT_H

#include <sys/types.h>

#define ACCOUNT_NAME_BYTES 40

/* The user's name, cut, or the number if there is none. Returns name. */
const char *account_name(uid_t uid, char name[ACCOUNT_NAME_BYTES]);

#endif
