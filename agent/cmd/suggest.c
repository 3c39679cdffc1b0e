/* SPDX-License-Identifier: MIT */
#include "suggest.h"

#include "../../config/foreign.h"
#include "commands.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void PRINTF_LIKE(2, 3) append(struct err *err, const char *format, ...)
{
    size_t used = strlen(err->text);
    va_list ap;
    va_start(ap, format);
    vsnprintf(err->text + used, sizeof err->text - used, format, ap);
    va_end(ap);
}

/* U+2010 to U+2015 and U+2212: what word processors and web pages make of "-" and "--". */
static bool has_typographic_dash(const char *word)
{
    return (strncmp(word, "\xe2\x80", 2) == 0 && word[2] >= '\x90' && word[2] <= '\x95') ||
           strncmp(word, "\xe2\x88\x92", 3) == 0;
}

static const char *nearest_command(const char *word)
{
    const char *nearest = NULL;
    size_t best = SIZE_MAX;
    for (const struct command *command = COMMANDS; command->name; command++)
        if (field_is_nearer(word, strlen(word), command->name, &best))
            nearest = command->name;
    return nearest;
}

int suggest_refuse(struct err *err, const char *command, const char *word, const char *why,
                   const char *const *options)
{
    char shown[FIELD_QUOTE_BYTES], title[COMMAND_TITLE_BYTES];
    const char *meant = NULL;
    size_t best = SIZE_MAX;
    for (; options && *options; options++)
        if (field_is_nearer(word, strcspn(word, "="), *options, &best))
            meant = *options;
    field_quote(word, strlen(word), shown);
    if (meant)
        return err_set(err, -EINVAL, "%s: %s: unknown option; did you mean %s?", command, shown,
                       meant);
    return err_set(err, -EINVAL, "%s: %s%s%s; usage: %s", command, shown, *shown ? ": " : "", why,
                   command_title(command_find(command), title));
}

static bool is_file(const char *word, const char *suffix)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s%s", word, suffix);
    return n < (int)sizeof path && access(path, F_OK) == 0;
}

/* "FOO=1", which a shell takes before a command, and no option. */
static bool is_variable(const char *word)
{
    size_t n = strcspn(word, "=");
    return word[n] && field_names_variable(word, n);
}

static bool is_job_file(const char *word)
{
    const char *dot = strrchr(word, '.');
    return dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0) && is_file(word, "");
}

void suggest_program(const char *word, struct err *err)
{
    const struct field *field = field_find(word, strcspn(word, "="));
    const char *option = field ? field->name : strcmp(word, "version") == 0 ? word : NULL;
    const char *command = nearest_command(word);
    const char *instead = foreign_find(FOREIGN_VERB, word, strlen(word));
    if (is_job_file(word)) {
        err_set(err, err->code, "'%s' is no program; did you mean --config=%s?", word, word);
        return;
    }
    if (err->code != -ENOENT || strstr(err->text, "did you mean"))
        return;
    if (has_typographic_dash(word))
        append(err, "; it begins with a typographic dash: an option begins with a plain -");
    else if (*word == ' ' || *word == '\t' || *word == '\r' || *word == '\n')
        append(err, "; it begins with a blank: nothing may stand behind the \\ that ends a line");
    else if (is_file(word, ".py"))
        append(err, "; did you mean %s.py?", word);
    else if (option)
        append(err, "; did you mean the option --%s?", option);
    else if (is_variable(word))
        append(err, "; variables stand before launch: %s launch ...", word);
    else if (strpbrk(word, " \t") && !is_file(word, ""))
        append(err, "; a program and its arguments are words of their own: no quotes around both");
    else if (instead)
        append(err, "; %s", instead);
    else if (command)
        append(err, "; did you mean the command: launch %s?", command);
}

const char *suggest_variable(const char *word, char buf[FIELD_ENV_BYTES])
{
    const size_t n = strcspn(word, "="), before = strncmp(word, "LAUNCH_", 7) == 0 ? 7
                                                  : strncmp(word, "PET_", 4) == 0  ? 4
                                                                                   : 0;
    bool found = false;
    size_t best = SIZE_MAX;
    for (size_t i = 0; before && i < FIELDS_N; i++) {
        char ours[FIELD_ENV_BYTES];
        const char *known = before == 4 ? FIELDS[i].pet : field_env(&FIELDS[i], ours);
        if (!known || FIELDS[i].group == GROUP_FILE)
            continue;
        if (strlen(known) == n && memcmp(known, word, n) == 0)
            return NULL;
        if (field_is_nearer(word + before, n - before, known + before, &best)) {
            snprintf(buf, FIELD_ENV_BYTES, "%s", known);
            found = true;
        }
    }
    return found ? buf : NULL;
}
