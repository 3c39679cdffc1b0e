/* SPDX-License-Identifier: MIT */
#include "spawn.h"

#include "../proto/clock.h"
#include "../proto/status.h"
#include "program.h"
#include "syscalls.h"
#include "vclone.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum gate { GATE_SHUT, GATE_OPEN, GATE_AWAY };

/* What a child needs until it execs, in memory that stays: it may share ours. */
struct seat {
    struct spawn_group *group;
    struct spawn_request request;
    pid_t parent;
    struct spawn_record record;
    int32_t affinity, mempolicy; /* errno of taking the place */
};

struct spawn_group {
    _Atomic uint32_t gate;   /* futex */
    _Atomic uint32_t placed; /* futex: children that have taken their place */
    unsigned n;
    size_t bytes;
    char *stacks; /* owned: one for each child */
    struct seat seat[];
};

/* A few calls deep, one small buffer; touched pages only. */
#define STACK_BYTES (16 * 1024)

/* How long children may take to go to their places. */
#define PLACED_LIMIT_NS NS_PER_S

/* Without close_range() and /proc: descriptors below this are not inherited. */
#define BLIND_FDS 4096

#define AUTOGROUP_OF(pid) "/proc/" pid "/autogroup"
#define BACKGROUND_NICE "10" /* a tenth of what another has, where both want a CPU */

#define DESCRIPTORS_PER_WORKER 3 /* pidfd, stdout, stderr */
#define DESCRIPTORS_OF_OURS 50

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
    size_t bytes = sizeof(struct spawn_group) + n * sizeof(struct seat);
    struct spawn_group *group =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (group == MAP_FAILED)
        return err_set_errno(err, -errno, "memory for %u workers", n);
    group->n = n;
    group->bytes = bytes;
    group->stacks = mmap(NULL, (size_t)n * STACK_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (group->stacks == MAP_FAILED) {
        int rc = err_set_errno(err, -errno, "stacks for %u workers", n);
        munmap(group, bytes);
        return rc;
    }
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
    if (!group)
        return;
    munmap(group->stacks, (size_t)group->n * STACK_BYTES);
    munmap(group, group->bytes);
}

void spawn_group_dismiss(struct spawn_group *group)
{
    set_gate(group, GATE_AWAY);
}

static bool has_place(const struct seat *seat)
{
    return seat->request.place.cpus || seat->request.place.nodes;
}

bool spawn_refused(struct spawn_group *group, unsigned started, struct spawn_refusal *ret)
{
    uint32_t asked = 0;
    for (unsigned i = 0; i < started; i++)
        asked += has_place(&group->seat[i]);
    if (asked == 0)
        return false;
    uint64_t limit = clock_now_ns() + PLACED_LIMIT_NS;
    for (;;) {
        uint32_t placed = atomic_load(&group->placed);
        uint64_t now = clock_now_ns();
        if (placed >= asked || now >= limit)
            break;
        struct timespec rest = {.tv_sec = (time_t)((limit - now) / NS_PER_S),
                                .tv_nsec = (long)((limit - now) % NS_PER_S)};
        syscall(SYS_futex, &group->placed, FUTEX_WAIT, placed, &rest, NULL, 0);
    }
    for (unsigned i = 0; i < started; i++) {
        const struct seat *seat = &group->seat[i];
        *ret = (struct spawn_refusal){i, seat->affinity, seat->mempolicy};
        if (seat->affinity || seat->mempolicy)
            return true;
    }
    return false;
}

void spawn_open_gate(struct spawn_group *group)
{
    set_gate(group, GATE_OPEN);
}

struct spawn_record spawn_result(const struct spawn_group *group, unsigned index)
{
    return group->seat[index].record;
}

/* --- In the child, until exec. It may share our memory: see vclone.h. --- */

#define CALL(number, ...) CALL5(number, __VA_ARGS__, 0, 0, 0, 0, 0)
#define CALL5(number, a, b, c, d, e, ...)                                                          \
    raw_call(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e))

/* The kernel's struct sigaction; the C library's is another. */
struct disposition {
    void (*handler)(int sig);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

static _Noreturn void child_exit(int code)
{
    for (;;)
        CALL(SYS_exit_group, code);
}

static _Noreturn void child_fail(struct spawn_record *record, enum spawn_stage stage, long error)
{
    record->error = (int32_t)error;
    record->stage = stage;
    child_exit(program_exit_code((int)error));
}

/* As getdents64(2) writes it; the C library's is another. */
struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short size;
    unsigned char type;
    char name[];
};

/* "." and ".." are not. */
static int number_of(const char *name)
{
    int n = 0;
    for (; *name >= '0' && *name <= '9' && n < INT_MAX / 16; name++)
        n = n * 10 + *name - '0';
    return *name ? -1 : n;
}

/* Before Linux 5.11, or where a filter refuses close_range(): what somebody has left open for us must not reach the worker (ours
 * is close-on-exec from birth). Marking a descriptor does not change the list that is read. False: there is no /proc. */
static bool child_mark_listed(void)
{
    _Alignas(struct entry) char list[1024] = {0};
    long n = 0,
         dir = CALL(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return false;
    while ((n = CALL(SYS_getdents64, dir, list, sizeof list)) > 0) {
        for (long at = 0; at < n;) {
            const struct entry *entry = (const struct entry *)(list + at);
            int fd = number_of(entry->name);
            if (fd > 2)
                CALL(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
            at += entry->size;
        }
    }
    CALL(SYS_close, dir);
    return n == 0;
}

/* Of 1 024 workers this is a quarter of the start: not to copy the table (1 %), but to close the copies at exec. A table that is
 * shared until here (CLONE_FILES, CLOSE_RANGE_UNSHARE) would be cut only above the child's own pipes, the last ones opened,
 * and the parent could close none of them before it is. */
static void child_keep_only(const struct spawn_request *request)
{
    if (CALL(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC) < 0 && !child_mark_listed())
        for (int fd = 3; fd < BLIND_FDS; fd++)
            CALL(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
    for (size_t i = 0; i < ARRAY_LEN(request->keep_fd); i++)
        if (request->keep_fd[i] >= 0)
            CALL(SYS_fcntl, request->keep_fd[i], F_SETFD, 0);
}

/* Ignored or not, as it was when we were started: a handler can't come through exec. */
static void child_restore(int sig, const struct sigaction *inherited)
{
    struct disposition d = {.handler = inherited->sa_handler == SIG_IGN ? SIG_IGN : SIG_DFL};
    CALL(SYS_rt_sigaction, sig, &d, NULL, sizeof d.mask);
}

/* Before anything else, so that what it touches from now on is near. Nothing here is a reason not to start. */
static void child_take_place(struct seat *seat)
{
    const struct spawn_place *place = &seat->request.place;
    if (!place->cpus && !place->nodes)
        return;
    if (place->cpus)
        seat->affinity = (int32_t)-CALL(SYS_sched_setaffinity, 0, place->cpus_bytes, place->cpus);
    if (place->nodes) /* the kernel takes one bit less than it is told */
        seat->mempolicy = (int32_t)-CALL(SYS_set_mempolicy, place->mem_policy, place->nodes,
                                         place->nodes_bytes * CHAR_BIT + 1);
    atomic_fetch_add(&seat->group->placed, 1);
    CALL(SYS_futex, &seat->group->placed, FUTEX_WAKE, 1, NULL);
}

/* Without autogroups, or when the kernel wants to be left alone for 100 ms, it has the priority that all have. */
static void child_step_back(void)
{
    long fd = CALL(SYS_openat, AT_FDCWD, AUTOGROUP_OF("self"), O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    CALL(SYS_write, fd, BACKGROUND_NICE, sizeof BACKGROUND_NICE - 1);
    CALL(SYS_close, fd);
}

static void child_await_gate(struct spawn_group *group)
{
    for (;;) {
        uint32_t gate = atomic_load(&group->gate);
        if (gate == GATE_OPEN)
            return;
        if (gate == GATE_AWAY)
            child_exit(0);
        CALL(SYS_futex, &group->gate, FUTEX_WAIT, GATE_SHUT, NULL);
    }
}

static void child_run(void *arg)
{
    struct seat *seat = arg;
    const struct spawn_request *request = &seat->request;
    CALL(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0);
    if (CALL(SYS_getppid, 0) != seat->parent)
        child_exit(EXIT_CODE_OURS); /* it died before the prctl */
    if (request->traceable)
        CALL(SYS_prctl, PR_SET_PTRACER, seat->parent, 0, 0); /* fails where there is no Yama */
    CALL(SYS_setsid, 0);
    if (request->background)
        child_step_back();
    child_take_place(seat);
    for (int fd = 0; fd < 3; fd++) {
        long rc = request->stdio[fd] >= 0 ? CALL(SYS_dup3, request->stdio[fd], fd, 0) : 0;
        if (rc < 0)
            child_fail(&seat->record, SPAWN_STDIO, -rc);
    }
    child_keep_only(request);
    CALL(SYS_prlimit64, 0, RLIMIT_NOFILE, &request->inherited->nofile, NULL);
    child_restore(SIGPIPE, &request->inherited->pipe);
    child_restore(SIGCHLD, &request->inherited->chld);
    child_await_gate(seat->group);
    CALL(SYS_rt_sigprocmask, SIG_SETMASK, &request->inherited->mask, NULL, sizeof(uint64_t));
    child_fail(&seat->record, SPAWN_EXEC,
               -CALL(SYS_execve, request->file, request->argv, request->envp));
}

/* --- In the parent. --- */

/* The child's pid, or a negative errno. Sharing memory where that can be done. */
static long clone_child(struct clone_request *args, size_t size, struct seat *seat)
{
#if VCLONE_USABLE
    args->flags |= CLONE_VM;
    args->stack = (uintptr_t)(seat->group->stacks + (seat - seat->group->seat) * STACK_BYTES);
    args->stack_size = STACK_BYTES;
    return vclone(args, size, child_run, seat);
#else
    long pid = raw_call(SYS_clone3, (long)args, (long)size, 0, 0, 0);
    if (pid == 0)
        child_run(seat);
    return pid;
#endif
}

/* Every reason but a lack of something has to do with the cgroup, or will be met again without it. */
static long clone_into(struct seat *seat, int *ret_pidfd)
{
    struct clone_request args = {
        .flags = CLONE_PIDFD,
        .pidfd = (uintptr_t)ret_pidfd,
        .exit_signal = SIGCHLD,
    };
    if (seat->request.cgroup_fd > 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (unsigned)seat->request.cgroup_fd;
        long pid = clone_child(&args, sizeof args, seat);
        if (pid >= 0 || pid == -EAGAIN || pid == -ENOMEM || pid == -EMFILE)
            return pid;
    }
    args.flags = CLONE_PIDFD;
    return clone_child(&args, offsetof(struct clone_request, set_tid), seat);
}

/* A child with a pidfd: its pid, or a negative errno. A thread of ours (deathwatch.c) may exist, hence no fork
 * handlers and no C library in the child. */
static long start_child(struct seat *seat, int *ret_pidfd)
{
    long pid = clone_into(seat, ret_pidfd);
    if (pid != -ENOSYS && pid != -EPERM)
        return pid;
    /* Refused by a seccomp filter: an unreaped child's pid is as good. */
    pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        child_run(seat);
    *ret_pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (*ret_pidfd < 0) {
        int error = errno;
        kill((pid_t)pid, SIGKILL);
        waitpid((pid_t)pid, NULL, 0);
        return -error;
    }
    return pid;
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
    struct seat *seat = &group->seat[index];
    int pidfd = -1;
    *seat = (struct seat){.group = group, .request = *request, .parent = getpid()};
    long pid = start_child(seat, &pidfd);
    if (pid < 0)
        return explain_fork((int)-pid, err);
    *ret_pid = (pid_t)pid;
    *ret_pidfd = pidfd;
    return 0;
}

int spawn_foreground(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, AUTOGROUP_OF("%d"), (int)pid);
    AUTO_FD fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, "0", 1) < 0 && errno == EAGAIN ? -EAGAIN : 0;
}
