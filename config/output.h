/* SPDX-License-Identifier: MIT */
/* Parsers of the settings about workers' streams and log files, for the table in fields.c. Each is a
 * `parse` of struct field. */
#ifndef LAUNCH_CONFIG_OUTPUT_H
#define LAUNCH_CONFIG_OUTPUT_H

#include "fields.h"

/* into: struct rankmap. */
int output_parse_map(const struct field *field, const char *text, void *into, struct err *err);
int output_parse_list(const struct field *field, const char *text, void *into, struct err *err);

/* into: stdin_mode; stdin_rank is set along with it. */
int output_parse_stdin(const struct field *field, const char *text, void *into, struct err *err);

/* into: uint64_t, bytes. "500", "64K", "10M", "2G". */
int output_parse_size(const struct field *field, const char *text, void *into, struct err *err);

/* into: char *, owned: any text but an empty one. */
int output_parse_text(const struct field *field, const char *text, void *into, struct err *err);

#endif
