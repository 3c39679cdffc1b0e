/* SPDX-License-Identifier: MIT */
#include "err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* At most this much of a prefix (with ": ") is kept: the older text behind it is the more specific one. */
#define PREFIX_BYTES 200

/* Keeps the promise of one line, whatever argv or a file put into the text: it ends up on a terminal.
 * Bytes of UTF-8 stay. */
static void make_one_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = '?';
}

int err_set(struct err *err, int code, const char *format, ...)
{
    if (!err)
        return code;
    va_list ap;
    va_start(ap, format);
    err->code = code;
    vsnprintf(err->text, sizeof err->text, format, ap);
    va_end(ap);
    make_one_line(err->text);
    return code;
}

int err_set_errno(struct err *err, int code, const char *format, ...)
{
    if (!err)
        return code;
    va_list ap;
    va_start(ap, format);
    err->code = code;
    vsnprintf(err->text, sizeof err->text, format, ap);
    va_end(ap);
    size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof err->text - used, ": %s", strerror(-code));
    make_one_line(err->text);
    return code;
}

int err_wrap(struct err *err, int code, const char *format, ...)
{
    if (!err)
        return code;
    char prefix[PREFIX_BYTES];
    va_list ap;
    va_start(ap, format);
    vsnprintf(prefix, sizeof prefix - 2, format, ap);
    va_end(ap);
    size_t n = strlen(prefix);
    memcpy(prefix + n, ": ", 2);
    n += 2;
    memmove(err->text + n, err->text, sizeof err->text - n);
    memcpy(err->text, prefix, n);
    err->text[sizeof err->text - 1] = '\0';
    make_one_line(err->text);
    return err->code;
}
