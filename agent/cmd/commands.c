/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <stddef.h>
#include <string.h>

const struct command COMMANDS[] = {
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
