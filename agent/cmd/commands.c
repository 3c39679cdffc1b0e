/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include "check.h"
#include "bench.h"
#include "control.h"
#include "doctor.h"
#include "gpus.h"
#include "help.h"
#include "topo.h"

#include <stddef.h>
#include <string.h>

const struct command COMMANDS[] = {
    {"help", "[TOPIC]", "About an option, a group of options, a command or a topic.", cmd_help},
    {"topo", "[--matrix | --transports | --p2p=r|w|n|a|p | --format=FORMAT]",
     "The GPUs, NICs and CPUs of this server and how they are connected.", cmd_topo},
    {"check", "[--timeout=TIME] [--json] [options of launch]",
     "Whether NCCL works between the GPUs of this server; if not, what is broken.", cmd_check},
    {"bench", "[COLLECTIVE] [-b SIZE -e SIZE ...]",
     "Measures how fast the GPUs reach one another, as nccl-tests does.", cmd_bench},
    {"doctor", "[RUN | --log FILE] [--json]",
     "What is wrong with this machine, a running job, or one that left a log.", cmd_doctor},
    {"ps", "[--json]", "Lists the jobs that run now.", cmd_ps},
    {"status", "RUN [--rank R] [--json] [--watch]", "What each rank of a running job does.",
     cmd_status},
    {"logs", "RUN [--rank R] [-f]", "What the workers of a running job have written.", cmd_logs},
    {"attach", "RUN", "Follows a job of --detach until it ends; Ctrl-C only stops following.",
     cmd_attach},
    {"stop", "RUN [--now]", "Ends a running job, as SIGTERM to launch does, and waits for its end.",
     cmd_stop},
    {"restart", "RUN [--rank R]", "Starts all ranks again; rank R is killed at once.", cmd_restart},
    {"grow", "RUN [--rank R]", "Ranks that a job of --on-failure=shrink has lost come back.",
     cmd_grow},
    {"signal", "RUN SIGNAL [--rank R]", "Sends a signal to the workers of a running job.",
     cmd_signal},
    {"gpus", "[--json] [--clear[=LIST]] [--lease-dir DIR]",
     "Who has which GPU of this server; --clear ends the quarantine of faulty ones.", cmd_gpus},
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

const char *command_title(const struct command *command, char buf[COMMAND_TITLE_BYTES])
{
    snprintf(buf, COMMAND_TITLE_BYTES, "launch %s%s%s", command->name, *command->args ? " " : "",
             command->args);
    return buf;
}

void command_help(FILE *out, const struct command *command)
{
    char title[COMMAND_TITLE_BYTES];
    fprintf(out, "usage: %s\n\n%s\n", command_title(command, title), command->summary);
}
