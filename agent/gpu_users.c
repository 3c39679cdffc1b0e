/* SPDX-License-Identifier: MIT */
#include "gpu_users.h"

#include "../proto/clock.h"
#include "nvml.h"
#include "syscalls.h"
#include "sysfile.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define HELPER_FD 3
#define LIMIT_MS 5000

static _Noreturn void be_helper(const char *sysroot, const char *const *pci, unsigned n, int fd,
                                pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < HELPER_FD; i++)
        dup2(null_fd, i);
    dup2(fd, HELPER_FD);
    syscall(SYS_close_range, HELPER_FD + 1u, ~0u, 0);
    nvml_helper(HELPER_FD, sysroot, pci, n);
}

int gpu_users_spawn(const char *sysroot, const char *const *pci, unsigned n, int *ret_fd,
                    int *ret_pidfd, pid_t *ret_pid)
{
    int ends[2];
    pid_t self = getpid();
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    AUTO_FD read_end = ends[0];
    AUTO_FD write_end = ends[1];
    fcntl(write_end, F_SETFL, 0);
    pid_t pid = fork();
    if (pid == 0)
        be_helper(sysroot, pci, n, write_end, self);
    if (pid < 0)
        return -errno;
    *ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (*ret_pidfd < 0) {
        int error = errno;
        kill(pid, SIGKILL); /* not reaped yet */
        waitpid(pid, NULL, 0);
        return -error;
    }
    *ret_fd = take_fd(&read_end);
    *ret_pid = pid;
    return 0;
}

bool gpu_users_none(const char *sysroot)
{
    long long users;
    return sysfile_number(&users, sysroot, "/sys/module/nvidia_uvm/refcnt") == 0 && users == 0;
}

/* 1: the list is complete; 0: go on; -ENODEV. */
static int take_line(struct gpu_users *users, const char *line, unsigned gpus)
{
    unsigned index, pid;
    unsigned long long bytes;
    if (strcmp(line, "end") == 0)
        return 1;
    if (sscanf(line, "use %9u %9u %19llu", &index, &pid, &bytes) != 3)
        return -ENODEV;
    if (index < gpus && users->n < GPU_USERS_MAX)
        users->user[users->n++] =
            (struct gpu_user){.gpu = index, .pid = (pid_t)pid, .bytes = bytes};
    return 0;
}

static int read_list(struct gpu_users *users, int fd, unsigned gpus)
{
    char text[256];
    size_t used = 0;
    uint64_t deadline = clock_deadline_ns(LIMIT_MS);
    for (;;) {
        uint64_t now = clock_now_ns();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (now >= deadline || poll(&p, 1, (int)((deadline - now) / NS_PER_MS) + 1) == 0)
            return -ETIMEDOUT;
        ssize_t n = read(fd, text + used, 1);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n <= 0 || used + 1 == sizeof text)
            return -ENODEV;
        if (text[used++] != '\n')
            continue;
        text[used - 1] = '\0';
        used = 0;
        int rc = take_line(users, text, gpus);
        if (rc)
            return rc < 0 ? rc : 0;
    }
}

int gpu_users_read(struct gpu_users *users, const char *sysroot, const struct gpu_list *list)
{
    const char *pci[GPU_MAX];
    AUTO_FD fd = -1;
    AUTO_FD pidfd = -1;
    pid_t pid = 0;
    users->n = 0;
    if (list->vendor != GPU_NVIDIA || gpu_users_none(sysroot))
        return 0;
    for (unsigned i = 0; i < list->n; i++)
        pci[i] = list->gpu[i].pci;
    int rc = gpu_users_spawn(sysroot, pci, list->n, &fd, &pidfd, &pid);
    if (rc < 0)
        return rc;
    rc = read_list(users, fd, list->n);
    syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    if (rc !=
        -ETIMEDOUT) /* one that hangs in the driver might never go; init or the guard reaps it */
        waitpid(pid, NULL, 0);
    if (rc < 0)
        users->n = 0;
    return rc;
}
