/* SPDX-License-Identifier: MIT */
/* Puts a value into struct job_spec and remembers where it came from. Must never know how a value is parsed, nor
 * which source goes before which: whoever reads the sources does. */
#include "fields.h"

#include <string.h>

static bool same_place(const struct field *a, const struct field *b)
{
    return a == b ||
           (a->offset == b->offset && a->group != GROUP_TORCHRUN && b->group != GROUP_TORCHRUN);
}

enum source field_source(const struct field *field, const struct job_spec *spec)
{
    enum source source = SOURCE_DEFAULT;
    for (size_t i = 0; i < FIELDS_N; i++)
        if (spec->origin[i].source > source && same_place(&FIELDS[i], field))
            source = spec->origin[i].source;
    return source;
}

bool field_given(const struct field *field, const struct job_spec *spec)
{
    return field_source(field, spec) > SOURCE_IMPLIED;
}

/* `from` owns its text. Whatever set the same place before no longer counts. */
static void remember(const struct field *field, struct job_spec *spec, struct origin from)
{
    for (size_t i = 0; i < FIELDS_N; i++) {
        if (same_place(&FIELDS[i], field)) {
            free(spec->origin[i].text);
            spec->origin[i] = (struct origin){0};
        }
    }
    spec->origin[field - FIELDS] = from;
}

int field_set_from(const struct field *field, struct job_spec *spec, const char *text,
                   struct origin from, const char *where, struct err *err)
{
    union {
        bool on;
        unsigned word;
        uint64_t number;
    } nowhere;
    void *into = field->group == GROUP_TORCHRUN ? (void *)&nowhere : (char *)spec + field->offset;
    bool is_default = from.source == SOURCE_DEFAULT;
    if (!is_default && !(from.text = strdup(text)))
        return err_set(err, -ENOMEM, "%s: out of memory", where);
    int r = field->parse(field, text, into, err);
    if (r < 0) {
        free(from.text);
        return err_wrap(err, r, "%s", where);
    }
    if (!is_default)
        remember(field, spec, from);
    return 0;
}

int field_set(const struct field *field, struct job_spec *spec, const char *text, const char *where,
              struct err *err)
{
    return field_set_from(field, spec, text, (struct origin){.source = SOURCE_COMMAND_LINE}, where,
                          err);
}

int field_imply(const struct field *field, struct job_spec *spec, const char *text, struct err *err)
{
    struct origin from = {.source = SOURCE_IMPLIED, .text = strdup(text)};
    if (!from.text)
        return err_set(err, -ENOMEM, "out of memory");
    remember(field, spec, from);
    return 0;
}
