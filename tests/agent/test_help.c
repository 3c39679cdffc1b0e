/* SPDX-License-Identifier: MIT */
/* --help, launch help TOPIC, the manual page and the completions. */
#include "../../agent/cmd/commands.h"
#include "../../agent/cmd/completion.h"
#include "../../agent/cmd/help.h"
#include "../../agent/cmd/man.h"
#include "../../agent/cmd/topics.h"
#include "../harness.h"

#include <stdio.h>

static void print_help(char *text, size_t size)
{
    FILE *out = fmemopen(text, size, "w");
    CHECK(out != NULL);
    help_print(out);
    CHECK_INT(ftell(out), <, size - 1); /* nothing was cut */
    CHECK_INT(fclose(out), ==, 0);
}

TEST(help_names_every_option_default_and_variable)
{
    char help[32768];
    print_help(help, sizeof help);
    CHECK(strncmp(help, "usage: launch ", 14) == 0);
    for (size_t i = 0; i < FIELDS_N; i++) {
        char flag[160];
        snprintf(flag, sizeof flag, "--%s%s%s", FIELDS[i].name, FIELDS[i].arg ? "=" : " ",
                 FIELDS[i].arg ? FIELDS[i].arg : "");
        CHECK_HAS(help, flag);
        const char *entry = strstr(help, flag);
        if (FIELDS[i].pet)
            CHECK_HAS(entry, FIELDS[i].pet);
        if (FIELDS[i].def && FIELDS[i].arg) {
            CHECK_HAS(entry, "[default");
            CHECK_HAS(entry, FIELDS[i].def);
        }
    }
    for (int group = 0; group < GROUPS_N; group++)
        CHECK_HAS(help, FIELD_GROUPS[group]);
    for (const struct command *command = COMMANDS; command->name; command++)
        CHECK_HAS(help, command->name);
    for (size_t i = 0; i < TOPICS_N; i++) {
        CHECK_HAS(help, TOPICS[i].name);
        CHECK_INT(strstr(help, TOPICS[i].title) != NULL, ==, !TOPICS[i].apart);
    }
    CHECK_HAS(help, "OMP_NUM_THREADS");
    CHECK_HAS(help, "-h, --help");
    CHECK_HAS(help, "-V, --version");
    CHECK_HAS(help, "\n  127  ");
}

TEST(help_fits_80_columns_and_holds_no_trailing_blanks)
{
    char help[32768];
    print_help(help, sizeof help);
    CHECK(strlen(help) > 1000);
    for (const char *line = help; *line;) {
        size_t n = strcspn(line, "\n");
        if (n > 80 || (n > 0 && line[n - 1] == ' ') || memchr(line, '\t', n))
            test_fail(__FILE__, __LINE__, "%.*s", (int)n, line);
        CHECK_INT(line[n], ==, '\n');
        line += n + 1;
    }
}

static bool topic(const char *name, char *text, size_t size, struct err *err)
{
    FILE *out = fmemopen(text, size, "w");
    CHECK(out != NULL);
    int r = help_print_topic(out, name, err);
    CHECK_INT(fclose(out), ==, 0);
    return r == 0;
}

TEST(there_is_help_on_every_topic_group_command_option_and_variable)
{
    char text[16384], word[TOPIC_BYTES], name[128], ours[FIELD_ENV_BYTES];
    struct err err;
    for (size_t i = 0; i < TOPICS_N; i++) {
        CHECK(topic(TOPICS[i].name, text, sizeof text, &err));
        CHECK_HAS(text, TOPICS[i].title);
    }
    for (int group = 0; group < GROUPS_N; group++) {
        CHECK(topic(topic_of_group(group, word), text, sizeof text, &err));
        CHECK_HAS(text, FIELD_GROUPS[group]);
    }
    for (const struct command *command = COMMANDS; command->name; command++) {
        CHECK(topic(command->name, text, sizeof text, &err));
        CHECK_HAS(text, "usage: launch ");
    }
    for (size_t i = 0; i < FIELDS_N; i++) {
        snprintf(name, sizeof name, "--%s", FIELDS[i].name);
        const char *const names[] = {FIELDS[i].name, name, field_env(&FIELDS[i], ours),
                                     FIELDS[i].pet};
        for (size_t n = 0; n < ARRAY_LEN(names) && names[n]; n++) {
            CHECK(topic(names[n], text, sizeof text, &err));
            CHECK_HAS(text, name);
            CHECK_INT(strstr(text, ours) != NULL, ==, FIELDS[i].group != GROUP_FILE);
        }
    }
    CHECK(topic("-n", text, sizeof text, &err));
    CHECK_HAS(text, "--nproc-per-node=");
    CHECK(topic("--nproc_per_node=4", text, sizeof text, &err));
    CHECK_HAS(text, "--nproc-per-node=");
}

TEST(no_group_of_options_lacks_a_topic_or_shares_one)
{
    char words[GROUPS_N][TOPIC_BYTES];
    for (int group = 0; group < GROUPS_N; group++) {
        CHECK(*topic_of_group(group, words[group]) != '\0');
        for (int other = 0; other < group; other++)
            CHECK(strcmp(words[group], words[other]) != 0);
    }
}

TEST(an_unknown_topic_gets_the_nearest)
{
    char text[16384];
    struct err err;
    CHECK(!topic("restrats", text, sizeof text, &err));
    CHECK_STR(err.text, "no help on 'restrats'; did you mean: launch help restarts?");
    CHECK(!topic("enviroment", text, sizeof text, &err));
    CHECK_HAS(err.text, "launch help environment?");
    CHECK(!topic("--max-restart", text, sizeof text, &err));
    CHECK_HAS(err.text, "launch help max-restarts?");
    CHECK(!topic("zebra\x1b[31m", text, sizeof text, &err));
    CHECK_STR(err.text, "no help on 'zebra\\x1b[31m'; launch help lists all there is");
    CHECK(!topic("", text, sizeof text, &err));
    CHECK(!topic("-", text, sizeof text, &err));
    CHECK(!topic("--", text, sizeof text, &err));
}

TEST(the_manual_page_has_every_option_and_only_requests_that_are_known)
{
    static const char *const KNOWN[] = {"TH", "SH", "SS", "TP", "PP"};
    char text[65536], flag[160];
    FILE *out = fmemopen(text, sizeof text, "w");
    man_print(out);
    CHECK_INT(ftell(out), <, sizeof text - 1);
    CHECK_INT(fclose(out), ==, 0);
    CHECK(strncmp(text, ".TH LAUNCH 1 ", 13) == 0);
    for (size_t i = 0; i < FIELDS_N; i++) {
        size_t n = (size_t)snprintf(flag, sizeof flag, "\\fB\\-\\-\\fR\\fB");
        for (const char *c = FIELDS[i].name; *c; c++)
            n += (size_t)snprintf(flag + n, sizeof flag - n, *c == '-' ? "\\-" : "%c", *c);
        CHECK_HAS(text, flag);
    }
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        if (*line != '.' && *line != '\'')
            continue;
        bool known = false;
        for (size_t i = 0; i < ARRAY_LEN(KNOWN); i++)
            known |= strncmp(line + 1, KNOWN[i], 2) == 0 && (line[3] == ' ' || line[3] == '\n');
        if (!known)
            test_fail(__FILE__, __LINE__, "%.40s", line);
    }
}

TEST(every_completion_has_every_option_and_command)
{
    static void (*const PRINT[])(FILE *) = {completion_print_bash, completion_print_zsh,
                                            completion_print_fish};
    for (size_t shell = 0; shell < ARRAY_LEN(PRINT); shell++) {
        char text[65536], flag[160];
        FILE *out = fmemopen(text, sizeof text, "w");
        PRINT[shell](out);
        CHECK_INT(ftell(out), <, sizeof text - 1);
        CHECK_INT(fclose(out), ==, 0);
        for (size_t i = 0; i < FIELDS_N; i++) {
            snprintf(flag, sizeof flag, shell == 2 ? "-l %s" : "--%s", FIELDS[i].name);
            CHECK_HAS(text, flag);
        }
        for (const struct command *command = COMMANDS; command->name; command++)
            CHECK_HAS(text, command->name);
    }
}
