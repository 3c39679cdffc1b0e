/* SPDX-License-Identifier: MIT */
/* See gpus.h. Must never know which GPUs there are: agent/plan.c does. */
#include "gpus.h"

#include "parse.h"

#include <stdio.h>
#include <string.h>

#define DIGITS "0123456789"
#define LIST_BYTES 6144 /* 64 MIG names */

/* A list with its ranges written out. */
struct list {
    char text[LIST_BYTES];
    size_t used;
};

static bool put(struct list *list, const char *entry, size_t n)
{
    if (list->used + n + 2 > sizeof list->text)
        return false;
    if (list->used)
        list->text[list->used++] = ',';
    memcpy(list->text + list->used, entry, n);
    list->used += n;
    list->text[list->used] = '\0';
    return true;
}

/* Digits only, below SPEC_GPUS_MAX. */
static bool take_index(const char *text, unsigned *ret, const char **end)
{
    size_t n = strspn(text, DIGITS);
    *end = text + n;
    *ret = n > 0 && n < 6 ? (unsigned)strtoul(text, NULL, 10) : SPEC_GPUS_MAX;
    return *ret < SPEC_GPUS_MAX;
}

static bool put_range(struct list *list, const char *text, size_t n)
{
    unsigned from, to;
    const char *end;
    if (!take_index(text, &from, &end))
        return false;
    to = from;
    if (*end == '-' && !take_index(end + 1, &to, &end))
        return false;
    if (end != text + n || to < from)
        return false;
    for (unsigned i = from; i <= to; i++) {
        char index[16];
        int length = snprintf(index, sizeof index, "%u", i);
        if (!put(list, index, (size_t)length))
            return false;
    }
    return true;
}

static bool put_name(struct list *list, const char *text, size_t n)
{
    static const char FIT[] = DIGITS "abcdefABCDEFGPUMI-/"; /* the agent looks closer */
    bool named = strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0;
    return named && n > 4 && strspn(text, FIT) >= n && put(list, text, n);
}

static bool put_all(struct list *list, const char *text)
{
    for (;;) {
        size_t n = strcspn(text, ",");
        if (!put_range(list, text, n) && !put_name(list, text, n))
            return false;
        if (!text[n])
            return true;
        text += n + 1;
    }
}

static bool parse(struct job_spec *spec, const char *text, struct list *list)
{
    if (strcmp(text, "auto") == 0)
        spec->gpus_mode = GPUS_AUTO;
    else if (strcmp(text, "all") == 0)
        spec->gpus_mode = GPUS_ALL;
    else if (*text && !text[strspn(text, DIGITS)])
        spec->gpus_mode = GPUS_COUNT;
    else
        spec->gpus_mode = GPUS_LIST;
    if (spec->gpus_mode == GPUS_LIST)
        return put_all(list, text);
    if (spec->gpus_mode != GPUS_COUNT)
        return true;
    unsigned long n = strlen(text) < 6 ? strtoul(text, NULL, 10) : 0;
    spec->gpus_n = (uint32_t)n;
    return n >= 1 && n <= SPEC_GPUS_MAX;
}

int gpus_parse(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field;
    struct job_spec *spec = CONTAINER_OF(into, struct job_spec, gpus_mode), found = {0};
    struct list list = {.text = ""};
    if (!parse(&found, text, &list))
        return parse_refuse(err, text,
                            "how many (1 to %d), 'auto', 'all', or which, such as 4-7, 0,2, 3-3 or "
                            "GPU-8f2a...,MIG-...",
                            SPEC_GPUS_MAX);
    char *copy = found.gpus_mode == GPUS_LIST ? strdup(list.text) : NULL;
    if (found.gpus_mode == GPUS_LIST && !copy)
        return err_set(err, -ENOMEM, "out of memory");
    free(spec->gpus_list);
    spec->gpus_mode = found.gpus_mode;
    spec->gpus_n = found.gpus_n;
    spec->gpus_list = copy;
    return 0;
}
