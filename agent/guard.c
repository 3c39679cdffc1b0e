/* SPDX-License-Identifier: MIT */
#include "guard.h"

#include "../proto/status.h"
#include "log.h"
#include "signals.h"
#include "syscalls.h"
#include "tree.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* A process in the D state does not die of SIGKILL; it must not keep us for ever. */
#define END_ALL_MS 10000

/* Reaps whatever has ended. True, with the agent's wait status, if the agent was among them. */
static bool reap(pid_t agent, siginfo_t *ret_agent)
{
    siginfo_t info = {0};
    bool gone = false;
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid) {
        if (info.si_pid == agent) {
            *ret_agent = info;
            gone = true;
        }
        info.si_pid = 0;
    }
    return gone;
}

static int status_of(const siginfo_t *info)
{
    if (info->si_code == CLD_EXITED)
        return info->si_status;
    char name[SIGNALS_NAME_BYTES];
    log_error("the agent (pid %d) was killed by %s; its workers were ended", (int)info->si_pid,
              signals_name(info->si_status, name));
    return 128 + info->si_status;
}

/* A terminal's signals reach the agent by themselves, as it is in our process group; but not those from before it
 * was born. */
static bool reaches_agent(const siginfo_t *info, sigset_t *early)
{
    if (info->si_code <= 0)
        return false;
    if (!sigismember(early, info->si_signo))
        return true;
    sigdelset(early, info->si_signo);
    return false;
}

struct guard {
    pid_t agent;
    const struct cgroup *cgroup; /* borrowed */
    uint64_t forwarded;          /* bit n - 1: signal n */
    sigset_t early;              /* pending when the agent was born */
    struct tree_old old;         /* children that are not the job's */
    bool stops;                  /* SIGTSTP is not ignored */
};

/* The guard sleeps for as long as the job lives, and has little to do then: it does not keep the program text of start-up
 * and of the C library mapped. Text is never written to, so what is needed again comes back from the file. */
static void give_text_back(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        char access[8];
        if (sscanf(line, "%lx-%lx %7s", &from, &to, access) == 3 && strcmp(access, "r-xp") == 0 &&
            strchr(line, '/'))
            madvise((void *)from, to - from, MADV_DONTNEED);
    }
    if (maps)
        fclose(maps);
}

static int end_job(struct guard *g, const siginfo_t *end, bool interrupted)
{
    cgroup_kill(g->cgroup);
    unsigned left = tree_end_all(&g->old, END_ALL_MS);
    cgroup_remove(g->cgroup);
    int status = status_of(end);
    if (left)
        log_error("%u process(es) of the job can't be killed (state D?)", left);
    if (interrupted && status == 128 + SIGINT)
        signals_die_of_interrupt();
    return status;
}

static int watch(struct guard *g)
{
    sigset_t all;
    bool interrupted = false; /* from the terminal */
    sigfillset(&all);
    for (;;) {
        siginfo_t info;
        int sig = sigwaitinfo(&all, &info);
        if (sig == SIGCHLD) {
            siginfo_t end = {0};
            if (reap(g->agent, &end))
                return end_job(g, &end, interrupted);
            continue;
        }
        interrupted |= sig == SIGINT && info.si_code > 0;
        /* The agent is not reaped yet, so its pid is its own. */
        if (sig > 0 && (g->forwarded & (1ull << (sig - 1))) && !reaches_agent(&info, &g->early))
            kill(g->agent, sig);
        if (sig == SIGTSTP && g->stops)
            raise(SIGSTOP); /* so that a shell sees the job as stopped */
    }
}

int guard_run(int (*agent)(void *user, int guard_pidfd), void *user, const struct cgroup *cgroup,
              uint64_t forwarded, struct err *err)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    /* Ignored, as some parents leave it, the kernel would reap for us and tell nobody. */
    signals_default(SIGCHLD);
    uint64_t job_control = 1ull << (SIGTSTP - 1) | 1ull << (SIGCONT - 1);
    struct guard g = {.cgroup = cgroup,
                      .forwarded = forwarded | job_control,
                      .stops = !(signals_ignored() & (1u << SIGTSTP))};
    tree_remember(&g.old);
    pid_t self = getpid();
    AUTO_FD self_fd = (int)syscall(SYS_pidfd_open, self, 0); /* close-on-exec by definition */
    if (self_fd < 0)
        return err_set_errno(err, -errno, "pidfd_open (Linux 5.3 or newer is needed)");
    g.agent = fork();
    if (g.agent < 0)
        return err_set_errno(err, -errno, "fork of the agent");
    if (g.agent == 0)
        _exit(agent(user, take_fd(&self_fd)));
    sigpending(&g.early);
    give_text_back();
    return watch(&g);
}
