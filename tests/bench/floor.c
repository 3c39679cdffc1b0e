/* SPDX-License-Identifier: MIT */
/* floor N program arguments: the least that starting N processes and waiting for them can cost. What
 * the launcher's start is compared with. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

int main(int argc, char **argv)
{
    int n = argc > 2 ? atoi(argv[1]) : 0;
    if (n < 1 || n > 4096) {
        fprintf(stderr, "usage: floor N program [arguments]\n");
        return 2;
    }
    pid_t pids[n];
    for (int i = 0; i < n; i++) {
        int error = posix_spawn(&pids[i], argv[2], NULL, NULL, argv + 2, environ);
        if (error) {
            fprintf(stderr, "floor: %s: %s\n", argv[2], strerror(error));
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
