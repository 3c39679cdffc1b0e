/* SPDX-License-Identifier: MIT */
/* The way back: settings as the text of a job file. */
#ifndef LAUNCH_CONFIG_EMIT_H
#define LAUNCH_CONFIG_EMIT_H

#include "spec.h"

#include <stdio.h>

/* Every value in effect, with a comment that says where it came from; what is not set, or follows from the rest, is
 * a comment altogether. As a job file it gives the same spec. -EINVAL: a text that YAML can't hold (no UTF-8). */
MUST_CHECK int emit_config(FILE *out, const struct job_spec *spec, struct err *err);

/* A job file in which every setting is explained and none is set. */
void emit_example(FILE *out);

#endif
