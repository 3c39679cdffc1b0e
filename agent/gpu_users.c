/* SPDX-License-Identifier: MIT */
#include "gpu_users.h"

#include "../proto/clock.h"
#include "nvml.h"
#include "nvml_lib.h"
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

/* What the helper process does (nvml.h), about which GPUs or instances. */
struct errand {
    void (*helper)(int fd, const char *sysroot, const char *const *name, unsigned n);
    const char *sysroot;
    const char *name[GPU_MAX];
    unsigned n;
};

static _Noreturn void be_helper(const struct errand *errand, int fd, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < HELPER_FD; i++)
        dup2(null_fd, i);
    dup2(fd, HELPER_FD);
    syscall(SYS_close_range, HELPER_FD + 1u, ~0u, 0);
    errand->helper(HELPER_FD, errand->sysroot, errand->name, errand->n);
    _exit(0);
}

static int spawn(const struct errand *errand, int *ret_fd, int *ret_pidfd, pid_t *ret_pid)
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
        be_helper(errand, write_end, self);
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

int gpu_users_spawn(void (*helper)(int fd, const char *sysroot, const char *const *pci, unsigned n),
                    const char *sysroot, const char *const *pci, unsigned n, int *ret_fd,
                    int *ret_pidfd, pid_t *ret_pid)
{
    struct errand errand = {.helper = helper, .sysroot = sysroot, .n = n};
    for (unsigned i = 0; i < n; i++)
        errand.name[i] = pci[i];
    return spawn(&errand, ret_fd, ret_pidfd, ret_pid);
}

bool gpu_users_none(const char *sysroot)
{
    long long users;
    return sysfile_number(&users, sysroot, "/sys/module/nvidia_uvm/refcnt") == 0 && users == 0;
}

/* Hands on what the helper says up to its "end", line by line. take: 0, or -ENODEV: that is no answer. */
static int read_lines(int fd, int (*take)(void *user, const char *line), void *user)
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
        if (strcmp(text, "end") == 0)
            return 0;
        int rc = take(user, text);
        if (rc < 0)
            return rc;
    }
}

static int run(const struct errand *errand, int (*take)(void *user, const char *line), void *user)
{
    AUTO_FD fd = -1;
    AUTO_FD pidfd = -1;
    pid_t pid = 0;
    int rc = spawn(errand, &fd, &pidfd, &pid);
    if (rc < 0)
        return rc;
    rc = read_lines(fd, take, user);
    syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    /* One that hangs in the driver might never go: init or the guard reaps it. */
    if (rc != -ETIMEDOUT)
        waitpid(pid, NULL, 0);
    return rc;
}

/* ---- processes ---- */

struct asking {
    const struct gpu_list *list;
    struct gpu_users *users;
    int *parent;
};

static int take_user(void *user, const char *line)
{
    const struct asking *a = user;
    unsigned index, pid;
    unsigned long long bytes;
    if (sscanf(line, "use %9u %9u %19llu", &index, &pid, &bytes) != 3)
        return -ENODEV;
    if (index < a->list->n && a->users->n < GPU_USERS_MAX)
        a->users->user[a->users->n++] =
            (struct gpu_user){.gpu = index, .pid = (pid_t)pid, .bytes = bytes};
    return 0;
}

int gpu_users_read(struct gpu_users *users, const char *sysroot, const struct gpu_list *list)
{
    struct errand errand = {.helper = nvml_helper, .sysroot = sysroot, .n = list->n};
    struct asking asking = {.list = list, .users = users};
    users->n = 0;
    if (list->vendor != GPU_NVIDIA || gpu_users_none(sysroot))
        return 0;
    for (unsigned i = 0; i < list->n; i++)
        errand.name[i] = list->gpu[i].pci;
    int rc = run(&errand, take_user, &asking);
    if (rc < 0)
        users->n = 0;
    return rc;
}

/* ---- MIG instances ---- */

static int take_parent(void *user, const char *line)
{
    const struct asking *a = user;
    unsigned index;
    char pci[NVML_ADDRESS_BYTES];
    if (sscanf(line, "mig %9u %15s", &index, pci) != 2 || index >= GPU_MAX)
        return -ENODEV;
    for (unsigned i = 0; i < a->list->n; i++)
        if (strcmp(a->list->gpu[i].pci, pci) == 0)
            a->parent[index] = (int)i;
    return 0;
}

int gpu_users_find_mig(int parent[GPU_MAX], const char *sysroot, const struct gpu_list *list,
                       const char *const *name, unsigned n)
{
    struct errand errand = {.helper = nvml_mig_helper, .sysroot = sysroot, .n = n};
    struct asking asking = {.list = list, .parent = parent};
    for (unsigned i = 0; i < GPU_MAX; i++)
        parent[i] = -1;
    for (unsigned i = 0; i < n; i++)
        errand.name[i] = name[i];
    return n ? run(&errand, take_parent, &asking) : 0;
}
