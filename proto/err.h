/* SPDX-License-Identifier: MIT */
/* An error that a person will read: a code and one line. Each level adds its own noun in front.
 * Never logs, prints or exits. */
#ifndef LAUNCH_PROTO_ERR_H
#define LAUNCH_PROTO_ERR_H

#include "base.h"

#define ERR_TEXT_BYTES 480

struct err {
    int code;                  /* negative errno; 0: no error */
    char text[ERR_TEXT_BYTES]; /* one line, no newline, no trailing dot */
};

/* Sets code and text; returns code, so that "return err_set(err, -EINVAL, ...)" is the idiom.
 * code: a negative errno. err may be NULL: then only the code is returned. */
int err_set(struct err *err, int code, const char *format, ...) PRINTF_LIKE(3, 4);

/* As err_set, and appends ": " and the text of the errno. */
int err_set_errno(struct err *err, int code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Puts "prefix: " before the text; returns err->code, or `code` when err is NULL. */
int err_wrap(struct err *err, int code, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
