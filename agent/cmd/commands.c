/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include "../bench/ask.h"
#include "bench.h"
#include "check.h"
#include "control.h"
#include "doctor.h"
#include "gpus.h"
#include "help.h"
#include "topo.h"

#include <stddef.h>
#include <string.h>

#define WHICH_JOB                                                                                  \
    "RUN is a run id or a --name, or the beginning of one that no other job has\n"                 \
    "(launch ps).\n"
#define REFUSED "2 wrong words, no such job, or it refuses"

/* clang-format off */
const struct command COMMANDS[] = {
    {"help", "[TOPIC]", "About an option, a group of options, a command or a topic.", cmd_help, NULL,
     "Without a topic: everything, as launch --help.\n"
     "\n"
     "  --man                   the manual page\n"
     "  --bash, --zsh, --fish   completion for that shell (launch help completion)\n"},
    {"topo", "[--matrix | --transports | --p2p=r|w|n|a|p | --format=FORMAT]",
     "The GPUs, NICs and CPUs of this server and how they are connected.", cmd_topo, topo_help, NULL},
    {"check", "[--timeout=TIME] [--json] [options of launch]",
     "Whether NCCL works between the GPUs of this server; if not, what is broken.", cmd_check, check_help, NULL},
    {"bench", "[COLLECTIVE] [-b SIZE -e SIZE ...]",
     "Measures how fast the GPUs reach one another, as nccl-tests does.", cmd_bench, ask_print_help, NULL},
    {"doctor", "[RUN | --log FILE] [--json]",
     "What is wrong with this machine, a running job, or one that left a log.", cmd_doctor, doctor_help, NULL},
    {"ps", "[--json]", "Lists the jobs that run now.", cmd_ps, NULL,
     "  --json  a list of objects, for programs\n"},
    {"status", "RUN [--rank R] [--json] [--watch]", "What each rank of a running job does.", cmd_status, NULL,
     WHICH_JOB
     "\n"
     "  -r, --rank=R  this rank alone\n"
     "  --json        one object, for programs\n"
     "  -w, --watch   again and again, until the job ends\n"
     "\n"
     "Exit code: 0; " REFUSED ".\n"},
    {"logs", "RUN [--rank R] [-f]", "What the workers of a running job have written.", cmd_logs, NULL,
     WHICH_JOB
     "\n"
     "  -r, --rank=R  this rank alone\n"
     "  -f, --follow  goes on with what they write, until the job ends\n"
     "\n"
     "Exit code: 0; " REFUSED ".\n"},
    {"attach", "RUN", "Follows a job of --detach until it ends; Ctrl-C only stops following.", cmd_attach, NULL,
     WHICH_JOB
     "\n"
     "Exit code: the job's; " REFUSED ".\n"},
    {"stop", "RUN [--now]", "Ends a running job, as SIGTERM to launch does, and waits for its end.", cmd_stop, NULL,
     WHICH_JOB
     "\n"
     "  --now  SIGKILL at once\n"
     "\n"
     "Exit code: 0 it has ended; " REFUSED ".\n"},
    {"restart", "RUN [--rank R]", "Starts all ranks again; rank R is killed at once.", cmd_restart, NULL,
     WHICH_JOB
     "\n"
     "  -r, --rank=R  that rank, as it may hang, is given no time to end\n"
     "\n"
     "Exit code: 0 it has been asked to; " REFUSED ".\n"},
    {"grow", "RUN [--rank R]", "Ranks that a job of --on-failure=shrink has lost come back.", cmd_grow, NULL,
     WHICH_JOB
     "\n"
     "  -r, --rank=R  this rank alone\n"
     "\n"
     "Exit code: 0 it has been asked to; " REFUSED ".\n"},
    {"signal", "RUN SIGNAL [--rank R]", "Sends a signal to the workers of a running job.", cmd_signal, NULL,
     WHICH_JOB
     "SIGNAL: USR1, SIGUSR1 or 10.\n"
     "\n"
     "  -r, --rank=R  to this rank alone\n"
     "\n"
     "Exit code: 0 it was sent; " REFUSED ".\n"},
    {"gpus", "[--json] [--clear[=LIST]] [--lease-dir DIR]",
     "Who has which GPU of this server; --clear ends the quarantine of faulty ones.", cmd_gpus, NULL,
     "  --json           one object, for programs\n"
     "  --clear[=LIST]   ends the quarantine of all, or of these: 2, 0-1,3\n"
     "  --lease-dir=DIR  where the jobs' --lease-dir is\n"},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
/* clang-format on */

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
    if (command->help)
        command->help(out);
    else
        fprintf(out, "usage: %s\n\n%s\n\n%s", command_title(command, title), command->summary,
                command->details);
}
