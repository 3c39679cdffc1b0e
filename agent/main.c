/* SPDX-License-Identifier: MIT */
/* argv to subcommand; no decisions. */
#include "../proto/status.h"
#include "cmd/commands.h"
#include "cmd/run.h"
#include "log.h"
#include "room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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

/* What a command showed on a full disk was not shown: 0 would be a lie. */
static int check_stdout(int exit_code)
{
    bool failed = fflush(stdout) != 0 || ferror(stdout);
    if (!failed || exit_code)
        return exit_code;
    log_error("stdout: %s", strerror(errno));
    return EXIT_CODE_OURS;
}

static int run(int argc, char **argv)
{
    const struct command *command = argc > 1 ? command_find(argv[1]) : NULL;
    return check_stdout(command ? command->run(argc - 1, argv + 1) : cmd_run(argc, argv));
}

int main(int argc, char **argv)
{
    fill_standard_streams();
    room_run(run, argc, argv);
}
