/* SPDX-License-Identifier: MIT */
#include "guard.h"

#include "../proto/status.h"
#include "log.h"
#include "signals.h"
#include "tree.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* A process in the D state does not die of SIGKILL; it must not keep us for ever. */
#define END_ALL_MS 10000

static bool is_forwarded(int sig)
{
    switch (sig) {
    case SIGINT:
    case SIGTERM:
    case SIGQUIT:
    case SIGHUP:
    case SIGUSR1:
    case SIGUSR2:
    case SIGWINCH:
    case SIGTSTP:
    case SIGCONT:
        return true;
    default:
        return false;
    }
}

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

static int watch(pid_t agent, const struct cgroup *cgroup)
{
    sigset_t all;
    sigfillset(&all);
    for (;;) {
        siginfo_t info;
        int sig = sigwaitinfo(&all, &info);
        if (sig == SIGCHLD) {
            siginfo_t end = {0};
            if (!reap(agent, &end))
                continue;
            cgroup_kill(cgroup);
            unsigned left = tree_end_all(END_ALL_MS);
            cgroup_remove(cgroup);
            int status = status_of(&end);
            if (left)
                log_error("%u process(es) of the job can't be killed (state D?)", left);
            return status;
        }
        /* A terminal's signals reach the agent by themselves: it is in our process group. The agent is not
         * reaped yet, so its pid is its own. */
        if (sig > 0 && info.si_code <= 0 && is_forwarded(sig))
            kill(agent, sig);
        if (sig == SIGTSTP)
            raise(SIGSTOP); /* so that a shell sees the job as stopped */
    }
}

int guard_run(int (*agent)(void *user, int guard_pidfd), void *user, const struct cgroup *cgroup,
              struct err *err)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t self = getpid();
    AUTO_FD self_fd = (int)syscall(SYS_pidfd_open, self, 0); /* close-on-exec by definition */
    if (self_fd < 0)
        return err_set_errno(err, -errno, "pidfd_open (Linux 5.3 or newer is needed)");
    pid_t pid = fork();
    if (pid < 0)
        return err_set_errno(err, -errno, "fork of the agent");
    if (pid == 0)
        _exit(agent(user, take_fd(&self_fd)));
    return watch(pid, cgroup);
}
