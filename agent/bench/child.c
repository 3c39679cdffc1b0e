/* SPDX-License-Identifier: MIT */
/* See child.h. One thread, one poll(): nothing here needs a loop. */
#include "child.h"

#include "../../proto/clock.h"
#include "../../proto/status.h"
#include "../log.h"
#include "../program.h"
#include "../sieve.h"
#include "../signals.h"
#include "../syscalls.h"
#include "../tree.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#define GRACE_MS 5000 /* from SIGTERM to SIGKILL, once the limit has passed */
#define REMAINS_MS                                                                                 \
    10000 /* for what a killed launch left; one in the D state must not keep us for ever */
#define PIECE_BYTES 65536

enum { OUT, ERR, STREAMS_N };

/* What people, terminals and `launch stop` end a job with. */
static const int to_end[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

struct child {
    const struct child_request *request;
    pid_t pid;
    int pidfd, signals;     /* owned */
    int stream[STREAMS_N];  /* owned: our ends; -1: at its end, or not ours to read */
    sigset_t before, early; /* our mask; what was pending when it was born */
    struct sieve lines;
    uint64_t deadline_ns; /* or CLOCK_NEVER */
    struct child_end end;
};

/* ---- the child itself ---- */

static void change_environment(char *const *env)
{
    for (; env && *env; env++)
        if (strchr(*env, '='))
            putenv(*env);
        else
            unsetenv(*env);
}

static _Noreturn void be_launch(const struct child_request *request, const sigset_t *mask,
                                pid_t parent, const int to[STREAMS_N])
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* its agent ends what is below it */
    if (getppid() != parent)
        _exit(EXIT_CODE_OURS);
    sigprocmask(SIG_SETMASK, mask, NULL);
    AUTO_FD null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(null_fd, STDIN_FILENO);
    dup2(to[OUT], STDOUT_FILENO);
    if (to[ERR] >= 0)
        dup2(to[ERR], STDERR_FILENO);
    change_environment(request->env);
    size_t n = 0;
    while (request->words[n])
        n++;
    char **argv = calloc(n + 2, sizeof *argv), launch[] = "launch";
    if (argv) {
        argv[0] = launch;
        memcpy(argv + 1, request->words, n * sizeof *argv);
        char self[PATH_MAX]; /* by its name, which ps shows; unless the file has gone */
        ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
        self[length > 0 ? length : 0] = '\0';
        execv(self, argv);
        execv("/proc/self/exe", argv);
    }
    log_error("/proc/self/exe: %s", strerror(errno));
    _exit(EXIT_CODE_OURS);
}

static int open_pipes(int from[STREAMS_N], int to[STREAMS_N], bool collect, struct err *err)
{
    for (int i = 0; i < STREAMS_N; i++) {
        int ends[2];
        if (i == ERR && !collect)
            return 0;
        if (pipe2(ends, O_CLOEXEC) < 0)
            return err_set_errno(err, -errno, "pipe");
        from[i] = ends[0];
        to[i] = ends[1];
        fcntl(from[i], F_SETFL, O_NONBLOCK);
    }
    return 0;
}

static int start(struct child *c, struct err *err)
{
    sigset_t asked;
    sigemptyset(&asked);
    for (size_t i = 0; i < ARRAY_LEN(to_end); i++)
        sigaddset(&asked, to_end[i]);
    sigprocmask(SIG_BLOCK, &asked, &c->before);
    c->signals = signalfd(-1, &asked, SFD_CLOEXEC | SFD_NONBLOCK);
    if (c->signals < 0)
        return err_set_errno(err, -errno, "signalfd");

    int to[STREAMS_N] = {-1, -1};
    pid_t self = getpid();
    int rc = open_pipes(c->stream, to, c->request->collect, err);
    if (rc == 0 && (c->pid = fork()) == 0)
        be_launch(c->request, &c->before, self, to);
    if (rc == 0 && c->pid < 0)
        rc = err_set_errno(err, -errno, "fork");
    sigpending(&c->early);
    close_fd(&to[OUT]);
    close_fd(&to[ERR]);
    /* Not reaped before we say so: the pid is its own. */
    if (rc == 0 && (c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0)) < 0)
        rc = err_set_errno(err, -errno, "pidfd_open (Linux 5.3 or newer is needed)");
    return rc;
}

/* ---- while it runs ---- */

/* Every line. */
static const struct needles all = {.n = 1, .text = (char *[]){""}};

static void drain(struct child *c, int stream)
{
    static char piece[PIECE_BYTES];
    ssize_t n;
    while (c->stream[stream] >= 0 && (n = read(c->stream[stream], piece, sizeof piece)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return;
        if (stream == OUT)
            sieve_add(&c->lines, &all, piece, (size_t)n, c->request->on_line, c->request->user);
        else
            tail_add(&c->end.said, piece, (size_t)n);
    }
    close_fd(&c->stream[stream]);
}

/* A terminal's signals reach it by themselves, as it is in our process group; but not those from before it was born. */
static void pass_signals_on(struct child *c)
{
    struct signalfd_siginfo info;
    while (read(c->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        int sig = (int)info.ssi_signo;
        c->end.signal = sig;
        if (info.ssi_code <= 0 || sigismember(&c->early, sig))
            kill(c->pid, sig);
        sigdelset(&c->early, sig);
    }
}

/* How long poll() may sleep. */
static int until_deadline(struct child *c)
{
    uint64_t now = clock_now_ns();
    if (now >= c->deadline_ns) {
        kill(c->pid, c->end.timed_out ? SIGKILL : SIGTERM);
        c->deadline_ns = c->end.timed_out ? CLOCK_NEVER : now + GRACE_MS * NS_PER_MS;
        c->end.timed_out = true;
    }
    return c->deadline_ns == CLOCK_NEVER ? -1 : (int)((c->deadline_ns - now) / NS_PER_MS + 1);
}

static void watch(struct child *c)
{
    c->deadline_ns = clock_deadline_ns(c->request->limit_ms);
    for (bool ended = false; !ended;) {
        struct pollfd look[] = {{.fd = c->stream[OUT], .events = POLLIN},
                                {.fd = c->stream[ERR], .events = POLLIN},
                                {.fd = c->signals, .events = POLLIN},
                                {.fd = c->pidfd, .events = POLLIN}};
        if (poll(look, ARRAY_LEN(look), until_deadline(c)) < 0)
            continue;
        ended = look[3].revents; /* what it wrote is in the pipes by now */
        drain(c, OUT);
        drain(c, ERR);
        pass_signals_on(c);
    }
    sieve_finish(&c->lines, &all, c->request->on_line, c->request->user);
}

static void reap(struct child *c)
{
    siginfo_t info = {0};
    while (waitid(P_PID, (id_t)c->pid, &info, WEXITED) < 0 && errno == EINTR)
        ;
    c->end.code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

int child_run(const struct child_request *request, struct child_end *ret, struct err *err)
{
    struct child c = {.request = request, .pidfd = -1, .signals = -1, .stream = {-1, -1}};
    struct tree_old old;
    tree_remember(&old);
    signals_default(SIGCHLD); /* ignored, as some parents leave it, the kernel would reap for us */
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* what a killed launch leaves comes to us */
    int rc = start(&c, err);
    if (rc == 0) {
        watch(&c);
        reap(&c);
        *ret = c.end;
    }
    tree_end_all(&old, REMAINS_MS);
    close_fd(&c.stream[OUT]);
    close_fd(&c.stream[ERR]);
    close_fd(&c.pidfd);
    close_fd(&c.signals);
    sigprocmask(SIG_SETMASK, &c.before, NULL);
    return rc;
}

int child_passed_on(const struct child_end *end)
{
    static const int not_started[] = {EXIT_CODE_USAGE, EXIT_CODE_BUSY, EXIT_CODE_OURS,
                                      EXIT_CODE_NOT_EXECUTABLE, EXIT_CODE_NOT_FOUND};
    if (end->signal)
        return 128 + end->signal;
    if (end->timed_out) /* then it was we who asked */
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(not_started); i++)
        if (end->code == not_started[i])
            return end->code;
    for (size_t i = 0; i < ARRAY_LEN(to_end); i++)
        if (end->code == 128 + to_end[i])
            return end->code;
    return -1;
}

int child_find_job(enum gpu_vendor gpus, char **ret_path, struct err *err)
{
    static const struct {
        const char *name, *does;
    } JOBS[] = {
        [GPU_NONE] = {"launch-bench", "measures host memory"},
        [GPU_NVIDIA] = {"launch-bench-nccl", "measures NCCL (launch was built without it?)"},
        [GPU_AMD] = {"launch-bench-rccl", "measures RCCL (launch was built without it?)"},
    };
    const char *given = getenv(CHILD_ENV_JOB);
    if (!given || !*given)
        return program_find_ours(JOBS[gpus].name, JOBS[gpus].does, ret_path, err);
    *ret_path = realpath(given, NULL);
    return *ret_path ? 0 : err_set_errno(err, -errno, CHILD_ENV_JOB ": '%s'", given);
}
