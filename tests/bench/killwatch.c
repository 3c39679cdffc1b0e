/* SPDX-License-Identifier: MIT */
/* killwatch end|again N FIFO LIMIT_MS launcher arguments: starts a launcher whose N workers write their pid and a newline into
 * FIFO, kills one of them by SIGKILL, and tells how long the rest took, in ns after the kill:
 *   end:   "OTHERS LAUNCHER", when the last of the other workers and the launcher had ended;
 *   again: "RUNNING", when N new workers had written their pids. The launcher is ended by SIGTERM then.
 * Every process is watched through a pidfd of ours. */
#include "../../proto/base.h"
#include "../../proto/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define WORKERS_MAX 512
#define SETTLE_MS 150 /* the workers reach their waiting place, the machine comes to rest */

extern char **environ;

static pid_t launcher;
static uint64_t limit_ns; /* deadline */

static void give_up(const char *what)
{
    fprintf(stderr, "killwatch: %s\n", what);
    if (launcher > 0)
        kill(-launcher, SIGKILL);
    exit(3);
}

static int ms_left(void)
{
    uint64_t now = clock_now_ns();
    if (now >= limit_ns)
        give_up("the limit passed");
    return (int)((limit_ns - now) / NS_PER_MS) + 1;
}

/* Reads n pids, a line each. */
static void read_pids(int fifo, unsigned n, pid_t *pids)
{
    unsigned got = 0;
    long pid = 0;
    while (got < n) {
        struct pollfd p = {.fd = fifo, .events = POLLIN};
        if (poll(&p, 1, ms_left()) <= 0)
            continue;
        char text[512];
        ssize_t bytes = read(fifo, text, sizeof text);
        for (ssize_t i = 0; i < bytes && got < n; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
            } else {
                if (pid <= 1)
                    give_up("a worker wrote no pid");
                pids[got++] = (pid_t)pid;
                pid = 0;
            }
        }
    }
}

static int watch(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        give_up("a process was gone before the kill");
    return fd;
}

/* Until all of them have ended; the times in ended_ns. */
static void await_ends(struct pollfd *p, unsigned n, uint64_t *ended_ns)
{
    for (unsigned left = n; left > 0;) {
        if (poll(p, n, ms_left()) <= 0)
            continue;
        uint64_t now = clock_now_ns();
        for (unsigned i = 0; i < n; i++) {
            if (p[i].fd < 0 || !p[i].revents)
                continue;
            ended_ns[i] = now;
            p[i].fd = -1;
            left--;
        }
    }
}

static void measure_end(unsigned n, const pid_t *pids)
{
    static struct pollfd p[WORKERS_MAX + 1];
    static uint64_t ended_ns[WORKERS_MAX + 1];
    for (unsigned i = 0; i < n; i++)
        p[i] = (struct pollfd){.fd = watch(pids[i]), .events = POLLIN};
    p[n] = (struct pollfd){.fd = watch(launcher), .events = POLLIN};
    uint64_t start = clock_now_ns(), last = start;
    kill(pids[n / 2], SIGKILL);
    await_ends(p, n + 1, ended_ns);
    for (unsigned i = 0; i < n; i++)
        last = ended_ns[i] > last ? ended_ns[i] : last;
    printf("%llu %llu\n", (unsigned long long)(last - start),
           (unsigned long long)(ended_ns[n] - start));
}

static void measure_again(int fifo, unsigned n, pid_t *pids)
{
    uint64_t start = clock_now_ns();
    kill(pids[n / 2], SIGKILL);
    read_pids(fifo, n, pids);
    printf("%llu\n", (unsigned long long)(clock_now_ns() - start));
    kill(launcher, SIGTERM);
}

/* Quiet on both streams: the failure reports are not what is measured here. */
static void start(char **argv)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
    int error = posix_spawnp(&launcher, argv[0], &files, &attr, argv, environ);
    if (error) {
        fprintf(stderr, "killwatch: %s: %s\n", argv[0], strerror(error));
        exit(2);
    }
}

int main(int argc, char **argv)
{
    unsigned n = argc > 5 ? (unsigned)atoi(argv[2]) : 0;
    if (n < 1 || n > WORKERS_MAX ||
        (strcmp(argv[1], "end") != 0 && strcmp(argv[1], "again") != 0)) {
        fprintf(stderr, "usage: killwatch end|again N FIFO LIMIT_MS launcher [arguments]\n");
        return 2;
    }
    int fifo = open(argv[3], O_RDWR | O_CLOEXEC); /* both ways: the workers' open never waits */
    if (fifo < 0) {
        fprintf(stderr, "killwatch: %s: %s\n", argv[3], strerror(errno));
        return 2;
    }
    limit_ns = clock_deadline_ns((uint64_t)atoi(argv[4]));
    start(argv + 5);
    pid_t pids[WORKERS_MAX];
    read_pids(fifo, n, pids);
    poll(NULL, 0, SETTLE_MS);
    if (strcmp(argv[1], "end") == 0)
        measure_end(n, pids);
    else
        measure_again(fifo, n, pids);
    struct pollfd end = {.fd = watch(launcher), .events = POLLIN};
    await_ends(&end, 1, &(uint64_t){0});
    waitpid(launcher, NULL, 0);
    return 0;
}
