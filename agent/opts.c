/* SPDX-License-Identifier: MIT */
/* Owns how options look on the command line and their names in the environment. Must never know what a
 * setting means or how its value is parsed: that is config/fields.c. Prints nothing; errors go up as
 * one line. */
#include "opts.h"

#include "../config/fields.h"
#include "../config/foreign.h"
#include "../config/jobfile.h"
#include "../proto/status.h"

#include <stdio.h>
#include <string.h>

#define USAGE "usage: launch [options] program [arguments]; launch --help has the rest"

/* ---- command line ---- */

/* One option word, taken apart. */
struct option {
    const struct field *field; /* NULL: unknown, or --help and the like */
    const char *name; /* without dashes, as written; not terminated; of a letter: the option's */
    size_t name_bytes;
    const char *value; /* what stands in the same word; NULL: nothing does */
};

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && strcmp(word, "--") != 0;
}

static void take_letter(struct option *option)
{
    option->field = field_find_letter(option->name[0]);
    if (option->field) {
        option->name = option->field->name;
        option->name_bytes = strlen(option->name);
    }
}

static struct option split(const char *word)
{
    bool one_dash = word[1] != '-';
    struct option option = {.name = word + (one_dash ? 1 : 2)};
    option.name_bytes = strcspn(option.name, "=");
    if (option.name[option.name_bytes] == '=')
        option.value = option.name + option.name_bytes + 1;
    if (one_dash && option.name_bytes == 1) {
        take_letter(&option);
        return option;
    }
    /* mpirun's "-np" is no -n with the value "p", so a whole name goes first. */
    option.field = field_find(option.name, option.name_bytes);
    if (!option.field && one_dash) {
        const char *rest = option.name + 1;
        take_letter(&option);
        if (option.field)
            option.value = rest;
    }
    return option;
}

static bool is_action(const struct option *option, enum opts_action *ret_action)
{
    static const struct {
        const char *name;
        enum opts_action action;
    } NAMES[] = {
        {"help", OPTS_HELP}, {"h", OPTS_HELP}, {"version", OPTS_VERSION}, {"V", OPTS_VERSION}};

    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        if (!option->value && strlen(NAMES[i].name) == option->name_bytes &&
            memcmp(NAMES[i].name, option->name, option->name_bytes) == 0) {
            *ret_action = NAMES[i].action;
            return true;
        }
    }
    return false;
}

static int refuse_unknown(const char *word, const struct option *option, struct err *err)
{
    static const char *const OTHERS[] = {"help", "version", NULL};
    char shown[FIELD_QUOTE_BYTES];
    size_t n = (size_t)(option->name - word) + option->name_bytes;
    const char *nearest = field_nearest_of(option->name, option->name_bytes, OTHERS);
    const char *instead = foreign_find(FOREIGN_OPTION, option->name, option->name_bytes);
    field_quote(word, n, shown);
    if (instead)
        return err_set(err, -EINVAL, "%s: unknown option; %s", shown, instead);
    if (nearest && strncmp(nearest, option->name, option->name_bytes) == 0 &&
        !nearest[option->name_bytes])
        return err_set(err, -EINVAL, "%s: takes no value", shown);
    if (nearest)
        return err_set(err, -EINVAL, "%s: unknown option; did you mean --%s?", shown, nearest);
    return err_set(err, -EINVAL, "%s: unknown option; --help lists them all", shown);
}

/* A forgotten value must not swallow the next option; a negative number gets the parser's error. */
static bool is_value(const char *word)
{
    return word && (word[0] != '-' || (word[1] >= '0' && word[1] <= '9'));
}

/* "--rdzv-id": what the user finds in his script, with dashes. Returns buf. */
static const char *where_of(const struct option *option, char buf[FIELD_ENV_BYTES])
{
    snprintf(buf, FIELD_ENV_BYTES, "--%.*s", (int)option->name_bytes, option->name);
    for (char *c = buf; *c; c++)
        *c = *c == '_' ? '-' : *c;
    return buf;
}

/* Returns how many words were used, 1 or 2. words: NULL-terminated, the first one is an option. */
static int take_option(struct job_spec *spec, char **words, enum opts_action *action,
                       struct err *err)
{
    struct option option = split(words[0]);
    if (is_action(&option, action))
        return 1;
    if (!option.field)
        return refuse_unknown(words[0], &option, err);

    int used = 1;
    char where[FIELD_ENV_BYTES];
    where_of(&option, where);
    const char *value = option.value;
    if (!value && !option.field->arg) {
        value = "1";
    } else if (!value) {
        if (!is_value(words[1]))
            return err_set(err, -EINVAL, "%s: needs a value: %s=%s", where, where,
                           option.field->arg);
        value = words[1];
        used = 2;
    }
    int r = field_set(option.field, spec, value, where, err);
    return r < 0 ? r : used;
}

/* ---- environment ---- */

static int take_environment(struct job_spec *spec, struct err *err)
{
    for (size_t i = 0; i < FIELDS_N; i++) {
        char ours[FIELD_ENV_BYTES];
        struct origin from = {.source = SOURCE_LAUNCH};
        const char *where = field_env(&FIELDS[i], ours);
        if (FIELDS[i].group == GROUP_FILE || field_given(&FIELDS[i], spec))
            continue;
        const char *text = getenv(where);
        if ((!text || !*text) && FIELDS[i].pet) {
            from.source = SOURCE_PET;
            where = FIELDS[i].pet;
            text = getenv(where);
        }
        int r = text && *text ? field_set_from(&FIELDS[i], spec, text, from, where, err) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

static bool shows_config(const struct job_spec *spec)
{
    return spec->print_config || spec->example_config;
}

/* words: from the program on, or behind "--"; NULL: there are none. */
static int take_program(struct job_spec *spec, char **words, bool dashes, struct err *err)
{
    if (spec->jobs) {
        if (!words)
            return 0;
        return err_set(err, -EINVAL,
                       "%s: has 'jobs', each with a program of its own: leave out '%.60s'",
                       spec->config, words[0]);
    }
    if (spec->file_argv && (dashes || !words)) {
        int r = words ? spec_add_arguments(spec, words, err) : 0;
        spec->argv = spec->file_argv;
        return r;
    }
    if (!words && !shows_config(spec))
        return err_set(err, -EINVAL,
                       "no program given, neither here nor as 'program' in %s; " USAGE,
                       spec->config);
    if (words && !*words[0])
        return err_set(err, -EINVAL, "the program's name is empty; " USAGE);
    spec->argv = words;
    return 0;
}

int opts_parse(struct job_spec *spec, int argc, char **argv, enum opts_action *ret_action,
               struct err *err)
{
    enum opts_action action = OPTS_RUN;
    int i = 1;
    while (i < argc && is_option(argv[i])) {
        int used = take_option(spec, argv + i, &action, err);
        if (used < 0)
            return used;
        if (action != OPTS_RUN) {
            *ret_action = action;
            return 0;
        }
        i += used;
    }
    bool dashes = i < argc && strcmp(argv[i], "--") == 0;
    i += dashes;
    if (i >= argc && !spec->config && !shows_config(spec))
        return err_set(err, -EINVAL, "no program given; " USAGE);

    int r = take_environment(spec, err);
    if (r == 0 && spec->config)
        r = jobfile_read(spec, spec->config, err);
    if (r == 0)
        r = take_program(spec, i < argc ? argv + i : NULL, dashes, err);
    if (r == 0)
        r = spec_check(spec, err);
    if (r < 0)
        return r;
    *ret_action = spec->example_config ? OPTS_EXAMPLE_CONFIG
                  : spec->print_config ? OPTS_PRINT_CONFIG
                                       : OPTS_RUN;
    return 0;
}
