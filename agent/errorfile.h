/* SPDX-License-Identifier: MIT */
/* The file in which a worker says why it failed (TORCHELASTIC_ERROR_FILE, as PyTorch's @record writes it), as bytes in
 * and bytes out. The bytes are a worker's: bad JSON is shown as the text that it is. Opens no file. */
#ifndef LAUNCH_AGENT_ERRORFILE_H
#define LAUNCH_AGENT_ERRORFILE_H

#include "../proto/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ERRORFILE_MAX_BYTES (256u * 1024u) /* what is longer is read up to here, and so as text */

struct errorfile {
    char message[512];    /* "ValueError: boom"; "" : nothing was said */
    char traceback[8192]; /* its end, if it is longer; "" : none */
    uint64_t timestamp;   /* seconds since 1970; 0: none */
    bool is_json;
};

/* Never fails: without bytes everything is empty. */
void errorfile_parse(struct errorfile *ret, const char *bytes, size_t n);

/* The same document with "errorCode": code inside "message", as torchrun hands it on to whoever started it; as it is, if its
 * message is text. Bytes that are no such document become one in PyTorch's form around that text. Heap, NULL: no memory;
 * *ret_n: its length. code: torchrun's, -9 for a worker that SIGKILL ended. */
char *errorfile_with_code(const char *bytes, size_t n, int code, size_t *ret_n);

/* A document in PyTorch's form for a failure whose worker left none. Likewise. */
char *errorfile_make(const char *message, const char *traceback, int code, uint64_t timestamp,
                     size_t *ret_n);

#endif
