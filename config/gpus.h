/* SPDX-License-Identifier: MIT */
/* Parser of --gpus, for the table in fields.c. Knows the forms of a choice, and no GPU. */
#ifndef LAUNCH_CONFIG_GPUS_H
#define LAUNCH_CONFIG_GPUS_H

#include "fields.h"

/* into: gpus_mode; gpus_n and gpus_list are set along with it. A number is a count; a list holds indices, ranges of
 * them, GPU-... and MIG-... names, one at least, and a single index is written as 3-3. */
int gpus_parse(const struct field *field, const char *text, void *into, struct err *err);

#endif
