/* SPDX-License-Identifier: MIT */
/* Parsers of the settings' values, for the table in fields.c; those of output.h, gpus.h and torchrun.h are apart. Each
 * is a field's parse(): see there for what it returns. */
#ifndef LAUNCH_CONFIG_PARSE_H
#define LAUNCH_CONFIG_PARSE_H

#include "fields.h"

#define PARSE_TIME_MAX_MS (1000ll * 3600 * 1000) /* the board keeps milliseconds in 32 bits */

/* "must be <what>, not '<text>'"; returns -EINVAL. */
int parse_refuse(struct err *err, const char *text, const char *what, ...) PRINTF_LIKE(3, 4);

/* into: char *, owned: a copy of the text takes the place of what is there. 0, -ENOMEM. */
int parse_put_text(const char *text, void *into, struct err *err);

/* into: uint32_t, uint16_t; within the field's range. */
int parse_u32(const struct field *field, const char *text, void *into, struct err *err);
int parse_u16(const struct field *field, const char *text, void *into, struct err *err);

/* into: uint64_t, milliseconds within the field's range. */
int parse_duration(const struct field *field, const char *text, void *into, struct err *err);

/* into: an enum whose values are the indices of the field's choices. */
int parse_choice(const struct field *field, const char *text, void *into, struct err *err);

/* into: bool. */
int parse_switch(const struct field *field, const char *text, void *into, struct err *err);

/* A switch that may be a time as well. into: uint64_t, milliseconds. */
int parse_wait(const struct field *field, const char *text, void *into, struct err *err);

/* torchrun's switch for what --gpu-visibility says with a word. into: enum gpu_visibility. */
int parse_virtual_rank(const struct field *field, const char *text, void *into, struct err *err);

/* into: nproc_mode; nproc is set along with it. The choices follow NPROC_NUMBER in nproc_mode. */
int parse_nproc(const struct field *field, const char *text, void *into, struct err *err);

/* into: struct siglist (field->min: how many there must be), codeset, limits. */
int parse_signals(const struct field *field, const char *text, void *into, struct err *err);
int parse_codes(const struct field *field, const char *text, void *into, struct err *err);
int parse_limits(const struct field *field, const char *text, void *into, struct err *err);

/* into: char *, owned. */
int parse_run_id(const struct field *field, const char *text, void *into, struct err *err);
int parse_host(const struct field *field, const char *text, void *into, struct err *err);
int parse_role(const struct field *field, const char *text, void *into, struct err *err);

#endif
