/* SPDX-License-Identifier: MIT */
#include "man.h"

#include "../../proto/base.h"
#include "commands.h"
#include "topics.h"

#include <string.h>

/* Text that roff takes as it is meant: no character with a meaning of its own, none that becomes another one
 * (a hyphen, a curved quote). Newlines begin paragraphs. */
static void put(FILE *out, const char *text)
{
    static const char SPECIAL[] = "-\\~^`'";
    static const char *const WRITTEN[] = {"\\-", "\\e", "\\(ti", "\\(ha", "\\(ga", "\\(aq"};
    if (*text == '.')
        fputs("\\&", out);
    for (; *text; text++) {
        const char *special = strchr(SPECIAL, *text);
        if (*text == '\n')
            fputs("\n.PP\n", out);
        else if (special)
            fputs(WRITTEN[special - SPECIAL], out);
        else
            fputc(*text, out);
    }
}

/* Between two literals, in bold or, for a placeholder, in italics. */
static void put_font(FILE *out, const char *before, const char *text, const char *after, char font)
{
    fprintf(out, "%s\\f%c", before, font);
    put(out, text);
    fprintf(out, "\\fR%s", after);
}

static void put_field(FILE *out, const struct field *field)
{
    char notes[TOPIC_NOTES_BYTES], letter[2] = {field->letter, '\0'};
    fputs(".TP\n", out);
    if (field->letter)
        put_font(out, "\\fB\\-\\fR", letter, ", ", 'B');
    put_font(out, "\\fB\\-\\-\\fR", field->name, field->arg ? "" : "\n", 'B');
    if (field->arg)
        put_font(out, "=", field->arg, "\n", 'I');
    put(out, field->help);
    topic_notes(field, notes);
    if (*notes) {
        fputs(" [", out);
        put(out, notes);
        fputc(']', out);
    }
    fputc('\n', out);
}

static void put_options(FILE *out)
{
    fputs(".SH OPTIONS\n", out);
    for (int group = 0; group < GROUPS_N; group++) {
        fputs(".SS ", out);
        put(out, FIELD_GROUPS[group]);
        fputc('\n', out);
        for (size_t i = 0; i < FIELDS_N; i++) {
            if (FIELDS[i].group == (enum field_group)group)
                put_field(out, &FIELDS[i]);
        }
    }
    fputs(".SS Other\n"
          ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nAll of this as text.\n"
          ".TP\n\\fB\\-V\\fR, \\fB\\-\\-version\\fR\nThe version.\n",
          out);
}

static void put_commands(FILE *out)
{
    fputs(".SH COMMANDS\n", out);
    for (const struct command *command = COMMANDS; command->name; command++) {
        put_font(out, ".TP\n\\fBlaunch \\fR", command->name, " ", 'B');
        put_font(out, "", command->args, "\n", 'I');
        put(out, command->summary);
        fputc('\n', out);
    }
}

static void put_topics(FILE *out)
{
    fputs(".SH NOTES\n", out);
    for (size_t i = 0; i < TOPICS_N; i++) {
        if (!TOPICS[i].text)
            continue;
        put_font(out, ".SS ", TOPICS[i].title, "\n", 'B');
        put(out, TOPICS[i].text);
        fputc('\n', out);
    }
}

static void put_exit_codes(FILE *out)
{
    fputs(".SH \"EXIT STATUS\"\n", out);
    for (size_t i = 0; i < EXIT_ROWS_N; i++) {
        put_font(out, ".TP\n", EXIT_ROWS[i].code, "\n", 'B');
        put(out, EXIT_ROWS[i].text);
        fputc('\n', out);
    }
}

void man_print(FILE *out)
{
    fputs(".TH LAUNCH 1 \"\" \"launch " LAUNCH_RELEASE "\" \"User Commands\"\n"
          ".SH NAME\n"
          "launch \\- start and watch the workers of a multi\\-GPU job\n"
          ".SH SYNOPSIS\n"
          "\\fBlaunch\\fR [\\fIoptions\\fR] \\fIprogram\\fR [\\fIarguments\\fR]\n"
          ".PP\n"
          "\\fBlaunch\\fR \\fICOMMAND\\fR [\\fIarguments\\fR]\n"
          ".SH DESCRIPTION\n"
          "Starts the workers of a job on this server, gives each its rank and its GPU,\n"
          "watches over them, and brings the job back when one of them dies.\n"
          "It takes the options of torchrun and sets its variables.\n",
          out);
    put_commands(out);
    put_options(out);
    put_topics(out);
    put_exit_codes(out);
    fputs(".SH EXAMPLES\n"
          ".TP\n"
          "\\fBlaunch \\-\\-nproc\\-per\\-node=gpu train.py\\fR\n"
          "One worker per GPU.\n"
          ".TP\n"
          "\\fBlaunch \\-n 4 \\-\\-max\\-restarts=3 ./train \\-\\-lr 1\\fR\n"
          "Four workers, and up to 3 fresh starts.\n",
          out);
}
