/* SPDX-License-Identifier: MIT */
#include "help.h"

#include "../../proto/status.h"
#include "../log.h"
#include "commands.h"
#include "completion.h"
#include "man.h"
#include "topics.h"

#include <string.h>

#define WIDTH 79
#define INDENT 28
#define TEXT_INDENT 2

/* ---- text ---- */

/* Prints text and a newline: the first word at `column`, further lines from `indent` on. */
static void print_wrapped(FILE *out, size_t column, size_t indent, const char *text)
{
    for (bool first = true; *(text += strspn(text, " ")); first = false) {
        int n = (int)strcspn(text, " \n");
        if (*text == '\n') {
            fprintf(out, "\n");
            column = 0;
            first = true;
            text++;
            n = (int)strcspn(text, " \n");
        }
        if (column < indent) {
            fprintf(out, "%*s", (int)(indent - column), "");
            column = indent;
        } else if (!first && column + 1 + (size_t)n > WIDTH) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", n, text);
        column += (size_t)n;
        text += n;
    }
    fputc('\n', out);
}

/* A name in the left column, or on a line of its own when it is too long for that, and what it means. */
static void print_entry(FILE *out, const char *name, size_t indent, const char *text)
{
    size_t column = (size_t)fprintf(out, "  %s", name);
    if (column + 2 > indent) {
        fputc('\n', out);
        column = 0;
    }
    print_wrapped(out, column, indent, text);
}

static void print_field(FILE *out, const struct field *field)
{
    char flag[128], text[700], notes[TOPIC_NOTES_BYTES], letter[8] = "    ";
    if (field->letter)
        snprintf(letter, sizeof letter, "-%c, ", field->letter);
    snprintf(flag, sizeof flag, "%s--%s%s%s", letter, field->name, field->arg ? "=" : "",
             field->arg ? field->arg : "");
    topic_notes(field, notes);
    snprintf(text, sizeof text, *notes ? "%s [%s]" : "%s", field->help, notes);
    print_entry(out, flag, INDENT, text);
}

static void print_group(FILE *out, int group)
{
    fprintf(out, "%s\n", FIELD_GROUPS[group]);
    for (size_t i = 0; i < FIELDS_N; i++) {
        if (FIELDS[i].group == (enum field_group)group)
            print_field(out, &FIELDS[i]);
    }
}

static void print_topic(FILE *out, const struct topic *topic)
{
    fprintf(out, "%s\n", topic->title);
    if (topic->text)
        print_wrapped(out, 0, TEXT_INDENT, topic->text);
    for (size_t i = 0; !topic->text && i < EXIT_ROWS_N; i++)
        print_entry(out, EXIT_ROWS[i].code, 9, EXIT_ROWS[i].text);
}

static void print_commands(FILE *out)
{
    char title[COMMAND_TITLE_BYTES];
    fputs("Commands\n", out);
    for (const struct command *command = COMMANDS; command->name; command++) {
        print_entry(out, command_title(command, title), INDENT, command->summary);
    }
}

static void print_names(FILE *out)
{
    char text[1024], word[TOPIC_BYTES];
    const char *name;
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; (name = topic_name(i, word)); i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s, ", name);
    snprintf(text + used, sizeof text - used, "and the name of any option, variable or command.");
    fputs("Topics of launch help\n", out);
    print_wrapped(out, 0, TEXT_INDENT, text);
}

void help_print(FILE *out)
{
    fputs("usage: launch [options] program [arguments]\n"
          "       launch COMMAND [arguments]\n"
          "\n"
          "Starts the workers of a job on this server, gives each its rank and its GPU,\n"
          "watches over them, and brings the job back when one of them dies.\n"
          "\n"
          "Examples\n"
          "  launch --nproc-per-node=gpu train.py         one worker per GPU\n"
          "  launch -n 4 --max-restarts=3 ./train --lr 1  four, up to 3 fresh starts\n"
          "\n",
          out);
    print_commands(out);
    for (int group = 0; group < GROUPS_N; group++) {
        fputc('\n', out);
        print_group(out, group);
    }
    fputs("\nOther\n", out);
    print_entry(out, "-h, --help", INDENT, "This text.");
    print_entry(out, "-V, --version", INDENT, "The version.");
    for (size_t i = 0; i < TOPICS_N; i++) {
        if (TOPICS[i].apart)
            continue;
        fputc('\n', out);
        print_topic(out, &TOPICS[i]);
    }
    fputc('\n', out);
    print_names(out);
}

/* ---- launch help TOPIC ---- */

static void print_option(FILE *out, const struct field *field)
{
    char ours[FIELD_ENV_BYTES], text[FIELD_ENV_BYTES + 64], word[TOPIC_BYTES];
    print_field(out, field);
    snprintf(text, sizeof text, "Variable: %s",
             field->group == GROUP_FILE ? "none" : field_env(field, ours));
    print_wrapped(out, 0, INDENT, text);
    snprintf(text, sizeof text, "See also: launch help %s", topic_of_group(field->group, word));
    print_wrapped(out, 0, INDENT, text);
}

/* The row of "--np", "nproc_per_node", "-n", "PET_NPROC_PER_NODE" or "LAUNCH_NPROC_PER_NODE". */
static const struct field *find_option(const char *name)
{
    const char *word = name + strspn(name, "-");
    if (name[0] == '-' && word == name + 1 && word[0] && !word[1])
        return field_find_letter(word[0]);
    for (size_t i = 0; i < FIELDS_N; i++) {
        char ours[FIELD_ENV_BYTES];
        if (strcmp(name, field_env(&FIELDS[i], ours)) == 0 ||
            (FIELDS[i].pet && strcmp(name, FIELDS[i].pet) == 0))
            return &FIELDS[i];
    }
    return field_find(word, strcspn(word, "="));
}

/* Keeps the nearer one of two. */
static void consider(const char *name, const char *known, size_t *best, char nearest[TOPIC_BYTES])
{
    if (field_is_nearer(name, strlen(name), known, best))
        snprintf(nearest, TOPIC_BYTES, "%s", known);
}

static int refuse_unknown(const char *name, struct err *err)
{
    char shown[FIELD_QUOTE_BYTES], word[TOPIC_BYTES], nearest[TOPIC_BYTES];
    const char *known;
    size_t best = SIZE_MAX;
    field_quote(name, strlen(name), shown);
    name += strspn(name, "-");
    for (size_t i = 0; (known = topic_name(i, word)); i++)
        consider(name, known, &best, nearest);
    for (const struct command *command = COMMANDS; command->name; command++)
        consider(name, command->name, &best, nearest);
    known = best != SIZE_MAX ? nearest : field_nearest(name, strlen(name));
    if (known)
        return err_set(err, -ENOENT, "no help on '%s'; did you mean: launch help %s?", shown,
                       known);
    return err_set(err, -ENOENT, "no help on '%s'; launch help lists all there is", shown);
}

int help_print_topic(FILE *out, const char *name, struct err *err)
{
    const char *between = "";
    const struct command *command = command_find(name);
    if (command) {
        command_help(out, command);
        between = "\n";
    }
    for (size_t i = 0; i < TOPICS_N; i++) {
        if (strcmp(name, TOPICS[i].name) == 0) {
            fputs(between, out);
            print_topic(out, &TOPICS[i]);
            between = "\n";
        }
    }
    for (int group = 0; group < GROUPS_N; group++) {
        char word[TOPIC_BYTES];
        if (strcmp(name, topic_of_group(group, word)) == 0) {
            fputs(between, out);
            print_group(out, group);
            between = "\n";
        }
    }
    const struct field *field = find_option(name);
    if (field) {
        fputs(between, out);
        print_option(out, field);
        between = "\n";
    }
    return *between ? 0 : refuse_unknown(name, err);
}

int cmd_help(int argc, char **argv)
{
    static const struct {
        const char *word;
        void (*print)(FILE *out);
    } FORMS[] = {{"--man", man_print},
                 {"--bash", completion_print_bash},
                 {"--zsh", completion_print_zsh},
                 {"--fish", completion_print_fish}};
    struct err err;
    if (argc > 2) {
        log_error("launch help takes one topic");
        return EXIT_CODE_USAGE;
    }
    if (argc < 2) {
        help_print(stdout);
        return EXIT_CODE_OK;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        command_help(stdout, command_find(argv[0]));
        return EXIT_CODE_OK;
    }
    for (size_t i = 0; i < ARRAY_LEN(FORMS); i++) {
        if (strcmp(argv[1], FORMS[i].word) == 0) {
            FORMS[i].print(stdout);
            return EXIT_CODE_OK;
        }
    }
    if (help_print_topic(stdout, argv[1], &err) == 0)
        return EXIT_CODE_OK;
    log_error("%s", err.text);
    return EXIT_CODE_USAGE;
}
