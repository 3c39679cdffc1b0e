/* SPDX-License-Identifier: MIT */
/* argv to subcommand; no decisions. */
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
    return cmd_run(argc, argv);
}
