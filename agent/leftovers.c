/* SPDX-License-Identifier: MIT */
#include "leftovers.h"

#include "log.h"
#include "tree.h"

#include <signal.h>
#include <sys/wait.h>

bool leftovers_reap(const struct group *group)
{
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
            return true; /* ECHILD */
        if (!info.si_pid || group_owns((void *)group, info.si_pid))
            return false;
        waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
    }
}

void leftovers_ask(bool tell)
{
    char first[48] = "";
    pid_t pid = tree_first_child();
    if (pid)
        tree_describe(pid, first, sizeof first);
    unsigned n = tree_signal_children(SIGTERM, NULL, NULL);
    if (n && tell)
        log_warn("the workers have ended but left %u process%s behind, such as %s; ending %s", n,
                 n == 1 ? "" : "es", first, n == 1 ? "it" : "them");
}

void leftovers_kill(struct group *group)
{
    tree_signal_children(SIGKILL, group_owns, group);
}
