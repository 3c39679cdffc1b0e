/* SPDX-License-Identifier: MIT */
/* A program of this system asked for what it prints, for a limited time. Knows no program by name. */
#ifndef LAUNCH_AGENT_DOCTOR_TOOL_H
#define LAUNCH_AGENT_DOCTOR_TOOL_H

#include "../../proto/err.h"

/* Runs argv[0] of the PATH without stdin, and takes the first size - 1 bytes of its stdout and stderr. It is killed after
 * `ms`; what it has said until then counts. Returns the length; -ENOENT: there is no such program. */
MUST_CHECK ssize_t tool_ask(const char *const argv[], unsigned ms, char *text, size_t size);

#endif
