/* SPDX-License-Identifier: MIT */
#include "spawn.h"

#include "../proto/status.h"
#include "program.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum gate { GATE_SHUT, GATE_OPEN, GATE_AWAY };

struct spawn_group {
    _Atomic uint32_t gate; /* futex */
    unsigned n;
    size_t bytes;
    struct spawn_record record[];
};

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif

/* struct clone_args of Linux 5.7, which older headers lack the end of. */
struct clone_request {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
        set_tid_size, cgroup;
};

#define DESCRIPTORS_PER_WORKER 3 /* pidfd, stdout, stderr */
#define DESCRIPTORS_OF_OURS 32

void spawn_inherited_read(struct spawn_inherited *inherited)
{
    sigprocmask(SIG_BLOCK, NULL, &inherited->mask);
    sigaction(SIGPIPE, NULL, &inherited->pipe);
    sigaction(SIGCHLD, NULL, &inherited->chld);
    getrlimit(RLIMIT_NOFILE, &inherited->nofile);
}

int spawn_reserve_descriptors(unsigned n, unsigned files, struct err *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 0;
    rlim_t need = (rlim_t)n * (DESCRIPTORS_PER_WORKER + files) + DESCRIPTORS_OF_OURS;
    if (limit.rlim_max < need)
        return err_set(err, -EMFILE, "%u workers need %llu open files, ulimit -Hn allows %llu", n,
                       (unsigned long long)need, (unsigned long long)limit.rlim_max);
    if (limit.rlim_cur < need + n) {
        limit.rlim_cur = limit.rlim_max < need + n ? limit.rlim_max : need + n;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
            return err_set_errno(err, -errno, "RLIMIT_NOFILE");
    }
    return 0;
}

bool spawn_may_open(unsigned n, unsigned more)
{
    struct rlimit limit;
    rlim_t need = (rlim_t)n * (DESCRIPTORS_PER_WORKER + more) + DESCRIPTORS_OF_OURS;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= need;
}

int spawn_group_create(struct spawn_group **ret, unsigned n, struct err *err)
{
    size_t bytes = sizeof(struct spawn_group) + n * sizeof(struct spawn_record);
    struct spawn_group *group =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (group == MAP_FAILED)
        return err_set_errno(err, -errno, "memory for %u workers", n);
    group->n = n;
    group->bytes = bytes;
    *ret = group;
    return 0;
}

static void set_gate(struct spawn_group *group, enum gate gate)
{
    atomic_store(&group->gate, gate);
    syscall(SYS_futex, &group->gate, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void spawn_group_destroy(struct spawn_group *group)
{
    if (group)
        munmap(group, group->bytes);
}

void spawn_group_dismiss(struct spawn_group *group)
{
    set_gate(group, GATE_AWAY);
}

void spawn_open_gate(struct spawn_group *group)
{
    set_gate(group, GATE_OPEN);
}

struct spawn_record spawn_result(const struct spawn_group *group, unsigned index)
{
    return group->record[index];
}

/* --- In the child, between fork and exec: async-signal-safe calls only, no malloc. --- */

static _Noreturn void child_fail(struct spawn_record *record, enum spawn_stage stage, int error)
{
    record->error = error;
    record->stage = stage;
    _exit(program_exit_code(error));
}

static void child_keep_only(const struct spawn_request *request)
{
    if (syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC) < 0) {
        /* Before Linux 5.11, or refused: what we know of is close-on-exec from birth anyway. */
        for (int fd = 3; fd < 256; fd++)
            fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    for (size_t i = 0; i < ARRAY_LEN(request->keep_fd); i++)
        if (request->keep_fd[i] >= 0)
            fcntl(request->keep_fd[i], F_SETFD, 0);
}

static void child_await_gate(struct spawn_group *group)
{
    for (;;) {
        uint32_t gate = atomic_load(&group->gate);
        if (gate == GATE_OPEN)
            return;
        if (gate == GATE_AWAY)
            _exit(0);
        syscall(SYS_futex, &group->gate, FUTEX_WAIT, GATE_SHUT, NULL, NULL, 0);
    }
}

static _Noreturn void child_run(struct spawn_group *group, unsigned index,
                                const struct spawn_request *request, pid_t parent)
{
    struct spawn_record *record = &group->record[index];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_CODE_OURS); /* it died before the prctl */
    if (request->traceable)
        prctl(PR_SET_PTRACER, parent); /* fails where there is no Yama */
    setsid();
    for (int fd = 0; fd < 3; fd++)
        if (request->stdio[fd] >= 0 && dup2(request->stdio[fd], fd) < 0)
            child_fail(record, SPAWN_STDIO, errno);
    child_keep_only(request);
    setrlimit(RLIMIT_NOFILE, &request->inherited->nofile);
    sigaction(SIGPIPE, &request->inherited->pipe, NULL);
    sigaction(SIGCHLD, &request->inherited->chld, NULL);
    child_await_gate(group);
    sigprocmask(SIG_SETMASK, &request->inherited->mask, NULL);
    execve(request->file, request->argv, request->envp);
    child_fail(record, SPAWN_EXEC, errno);
}

/* --- In the parent. --- */

/* Every reason but a lack of something has to do with the cgroup, or will be met again without it. */
static long clone_into(int cgroup_fd, int *ret_pidfd)
{
    struct clone_request args = {
        .flags = CLONE_PIDFD,
        .pidfd = (uintptr_t)ret_pidfd,
        .exit_signal = SIGCHLD,
    };
    long pid = -1;
    if (cgroup_fd > 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (unsigned)cgroup_fd;
        pid = syscall(SYS_clone3, &args, sizeof args);
        if (pid >= 0 || errno == EAGAIN || errno == ENOMEM || errno == EMFILE)
            return pid;
    }
    args.flags = CLONE_PIDFD;
    return syscall(SYS_clone3, &args, offsetof(struct clone_request, set_tid));
}

/* fork() with a pidfd. Not glibc's fork(): no atfork handlers are wanted. A thread of ours (deathwatch.c) may exist,
 * hence the rule for the child above. */
static pid_t fork_with_pidfd(int cgroup_fd, int *ret_pidfd)
{
    long pid = clone_into(cgroup_fd, ret_pidfd);
    if (pid >= 0 || (errno != ENOSYS && errno != EPERM))
        return (pid_t)pid;
    /* Refused by a seccomp filter: an unreaped child's pid is as good. */
    pid = fork();
    if (pid > 0) {
        *ret_pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
        if (*ret_pidfd < 0) {
            int saved = errno;
            kill((pid_t)pid, SIGKILL);
            waitpid((pid_t)pid, NULL, 0);
            errno = saved;
            return -1;
        }
    }
    return (pid_t)pid;
}

static int explain_fork(int error, struct err *err)
{
    struct rlimit limit = {0};
    if (error == EAGAIN && getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        return err_set(err, -error, "fork: too many processes (ulimit -u is %llu for this user)",
                       (unsigned long long)limit.rlim_cur);
    if (error == EAGAIN)
        return err_set(err, -error,
                       "fork: too many processes (pids limit of the cgroup, or kernel.pid_max)");
    if (error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
        return err_set(err, -error, "fork: too many open files (ulimit -Hn is %llu)",
                       (unsigned long long)limit.rlim_max);
    return err_set_errno(err, -error, "fork");
}

int spawn_start(struct spawn_group *group, unsigned index, const struct spawn_request *request,
                pid_t *ret_pid, int *ret_pidfd, struct err *err)
{
    pid_t self = getpid();
    int pidfd = -1;
    pid_t pid = fork_with_pidfd(request->cgroup_fd, &pidfd);
    if (pid < 0)
        return explain_fork(errno, err);
    if (pid == 0)
        child_run(group, index, request, self);
    *ret_pid = pid;
    *ret_pidfd = pidfd;
    return 0;
}
