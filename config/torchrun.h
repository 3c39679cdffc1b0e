/* SPDX-License-Identifier: MIT */
/* Values of torchrun's options that have no effect here: looked at, so that a slip is told, and dropped. */
#ifndef LAUNCH_CONFIG_TORCHRUN_H
#define LAUNCH_CONFIG_TORCHRUN_H

#include "fields.h"

/* --nnodes: one server. */
int torchrun_parse_nnodes(const struct field *field, const char *text, void *into, struct err *err);

/* --rdzv-conf: key=value,... */
int torchrun_parse_pairs(const struct field *field, const char *text, void *into, struct err *err);

/* --rdzv-endpoint: host or host:port; empty as torchrun's default is. */
int torchrun_parse_endpoint(const struct field *field, const char *text, void *into,
                            struct err *err);
int torchrun_parse_anything(const struct field *field, const char *text, void *into,
                            struct err *err);

#endif
