/* SPDX-License-Identifier: MIT */
#include "tool.h"

#include "../../proto/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

/* A session of its own, so that all it starts can be ended with it. */
static int start(const char *const argv[], int out_fd, pid_t *ret)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out_fd, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, out_fd, STDERR_FILENO);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID);
    int rc = posix_spawnp(ret, argv[0], &files, &how, (char *const *)argv, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return -rc;
}

ssize_t tool_ask(const char *const argv[], unsigned ms, char *text, size_t size)
{
    uint64_t until_ns = clock_deadline_ns(ms), now;
    int ends[2];
    pid_t pid;
    size_t used = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    AUTO_FD in = ends[0], out = ends[1];
    int rc = start(argv, out, &pid);
    if (rc < 0)
        return rc;
    close_fd(&out);
    while (used < size - 1 && (now = clock_now_ns()) < until_ns) {
        struct pollfd p = {.fd = in, .events = POLLIN};
        if (poll(&p, 1, (int)((until_ns - now) / NS_PER_MS) + 1) <= 0)
            continue;
        ssize_t n = read(in, text + used, size - 1 - used);
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    text[used] = '\0';
    kill(-pid, SIGKILL); /* not reaped yet: the number is its group's */
    waitpid(pid, NULL,
            WNOHANG); /* else whoever reaps orphans does: it may be in the kernel for long */
    return (ssize_t)used;
}
