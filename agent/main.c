/* SPDX-License-Identifier: MIT */
/* argv to subcommand; no decisions. */
#include "cmd/commands.h"
#include "cmd/run.h"

#include <fcntl.h>
#include <unistd.h>

/* Whoever started us with a standard stream closed must not get one of our own files in its place. */
static void fill_standard_streams(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

int main(int argc, char **argv)
{
    fill_standard_streams();
    const struct command *command = argc > 1 ? command_find(argv[1]) : NULL;
    return command ? command->run(argc - 1, argv + 1) : cmd_run(argc, argv);
}
