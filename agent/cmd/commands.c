/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include "gpus.h"

#include <stddef.h>
#include <string.h>

const struct command COMMANDS[] = {
    {"gpus", "[--json]", "who has which GPU of this server", cmd_gpus},
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
