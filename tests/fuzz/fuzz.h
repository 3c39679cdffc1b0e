/* SPDX-License-Identifier: MIT */
/* What fuzzers share: what must hold for whatever came in, a reader of the input, and files to put it into. */
#ifndef LAUNCH_TESTS_FUZZ_FUZZ_H
#define LAUNCH_TESTS_FUZZ_FUZZ_H

#include "../../agent/json.h"
#include "../../proto/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static inline void must(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "fuzz: %s\n", what);
        abort();
    }
}

/* Nothing in it steers a terminal. Bytes of UTF-8 may stay. */
static inline void check_clean(const char *text)
{
    for (const char *c = text; *c; c++)
        must((unsigned char)*c >= 0x20 && *c != 0x7f, "a control character in what is shown");
}

/* The same of several lines, in which tabs may stay, too. */
static inline void check_lines(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        must((unsigned char)text[i] >= 0x20 ? text[i] != 0x7f : text[i] == '\n' || text[i] == '\t',
             "a control character in lines that are shown");
}

/* An error is one line with words. */
static inline void check_line(const struct err *err)
{
    must(err->text[0] != '\0', "an error without words");
    check_clean(err->text);
}

static inline void check_json(const char *text, size_t n)
{
    struct json_value value;
    must(text != NULL, "no memory");
    must(json_parse(&value, text, n) == 0, "what is written is no JSON");
}

/* ---- input, taken from the front; zeros behind its end ---- */

struct fuzz_in {
    const uint8_t *at, *end;
};

static inline size_t in_left(const struct fuzz_in *in)
{
    return (size_t)(in->end - in->at);
}

static inline const uint8_t *in_bytes(struct fuzz_in *in, size_t n)
{
    const uint8_t *at = in->at;
    in->at += n;
    return at;
}

static inline uint8_t in_u8(struct fuzz_in *in)
{
    return in_left(in) ? *in_bytes(in, 1) : 0;
}

static inline uint64_t in_u64(struct fuzz_in *in, size_t bytes)
{
    uint64_t value = 0;
    size_t n = in_left(in) < bytes ? in_left(in) : bytes;
    memcpy(&value, in_bytes(in, n), n); /* little endian */
    return value;
}

/* What is left as a string on the heap. */
static inline char *in_text(struct fuzz_in *in)
{
    size_t n = in_left(in);
    char *text = malloc(n + 1);
    must(text != NULL, "no memory");
    memcpy(text, in_bytes(in, n), n);
    text[n] = '\0';
    return text;
}

/* ---- files ---- */

/* A file without a name that holds these bytes from `at` on; the descriptor is the caller's. */
static inline int file_of(const void *bytes, size_t n, off_t at)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    must(fd >= 0 && pwrite(fd, bytes, n, at) == (ssize_t)n, "no file");
    return fd;
}

#endif
