/* SPDX-License-Identifier: MIT */
#include "torchrun.h"

#include <string.h>

static int refuse(struct err *err, const char *text, const char *what)
{
    char shown[FIELD_QUOTE_BYTES];
    field_quote(text, strlen(text), shown);
    return err_set(err, -EINVAL, "must be %s, not '%s'", what, shown);
}

int torchrun_parse_nnodes(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field, (void)into;
    if (strcmp(text, "1") == 0 || strcmp(text, "1:1") == 0)
        return 0;
    return refuse(err, text,
                  "1 or 1:1, as a job can't have several servers yet (--nnodes=1 "
                  "--nproc-per-node=gpu takes all GPUs of this one)");
}

int torchrun_parse_pairs(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field, (void)into;
    for (const char *pair = text; *pair; pair += *pair == ',') {
        size_t n = strcspn(pair, ","), key_n = strcspn(pair, "=");
        if (key_n == 0 || key_n >= n)
            return refuse(err, text, "settings such as timeout=900,join_timeout=600");
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
