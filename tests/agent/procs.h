/* SPDX-License-Identifier: MIT */
/* Real processes for the tests of spawn, rank, tree, group and attempt: shell scripts as workers, what they
 * wrote, pipes whose end of file says that nobody lives any more, and kernels that lack something. */
#ifndef LAUNCH_TESTS_AGENT_PROCS_H
#define LAUNCH_TESTS_AGENT_PROCS_H

#include "../../agent/spawn.h"
#include "../harness.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 8000

extern char **environ;

/* A request to run `sh -c script`, stdout into a memfd. Valid until the next call. */
static inline struct spawn_request *shell(const char *script)
{
    static char *argv[4];
    static struct spawn_inherited inherited;
    static struct spawn_request request;
    static char text[4096];

    snprintf(text, sizeof text, "%s", script);
    argv[0] = "sh", argv[1] = "-c", argv[2] = text;
    spawn_inherited_read(&inherited);
    request = (struct spawn_request){.file = "/bin/sh",
                                     .argv = argv,
                                     .envp = environ,
                                     .stdio = {-1, memfd_create("out", MFD_CLOEXEC), -1},
                                     .keep_fd = {-1, -1},
                                     .inherited = &inherited};
    /* Several write to it at once, and a memfd's position is not guarded against that as a file's is. */
    fcntl(request.stdio[1], F_SETFL, O_APPEND);
    return &request;
}

/* What was written to a memfd, without the last newline. Valid until the next call. */
static inline const char *written(int fd)
{
    static char text[4096];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    CHECK(n >= 0);
    text[n] = '\0';
    if (n && text[n - 1] == '\n')
        text[n - 1] = '\0';
    return text;
}

/* Reads one byte (1), the end of file (0); fails the test if neither comes. */
static inline int await_byte(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char byte;
    if (poll(&p, 1, PATIENCE_MS) != 1)
        test_fail(__FILE__, __LINE__, "nothing came through descriptor %d", fd);
    return (int)read(fd, &byte, 1);
}

/* Reaps a child: its exit code, or 1000 + the signal that killed it. */
static inline int ended(pid_t pid)
{
    int status = 0;
    CHECK_INT(waitpid(pid, &status, 0), ==, pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* From here on these system calls fail with ENOSYS; as in a sandbox that does not know them. */
static inline void refuse(long first, long second)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)first, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)second, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        test_skip("no seccomp filters here");
}

#endif
