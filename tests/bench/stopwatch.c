/* SPDX-License-Identifier: MIT */
/* stopwatch ROUNDS LIMIT_MS program arguments: runs the program so often, one run after the other, and
 * prints "NANOSECONDS EXIT_CODE" for each, from before the spawn to after the wait; "0 hang" for one that had
 * not ended by the limit, which is killed with its process group. Its stdin and stdout are /dev/null. */
#include "../../proto/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void die(const char *what, int error)
{
    fprintf(stderr, "stopwatch: %s: %s\n", what, strerror(error));
    exit(2);
}

static void run(char **argv, int limit_ms, const posix_spawn_file_actions_t *files,
                const posix_spawnattr_t *attr)
{
    pid_t pid;
    uint64_t start = clock_now_ns();
    int error = posix_spawnp(&pid, argv[0], files, attr, argv, environ);
    if (error)
        die(argv[0], error);
    struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    if (end.fd < 0)
        die("pidfd_open", errno);
    bool hangs = poll(&end, 1, limit_ms) <= 0;
    if (hangs)
        kill(-pid, SIGKILL);
    close(end.fd);
    int status;
    waitpid(pid, &status, 0);
    uint64_t ns = clock_now_ns() - start;
    if (hangs)
        printf("0 hang\n");
    else
        printf("%llu %d\n", (unsigned long long)ns,
               WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: stopwatch ROUNDS LIMIT_MS program [arguments]\n");
        return 2;
    }
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
    for (int i = atoi(argv[1]); i > 0; i--)
        run(argv + 3, atoi(argv[2]), &files, &attr);
    return 0;
}
