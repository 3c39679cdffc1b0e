/* SPDX-License-Identifier: MIT */
/* Small files of /proc and /sys below a root that tests may choose. Their content is input: it
 * may be long, binary, or not there. Knows no file by name. */
#ifndef LAUNCH_AGENT_SYSFILE_H
#define LAUNCH_AGENT_SYSFILE_H

#include "../proto/base.h"
#include "bitset.h"

#include <stdbool.h>
#include <sys/types.h>

/* Reads at most bytes-1 bytes and ends them with NUL; what is longer is cut. Returns the length
 * (which counts NULs in the content), or -errno; -EINVAL for anything that is no regular file. */
MUST_CHECK ssize_t sysfile_read(char *buffer, size_t bytes, const char *sysroot, const char *format,
                                ...) PRINTF_LIKE(4, 5);

/* Reads a file that holds one decimal number. -EINVAL: it holds something else. */
MUST_CHECK int sysfile_number(long long *ret, const char *sysroot, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Reads a file that holds a list of numbers ("0-3,8"). False: there is none, or it holds something else. */
bool sysfile_list(struct bitset *ret, const char *sysroot, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* The value behind "key" in text made of lines "key<separators>value": NUL-terminated, without
 * surrounding blanks, cut to bytes-1. False if no line starts with the key. */
bool sysfile_field(const char *text, const char *key, char *ret_value, size_t bytes);

#endif
