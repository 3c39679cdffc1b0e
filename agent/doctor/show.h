/* SPDX-License-Identifier: MIT */
/* Findings for a person and for programs. */
#ifndef LAUNCH_AGENT_DOCTOR_SHOW_H
#define LAUNCH_AGENT_DOCTOR_SHOW_H

#include "doctor.h"

#include <stdio.h>

/* A line a finding, what is wrong with consequence and fix below it, and the verdict at the end. */
void show_text(FILE *out, const struct doctor *d, bool colour);

/* Members are always there; null: none. */
void show_json(FILE *out, const struct doctor *d);

#endif
