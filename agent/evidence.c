/* SPDX-License-Identifier: MIT */
/* See evidence.h. Takes; how it is told: hang_report.c. */
#include "evidence.h"

#include "../proto/clock.h"
#include "procstate.h"
#include "syscalls.h"
#include "sysfile.h"
#include "watch.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define DEPTH_MAX 8
#define MARGIN_MS 100 /* the helper stops by itself so long before it is killed */
#define REAP_MS 50    /* for a killed helper to end; later it is reaped as any child */
#define STOP_MS 100   /* for the threads of one process to stop */

/* ---- /proc ---- */

/* What sits in a hang. Numbers differ by machine, so names are made here. */
#define CALL(name)                                                                                 \
    {                                                                                              \
        SYS_##name, #name                                                                          \
    }
static const struct {
    long number;
    const char *name;
} calls[] = {
    CALL(read),
    CALL(write),
    CALL(readv),
    CALL(writev),
    CALL(pread64),
    CALL(pwrite64),
    CALL(ioctl),
    CALL(futex),
    CALL(openat),
    CALL(close),
    CALL(fsync),
    CALL(fdatasync),
    CALL(ppoll),
    CALL(pselect6),
    CALL(epoll_pwait),
    CALL(nanosleep),
    CALL(clock_nanosleep),
    CALL(wait4),
    CALL(waitid),
    CALL(recvfrom),
    CALL(recvmsg),
    CALL(sendto),
    CALL(sendmsg),
    CALL(accept),
    CALL(accept4),
    CALL(connect),
    CALL(flock),
    CALL(fcntl),
    CALL(rt_sigsuspend),
    CALL(rt_sigtimedwait),
    CALL(mmap),
    CALL(munmap),
    CALL(sched_yield),
    CALL(restart_syscall),
    CALL(io_getevents),
    CALL(splice),
#ifdef SYS_poll
    CALL(poll),
#endif
#ifdef SYS_select
    CALL(select),
#endif
#ifdef SYS_epoll_wait
    CALL(epoll_wait),
#endif
#ifdef SYS_pause
    CALL(pause),
#endif
#ifdef SYS_open
    CALL(open),
#endif
#ifdef SYS_futex_waitv
    CALL(futex_waitv),
#endif
};

static void name_call(const char *text, char *name, size_t size)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (end == text) { /* "running" */
        snprintf(name, size, "%.*s", (int)strcspn(text, " \n"), text);
        return;
    }
    if (number < 0) { /* stopped, but in no system call */
        name[0] = '\0';
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        if (calls[i].number == number) {
            snprintf(name, size, "%s", calls[i].name);
            return;
        }
    }
    snprintf(name, size, "system call %ld", number);
}

static void make_printable(char *text)
{
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

void evidence_glance(const char *sysroot, pid_t pid, struct evidence_proc *ret)
{
    char text[4096], value[32];
    *ret = (struct evidence_proc){.pid = pid, .state = '?'};
    if (sysfile_read(text, sizeof text, sysroot, "/proc/%d/status", (int)pid) < 0)
        return;
    if (sysfile_field(text, "Name:", ret->name, sizeof ret->name))
        make_printable(ret->name);
    if (sysfile_field(text, "State:", value, sizeof value) && value[0] > ' ' && value[0] <= '~')
        ret->state = value[0];
    ret->core = sysfile_field(text, "CoreDumping:", value, sizeof value) && value[0] == '1';
}

/* utime and stime of /proc/PID/stat, fields 14 and 15. */
static double read_cpu_s(const char *sysroot, pid_t pid)
{
    char text[1024];
    if (sysfile_read(text, sizeof text, sysroot, "/proc/%d/stat", (int)pid) < 0)
        return 0;
    unsigned long long user = 0, kernel = 0;
    const char *at = procstate_fields(text);
    for (int field = 3; at && field < 14; field++)
        at = (at = strchr(at, ' ')) ? at + 1 : NULL;
    if (!at)
        return 0;
    char *end;
    user = strtoull(at, &end, 10);
    kernel = strtoull(end, NULL, 10);
    return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

void evidence_read(const char *sysroot, pid_t pid, struct evidence_proc *ret)
{
    char text[256];
    evidence_glance(sysroot, pid, ret);
    if (sysfile_read(text, sizeof text, sysroot, "/proc/%d/wchan", (int)pid) > 0 &&
        strcmp(text, "0") != 0) {
        snprintf(ret->wait, sizeof ret->wait, "%.*s", (int)strcspn(text, "\n"), text);
        make_printable(ret->wait);
    }
    if (sysfile_read(text, sizeof text, sysroot, "/proc/%d/syscall", (int)pid) > 0) {
        name_call(text, ret->call, sizeof ret->call);
        make_printable(ret->call);
    }
    ret->cpu_s = read_cpu_s(sysroot, pid);
}

/* The one child that lives; 0: there is none, or there are several. What has ended and is not waited for is none. */
static pid_t only_child(const char *sysroot, char *list)
{
    pid_t only = 0;
    char *rest = NULL;
    for (char *word = strtok_r(list, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
        struct evidence_proc proc;
        long child = strtol(word, NULL, 10);
        if (child <= 1 || child > INT32_MAX)
            return 0;
        evidence_glance(sysroot, (pid_t)child, &proc);
        if (proc.state == 'Z' || proc.state == 'X')
            continue;
        if (only)
            return 0;
        only = (pid_t)child;
    }
    return only;
}

/* It sleeps until a child ends, as a shell does; a program that does something else is the worker itself, and its child
 * a helper, such as a data loader. True also when that can't be known. */
static bool waits_for_child(const char *sysroot, pid_t pid)
{
    static const char *const places[] = {"do_wait", "wait4", "waitid", "sigsuspend"};
    char text[128];
    if (sysfile_read(text, sizeof text, sysroot, "/proc/%d/wchan", (int)pid) <= 0)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (strstr(text, places[i]))
            return true;
    return false;
}

pid_t evidence_worker(const char *sysroot, pid_t pid)
{
    for (unsigned depth = 0; depth < DEPTH_MAX; depth++) {
        char text[512];
        ssize_t n = sysfile_read(text, sizeof text, sysroot, "/proc/%d/task/%d/children", (int)pid,
                                 (int)pid);
        if (n <= 0 ||
            (size_t)n >= sizeof text - 1) /* more than are worth a look; the last one is cut */
            break;
        pid_t child = only_child(sysroot, text);
        if (!child || !waits_for_child(sysroot, pid))
            break;
        pid = child;
    }
    return pid;
}

/* ---- the helper process ---- */

static void look_at_proc(struct evidence_rank *rank, pid_t pid)
{
    evidence_read("", evidence_worker("", pid), &rank->proc);
    atomic_store_explicit(&rank->parts, 1, memory_order_release);
}

static void look_at_stacks(struct evidence_rank *rank, uint64_t until_ns)
{
    uint64_t stop_ns = clock_now_ns() + STOP_MS * NS_PER_MS;
    stacks_take(rank->proc.pid, stop_ns < until_ns ? stop_ns : until_ns, &rank->stacks);
    atomic_store_explicit(&rank->parts, 2, memory_order_release);
}

/* The cheap look at all first; then stacks, the suspect's first. */
static _Noreturn void help(const struct evidence *e, const pid_t *pids, uint32_t first, pid_t agent)
{
    uint64_t until_ns = clock_now_ns() + (EVIDENCE_BUDGET_MS - MARGIN_MS) * NS_PER_MS;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != agent)
        _exit(1);
    for (uint32_t k = 0; k < e->n && clock_now_ns() < until_ns; k++) {
        uint32_t i = (first + k) % e->n;
        if (pids[i])
            look_at_proc(&e->ranks[i], pids[i]);
    }
    for (uint32_t k = 0; k < e->n && clock_now_ns() < until_ns; k++) {
        uint32_t i = (first + k) % e->n;
        if (pids[i] && atomic_load(&e->ranks[i].parts) == 1)
            look_at_stacks(&e->ranks[i], until_ns);
    }
    _exit(0);
}

/* ---- the agent's side ---- */

static void stop_helper(struct evidence *e)
{
    if (e->pidfd < 0)
        return;
    uv_timer_stop(e->timer);
    watch_stop(&e->watch);
    syscall(SYS_pidfd_send_signal, e->pidfd, SIGKILL, NULL, 0); /* fails when it has ended */
    /* Mostly at once. It must not be taken for something that the workers have left behind. */
    struct pollfd end = {.fd = e->pidfd, .events = POLLIN};
    if (poll(&end, 1, REAP_MS) == 1)
        waitid(P_PIDFD, (id_t)e->pidfd, &(siginfo_t){0}, WEXITED | WNOHANG);
    close_fd(&e->pidfd);
}

static void on_end(void *user)
{
    struct evidence *e = user;
    stop_helper(e);
    e->on_taken(e->user);
}

static void on_budget(uv_timer_t *timer)
{
    on_end(timer->data);
}

static int start_helper(struct evidence *e, const pid_t *pids, uint32_t first, struct err *err)
{
    pid_t agent = getpid();
    pid_t pid = fork();
    if (pid < 0)
        return err_set_errno(err, -errno, "fork");
    if (pid == 0)
        help(e, pids, first, agent);
    e->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (e->pidfd >= 0)
        return 0;
    int rc = err_set_errno(err, -errno, "pidfd");
    kill(pid, SIGKILL); /* not reaped yet: the pid is the helper's */
    return rc;
}

int evidence_take(struct evidence *e, uv_loop_t *loop, uv_timer_t *timer, const pid_t *pids,
                  uint32_t n, uint32_t first, void (*on_taken)(void *user), void *user,
                  struct err *err)
{
    *e = (struct evidence){.n = n, .pidfd = -1, .timer = timer, .on_taken = on_taken, .user = user};
    void *ranks =
        mmap(NULL, n * sizeof *e->ranks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ranks == MAP_FAILED)
        return err_set_errno(err, -errno, "memory");
    e->ranks = ranks;
    int rc = start_helper(e, pids, first, err);
    if (rc == 0 && !(e->watch = watch_start(loop, e->pidfd, on_end, e)))
        rc = err_set_errno(err, -errno, "watch");
    if (rc < 0) {
        evidence_drop(e);
        return rc;
    }
    timer->data = e;
    uv_timer_start(timer, on_budget, EVIDENCE_BUDGET_MS, 0);
    return 0;
}

void evidence_drop(struct evidence *e)
{
    if (!e->ranks)
        return;
    stop_helper(e);
    munmap(e->ranks, e->n * sizeof *e->ranks);
    *e = (struct evidence){.pidfd = -1};
}
