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
