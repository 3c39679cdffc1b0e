/* SPDX-License-Identifier: MIT */
/* launch doctor RUN: what the ranks of a running job do, and which of them holds up the others. */
#ifndef LAUNCH_AGENT_DOCTOR_RUN_H
#define LAUNCH_AGENT_DOCTOR_RUN_H

#include "../../proto/err.h"

#include <stdbool.h>
#include <stdio.h>

#define DOCTOR_RUN_MS 10000 /* it takes at most so long */

/* Looks twice at the job of that run id or name (or of the only one that begins so), at its processes and at NCCL. What can't
 * be looked at is said, and the rest is told. 1: it makes no progress; 0: it does; negative errno, with one line:
 * there is no such job, or it does not answer. */
MUST_CHECK int doctor_run(FILE *out, const char *run, bool json, struct err *err);

#endif
