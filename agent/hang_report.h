/* SPDX-License-Identifier: MIT */
/* What is told of a group that hangs: ranks that are in the same place share a line, so that the odd one stands
 * out. Text in, text out. */
#ifndef LAUNCH_AGENT_HANG_REPORT_H
#define LAUNCH_AGENT_HANG_REPORT_H

#include "evidence.h"
#include "hang.h"
#include "notify.h"

#define HANG_REPORT_GROUPS 5 /* more are only counted */

/* A heap text of whole lines without prefix (NULL: no memory); the suspect's group comes first. ranks: h->n of them,
 * NULL: no evidence could be taken, for the reason `why`. notes: what the ranks told, NULL: nothing. */
char *hang_report(const struct hang *h, const struct hang_verdict *verdict,
                  const struct evidence_rank *ranks, const char *why,
                  const struct notify_rank *notes);

/* "rank 3", "ranks 0, 2-7": those with a flag. */
void hang_report_list(const bool *flags, uint32_t n, char *text, size_t size);

#endif
