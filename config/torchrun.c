/* SPDX-License-Identifier: MIT */
#include "torchrun.h"

#include "parse.h"

#include <string.h>

int torchrun_parse_nnodes(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field, (void)into;
    if (strcmp(text, "1") == 0 || strcmp(text, "1:1") == 0)
        return 0;
    return parse_refuse(err, text,
                        "1 or 1:1, as a job can't have several servers yet (--nnodes=1 "
                        "--nproc-per-node=gpu takes all GPUs of this one)");
}

static bool is_port(const char *text)
{
    unsigned port = 0;
    if (!*text)
        return false;
    for (; *text >= '0' && *text <= '9' && port <= UINT16_MAX; text++)
        port = port * 10 + (unsigned)(*text - '0');
    return !*text && port <= UINT16_MAX;
}

int torchrun_parse_endpoint(const struct field *field, const char *text, void *into,
                            struct err *err)
{
    (void)field, (void)into;
    const char *colon = strrchr(text, ':'), *bracket = strrchr(text, ']');
    /* Several colons without brackets are an IPv6 address. */
    bool has_port = colon && (bracket ? colon > bracket : colon == strchr(text, ':'));
    if (has_port && !is_port(colon + 1))
        return parse_refuse(err, text, "a host, or host and port such as localhost:29400");
    return 0;
}

int torchrun_parse_pairs(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field, (void)into;
    for (const char *pair = text; *pair; pair += *pair == ',') {
        size_t n = strcspn(pair, ","), key_n = strcspn(pair, "=");
        if (key_n == 0 || key_n >= n)
            return parse_refuse(err, text, "settings such as timeout=900,join_timeout=600");
        pair += n;
    }
    return 0;
}

int torchrun_parse_anything(const struct field *field, const char *text, void *into,
                            struct err *err)
{
    (void)field, (void)text, (void)into, (void)err;
    return 0;
}
