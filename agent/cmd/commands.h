/* SPDX-License-Identifier: MIT */
/* The one table of subcommands. The first word of the command line is looked up in it; anything else starts a
 * job. A program of the same name is run as `launch ./topo` or `launch -- topo`. */
#ifndef LAUNCH_AGENT_CMD_COMMANDS_H
#define LAUNCH_AGENT_CMD_COMMANDS_H

#include <stdio.h>

struct command {
    const char *name;    /* NULL ends the table */
    const char *args;    /* placeholders for --help; "" for none */
    const char *summary; /* for --help: one line */
    /* argv[0] is the subcommand's name. Returns the exit code of the launcher. */
    int (*run)(int argc, char **argv);
    void (*help)(FILE *out); /* NULL: usage, summary and details are enough */
    const char *details;     /* operands, options and exit codes */
};

extern const struct command COMMANDS[];

/* NULL: no subcommand of that name. */
const struct command *command_find(const char *name);

/* "launch status RUN [--json]"; returns buf. */
#define COMMAND_TITLE_BYTES 128
const char *command_title(const struct command *command, char buf[COMMAND_TITLE_BYTES]);

/* Prints what `launch NAME --help` and `launch help NAME` show. */
void command_help(FILE *out, const struct command *command);

#endif
