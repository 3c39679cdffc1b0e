/* SPDX-License-Identifier: MIT */
/* What a job answers on its control socket. Reads the job and the board, which workers write; asks news.h for what is to
 * happen, and changes nothing itself. */
#ifndef LAUNCH_AGENT_ANSWERS_H
#define LAUNCH_AGENT_ANSWERS_H

#include "control.h"
#include "job_inside.h"

struct control_source answers_of(struct job *job);

#endif
