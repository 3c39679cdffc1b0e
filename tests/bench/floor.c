/* SPDX-License-Identifier: MIT */
/* floor spawn|fork N program arguments: the least that starting N processes and waiting for them can cost. What the
 * launcher's start is compared with. posix_spawn() copies no page tables but waits for each exec, which on a busy machine
 * costs more than it saves: hence both. */
#include <errno.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* 0 or an errno. */
static int start(bool forks, pid_t *ret, char **argv)
{
    if (!forks)
        return posix_spawn(ret, argv[0], NULL, NULL, argv, environ);
    *ret = fork();
    if (*ret == 0) {
        execve(argv[0], argv, environ);
        _exit(127);
    }
    return *ret < 0 ? errno : 0;
}

int main(int argc, char **argv)
{
    int n = argc > 3 ? atoi(argv[2]) : 0;
    if (n < 1 || n > 4096) {
        fprintf(stderr, "usage: floor spawn|fork N program [arguments]\n");
        return 2;
    }
    pid_t pids[n];
    for (int i = 0; i < n; i++) {
        int error = start(strcmp(argv[1], "fork") == 0, &pids[i], argv + 3);
        if (error) {
            fprintf(stderr, "floor: %s: %s\n", argv[3], strerror(error));
            return 2;
        }
    }
    int failed = 0;
    for (int i = 0; i < n; i++) {
        int status;
        waitpid(pids[i], &status, 0);
        failed |= status != 0;
    }
    return failed;
}
