/* SPDX-License-Identifier: MIT */
/* launch doctor --log: known failures in what a job has written. Memory does not grow with the log. */
#ifndef LAUNCH_AGENT_DOCTOR_LOG_H
#define LAUNCH_AGENT_DOCTOR_LOG_H

#include "../../proto/err.h"

#include <stdbool.h>
#include <stdio.h>

/* Looks through a file, stdin ("-") or all logs of a directory: one run's, or the one that --log-dir names. Each failure is
 * told once, with the place where it is first and how often it is there; causes before consequences. 1: there is one;
 * 0: none is known; negative errno, with one line: nothing could be read. */
MUST_CHECK int doctor_log(FILE *out, const char *path, bool json, struct err *err);

#endif
