/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include "help.h"

#include <stddef.h>
#include <string.h>

const struct command COMMANDS[] = {
    {"help", "[TOPIC]", "About an option, a group of options, a command or a topic.", cmd_help},
    {NULL, NULL, NULL, NULL},
};

const struct command *command_find(const char *name)
{
    for (const struct command *command = COMMANDS; command->name; command++) {
        if (strcmp(command->name, name) == 0)
            return command;
    }
    return NULL;
}
