/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include "help.h"
#include "topo.h"

#include <stddef.h>
#include <string.h>

const struct command COMMANDS[] = {
    {"help", "[TOPIC]", "About an option, a group of options, a command or a topic.", cmd_help},
    {"topo", "[--format=text|json|xml|svg|dot] [--p2p=r|w|n|a|p]",
     "The GPUs, NICs and CPUs of this server and how they are connected.", cmd_topo},
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
