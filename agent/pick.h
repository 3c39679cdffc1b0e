/* SPDX-License-Identifier: MIT */
/* Pure: which of the free GPUs a job gets. Knows only how far they are from one another. */
#ifndef LAUNCH_AGENT_PICK_H
#define LAUNCH_AGENT_PICK_H

#include "near.h"

/* Sets of GPUs: bit i is GPU i. */
#define PICK_BIT(i) (1ull << (i))

/* k of `free` that are near one another; among equally near ones those that break up what stays free least, then the
 * lowest. 0: there are fewer than k. */
uint64_t pick(const struct distances *d, uint64_t free, unsigned k);

#endif
