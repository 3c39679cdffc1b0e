/* SPDX-License-Identifier: MIT */
#include "leftovers.h"

#include "../proto/env.h"
#include "log.h"
#include "sysfile.h"
#include "tree.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
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

void leftovers_ask(struct group *group, bool tell)
{
    char first[48] = "";
    pid_t pid = tree_first_child(group_owns, group);
    if (pid)
        tree_describe(pid, first, sizeof first);
    unsigned n = tree_signal_children(SIGTERM, group_owns, group);
    if (n && tell)
        log_warn("the workers have ended but left %u process%s behind, such as %s; ending %s", n,
                 n == 1 ? "" : "es", first, n == 1 ? "it" : "them");
}

#define ENVIRON_BYTES ((size_t)1 << 20)

/* One worker's mark in the environment of what it started. */
struct mark {
    struct group *group;
    char slot[32], generation[40];
    char *environ; /* ENVIRON_BYTES */
};

static bool has_entry(const char *block, size_t n, const char *entry)
{
    size_t len = strlen(entry) + 1; /* with its NUL */
    for (const char *at = block; at < block + n; at += strnlen(at, (size_t)(block + n - at)) + 1)
        if (len <= (size_t)(block + n - at) && memcmp(at, entry, len) == 0)
            return true;
    return false;
}

static bool is_none_of_its(void *user, pid_t pid)
{
    struct mark *mark = user;
    if (group_owns(mark->group, pid))
        return true;
    ssize_t n = sysfile_read(mark->environ, ENVIRON_BYTES, "", "/proc/%d/environ", (int)pid);
    return n <= 0 || !has_entry(mark->environ, (size_t)n, mark->slot) ||
           !has_entry(mark->environ, (size_t)n, mark->generation);
}

void leftovers_kill_of(struct group *group, unsigned seat, uint32_t generation)
{
    AUTO_FREE char *room = malloc(ENVIRON_BYTES);
    struct mark mark = {.group = group, .environ = room};
    if (!room)
        return;
    snprintf(mark.slot, sizeof mark.slot, ENV_SLOT "=%u", seat);
    snprintf(mark.generation, sizeof mark.generation, ENV_GENERATION "=%u", generation);
    tree_signal_children(SIGKILL, is_none_of_its, &mark);
}

void leftovers_kill(struct group *group)
{
    tree_signal_children(SIGKILL, group_owns, group);
}
