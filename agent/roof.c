/* SPDX-License-Identifier: MIT */
#include "roof.h"

#include "../proto/clock.h"
#include "../proto/status.h"
#include "log.h"
#include "relay.h"
#include "signals.h"
#include "watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a job wrote is read for so long after its end; something that it was to leave alone may hold the pipe. */
#define DRAIN_MS 1000
#define FLUSH_MS 2000
#define GATE_FDS 2
#define DOWN 1 /* the end of a pipe that is written to, of a gate the job's */

struct job {
    struct roof *roof;
    struct job_spec *spec;      /* borrowed */
    pid_t pid;                  /* 0: not started, or reaped */
    int gate[GATE_FDS];         /* owned; -1: closed */
    int pipe[RELAY_KINDS_N][2]; /* owned; likewise */
    struct watch *watch;        /* of the gate */
    bool drained;
    int code;
    uint64_t ended_ns;
};

struct roof {
    uv_loop_t loop;
    struct relay *relay;
    struct signals signals;
    pid_t pid;
    struct job *job;
    unsigned n;
    unsigned order[SPEC_JOBS_MAX]; /* in which they get ready */
    unsigned turn;                 /* place in order of the one that does now; n: all are */
    unsigned ignored;              /* bit n: signal n was when we were started */
    uint64_t open_ns;              /* when all were let go; 0: not yet */
    const struct job *culprit;     /* can't start, so nobody does; NULL: all can */
    bool interrupted;              /* by the terminal */
    int code;
};

/* ---- inside a job ---- */

static bool wait_for_byte(int fd)
{
    char byte;
    ssize_t n;
    do
        n = read(fd, &byte, 1);
    while (n < 0 && errno == EINTR);
    return n == 1;
}

bool roof_pass(int gate)
{
    if (gate < 0)
        return true;
    return send(gate, "", 1, MSG_NOSIGNAL) == 1 && wait_for_byte(gate);
}

/* stdin is nobody's who did not ask for it: several would share it. */
static void take_streams(struct job *job)
{
    AUTO_FD null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(job->pipe[RELAY_STDOUT][DOWN], STDOUT_FILENO);
    dup2(job->pipe[RELAY_STDERR][DOWN], STDERR_FILENO);
    if (job->spec->stdin_mode == STDIN_DEFAULT)
        dup2(null_fd, STDIN_FILENO);
}

static void close_job(struct job *job)
{
    for (int end = 0; end < 2; end++) {
        close_fd(&job->gate[end]);
        for (int kind = 0; kind < RELAY_KINDS_N; kind++)
            close_fd(&job->pipe[kind][end]);
    }
}

static _Noreturn void be_job(struct roof *roof, struct job *job,
                             int (*run)(struct job_spec *job, int gate))
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the agent ends what is below it when the guard has gone */
    if (getppid() != roof->pid)
        _exit(EXIT_CODE_OURS);
    take_streams(job);
    int gate = take_fd(&job->gate[DOWN]);
    for (unsigned i = 0; i < roof->n; i++)
        close_job(&roof->job[i]);
    _exit(wait_for_byte(gate) ? run(job->spec, gate) : EXIT_CODE_OURS);
}

/* ---- the start ---- */

static int open_job(struct job *job, struct err *err)
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, job->gate) < 0 ||
        pipe2(job->pipe[RELAY_STDOUT], O_CLOEXEC) < 0 ||
        pipe2(job->pipe[RELAY_STDERR], O_CLOEXEC) < 0)
        return err_set_errno(err, -errno, "job %s: pipes", job->spec->name);
    return 0;
}

/* Before there is a loop: its descriptors would be the jobs', too. */
static int fork_jobs(struct roof *roof, int (*run)(struct job_spec *job, int gate), struct err *err)
{
    for (unsigned i = 0; i < roof->n; i++) {
        struct job *job = &roof->job[i];
        int rc = open_job(job, err);
        if (rc < 0)
            return rc;
        job->pid = fork();
        if (job->pid < 0) {
            job->pid = 0;
            return err_set_errno(err, -errno, "job %s: fork", job->spec->name);
        }
        if (job->pid == 0)
            be_job(roof, job, run);
        close_fd(&job->gate[DOWN]);
        close_fd(&job->pipe[RELAY_STDOUT][DOWN]);
        close_fd(&job->pipe[RELAY_STDERR][DOWN]);
    }
    return 0;
}

static int precedence(const struct job_spec *spec)
{
    bool named = spec->gpus_mode == GPUS_LIST || spec->gpus_mode == GPUS_ALL;
    return named ? 0 : spec->gpus_mode == GPUS_VISIBLE ? 2 : 1;
}

static void line_up(struct roof *roof)
{
    unsigned n = 0;
    for (int rank = 0; rank <= 2; rank++)
        for (unsigned i = 0; i < roof->n; i++)
            if (precedence(roof->job[i].spec) == rank)
                roof->order[n++] = i;
}

/* A job that is gone is seen by its end. */
static void let_go(struct job *job)
{
    (void)!send(job->gate[0], "", 1, MSG_NOSIGNAL);
}

static void close_gates(struct roof *roof)
{
    for (unsigned i = 0; i < roof->n; i++) {
        watch_stop(&roof->job[i].watch);
        close_fd(&roof->job[i].gate[0]);
    }
}

static void open_gates(struct roof *roof)
{
    roof->open_ns = clock_now_ns();
    for (unsigned i = 0; i < roof->n; i++)
        let_go(&roof->job[i]);
    close_gates(roof);
}

static void on_gate(void *user)
{
    struct job *job = user;
    struct roof *roof = job->roof;
    watch_stop(&job->watch);
    if (!wait_for_byte(job->gate[0]))
        return;
    if (++roof->turn < roof->n)
        let_go(&roof->job[roof->order[roof->turn]]);
    else
        open_gates(roof);
}

/* ---- the end ---- */

static void leave_when_over(struct roof *roof)
{
    for (unsigned i = 0; i < roof->n; i++)
        if (!roof->job[i].drained)
            return;
    uv_stop(&roof->loop);
}

static void on_drained(void *user, unsigned index)
{
    struct roof *roof = user;
    roof->job[index].drained = true;
    leave_when_over(roof);
}

static void note_end(struct job *job, const siginfo_t *info)
{
    struct roof *roof = job->roof;
    char name[SIGNALS_NAME_BYTES];
    bool killed = info->si_code != CLD_EXITED;
    job->pid = 0;
    job->ended_ns = clock_now_ns();
    job->code = killed ? 128 + info->si_status : info->si_status;
    if (killed && roof->open_ns && info->si_status != SIGINT)
        log_error("job %s: its launcher was killed by %s", job->spec->name,
                  signals_name(info->si_status, name));
    if (job->code && !roof->code)
        roof->code = job->code;
    if (!roof->open_ns && !roof->culprit) {
        roof->culprit = job; /* one can't start: nobody does */
        close_gates(roof);
    }
    relay_rank_drain(roof->relay, (unsigned)(job - roof->job), DRAIN_MS);
}

static void reap(struct roof *roof)
{
    siginfo_t info = {0};
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid) {
        for (unsigned i = 0; i < roof->n; i++)
            if (roof->job[i].pid == info.si_pid)
                note_end(&roof->job[i], &info);
        info.si_pid = 0;
    }
}

static void signal_jobs(struct roof *roof, int sig)
{
    for (unsigned i = 0; i < roof->n; i++)
        if (roof->job[i].pid)
            kill(roof->job[i].pid, sig); /* not reaped: the pid is the job's */
}

/* What a terminal sends reaches the jobs by itself. Which signals mean something is each job's own matter. */
static void on_signal(void *user, const struct signalfd_siginfo *info)
{
    struct roof *roof = user;
    int sig = (int)info->ssi_signo;
    if (sig == SIGCHLD) {
        reap(roof);
        return;
    }
    roof->interrupted |= sig == SIGINT && info->ssi_code > 0;
    if (info->ssi_code <= 0)
        signal_jobs(roof, sig);
    if (sig == SIGTSTP && !(roof->ignored & (1u << SIGTSTP)))
        raise(SIGSTOP); /* so that a shell sees us as stopped */
}

static void on_outlet_gone(void *user, enum relay_stream_kind kind)
{
    struct roof *roof = user;
    if (kind != RELAY_STDOUT)
        return;
    log_error("whoever read our stdout has gone; ending the jobs");
    if (!roof->code)
        roof->code = 128 + SIGPIPE;
    signal_jobs(roof, SIGTERM);
}

static void tell_results(const struct roof *roof)
{
    if (roof->culprit) {
        log_error("job %s can't be started, so none of the %u was", roof->culprit->spec->name,
                  roof->n);
        return;
    }
    for (unsigned i = 0; i < roof->n; i++) {
        const struct job *job = &roof->job[i];
        if (!job->spec->detach || job->code)
            log_info("job %s: exit code %d after %.1f s", job->spec->name, job->code,
                     (double)(job->ended_ns - roof->open_ns) / NS_PER_S);
    }
}

/* ---- life ---- */

/* A job that goes to the background prints its run id, which is for programs. */
static int add_streams(struct roof *roof, unsigned index, struct err *err)
{
    struct job *job = &roof->job[index];
    struct relay_route route = {0};
    int rc = prefix_make(&route.prefix, "[${role_name}]:", job->spec->name, 0, err);
    for (enum relay_stream_kind kind = 0; kind < RELAY_KINDS_N && rc == 0; kind++)
        rc = relay_add(roof->relay, index, kind, take_fd(&job->pipe[kind][0]),
                       job->spec->detach && kind == RELAY_STDOUT ? NULL : &route, err);
    return rc;
}

static int start_loop(struct roof *roof, struct err *err)
{
    struct relay_callbacks callbacks = {
        .on_rank_end = on_drained, .on_outlet_gone = on_outlet_gone, .user = roof};
    int rc = relay_create(&roof->relay, &roof->loop, roof->n, STDOUT_FILENO, STDERR_FILENO,
                          &callbacks, err);
    if (rc == 0)
        log_call_before(relay_end_line, roof->relay);
    for (unsigned i = 0; i < roof->n && rc == 0; i++) {
        struct job *job = &roof->job[i];
        rc = add_streams(roof, i, err);
        job->watch = watch_start(&roof->loop, job->gate[0], on_gate, job);
        if (rc == 0 && !job->watch)
            rc = err_set_errno(err, -errno, "job %s", job->spec->name);
    }
    return rc < 0 ? rc : signals_start(&roof->signals, &roof->loop, on_signal, roof, err);
}

static int live(struct roof *roof, struct err *err)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    signals_ignore(SIGPIPE);
    int rc = uv_loop_init(&roof->loop);
    if (rc < 0)
        return err_set_errno(err, rc, "event loop");
    rc = start_loop(roof, err);
    if (rc == 0) {
        reap(roof); /* whose end came before we listened */
        let_go(&roof->job[roof->order[0]]);
        uv_run(&roof->loop, UV_RUN_DEFAULT);
        relay_flush(roof->relay, FLUSH_MS);
    }
    close_gates(roof);
    signals_stop(&roof->signals);
    log_call_before(NULL, NULL);
    relay_destroy(roof->relay);
    uv_run(&roof->loop, UV_RUN_DEFAULT);
    uv_loop_close(&roof->loop);
    return rc;
}

int roof_run(const struct job_spec *spec, int (*run)(struct job_spec *job, int gate),
             struct err *err)
{
    AUTO_FREE struct job *jobs = calloc(spec->jobs_n, sizeof *jobs);
    if (!jobs)
        return err_set_errno(err, -ENOMEM, "%u jobs", spec->jobs_n);
    struct roof roof = {.pid = getpid(),
                        .job = jobs,
                        .n = spec->jobs_n,
                        .ignored = signals_ignored(),
                        .signals.fd = -1};
    for (unsigned i = 0; i < roof.n; i++) {
        struct job *job = &roof.job[i];
        *job = (struct job){
            .roof = &roof, .spec = &spec->jobs[i], .gate = {-1, -1}, .pipe = {{-1, -1}, {-1, -1}}};
    }
    signals_default(SIGCHLD); /* ignored, as some parents leave it, nobody would be told */
    line_up(&roof);
    int rc = fork_jobs(&roof, run, err);
    if (rc == 0)
        rc = live(&roof, err);
    for (unsigned i = 0; i < roof.n; i++)
        close_job(&roof.job[i]); /* who waits at a gate leaves */
    if (rc < 0)
        return rc;
    tell_results(&roof);
    if (roof.interrupted && roof.code == 128 + SIGINT)
        signals_die_of_interrupt();
    return roof.code;
}
