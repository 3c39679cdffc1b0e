/* SPDX-License-Identifier: MIT */
#include "detach.h"

#include "../proto/base.h"
#include "../proto/status.h"
#include "log.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static int open_console(const char *dir)
{
    char path[PATH_MAX + sizeof DETACH_CONSOLE + 1];
    if (!dir)
        return open("/dev/null", O_WRONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "%s/%s", dir, DETACH_CONSOLE);
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static int wait_for_start(int fd, pid_t pid, const char *run_id, const char *dir)
{
    char byte;
    ssize_t n;
    do
        n = read(fd, &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n == 1) {
        printf("%s\n", run_id);
        return fflush(stdout) == 0 ? EXIT_CODE_OK : EXIT_CODE_OURS;
    }
    siginfo_t info = {0};
    log_error("the job could not be started; see %s/" DETACH_CONSOLE, dir ? dir : "(--log-dir)");
    if (waitid(P_PID, (id_t)pid, &info, WEXITED) == 0 && info.si_code == CLD_EXITED &&
        info.si_status)
        return info.si_status;
    return EXIT_CODE_OURS;
}

int detach(const char *run_id, const char *dir, int *ret_started_fd)
{
    AUTO_FD console = open_console(dir);
    AUTO_FD null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int ends[2] = {-1, -1};
    if (console < 0 || null_fd < 0 || pipe2(ends, O_CLOEXEC) < 0) {
        log_error("--detach: %s: %s", dir ? dir : "/dev/null", strerror(errno));
        return EXIT_CODE_OURS;
    }
    AUTO_FD reader = ends[0], writer = ends[1];
    pid_t pid = fork();
    if (pid < 0) {
        log_error("--detach: fork: %s", strerror(errno));
        return EXIT_CODE_OURS;
    }
    if (pid > 0) {
        close_fd(&writer);
        return wait_for_start(reader, pid, run_id, dir);
    }
    setsid();
    dup2(null_fd, STDIN_FILENO);
    dup2(console, STDOUT_FILENO);
    dup2(console, STDERR_FILENO);
    *ret_started_fd = take_fd(&writer);
    return -1;
}
