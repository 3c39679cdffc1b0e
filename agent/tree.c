/* SPDX-License-Identifier: MIT */
#include "tree.h"

#include "../proto/base.h"
#include "../proto/clock.h"
#include "procstate.h"
#include "syscalls.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define CHILDREN_BYTES 4096
#define PIDS_MAX (1 << 22) /* the kernel's own limit */
#define MAX_DEPTH                                                                                  \
    32 /* a process chain below a worker; deeper ones are reached after re-parenting */

typedef void visit_fn(void *user, pid_t pid);

static void visit_numbers(char *text, visit_fn *visit, void *user)
{
    char *save = NULL;
    for (char *word = strtok_r(text, " \n", &save); word; word = strtok_r(NULL, " \n", &save))
        visit(user, (pid_t)strtol(word, NULL, 10));
}

/* Calls visit for each child of one thread. The kernel's list is a snapshot: callers loop. */
static bool visit_thread(const char *path, visit_fn *visit, void *user)
{
    AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    char text[CHILDREN_BYTES];
    size_t kept = 0;
    for (;;) {
        ssize_t n = read(fd, text + kept, sizeof text - 1 - kept);
        if (n <= 0)
            break;
        kept += (size_t)n;
        text[kept] = '\0';
        /* Only whole numbers; the tail is completed by the next read. */
        char *space = strrchr(text, ' ');
        if (!space)
            continue;
        size_t rest = kept - (size_t)(space + 1 - text);
        *space = '\0';
        visit_numbers(text, visit, user);
        memmove(text, space + 1, rest);
        kept = rest;
    }
    return true;
}

/* The number that is given next, almost: the largest there is, unless they have begun anew since. */
static pid_t newest_pid(void)
{
    siginfo_t info;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    while (pid > 0 && waitid(P_PID, (id_t)pid, &info, WEXITED) < 0 && errno == EINTR)
        continue;
    return pid;
}

static unsigned visit_numbered(pid_t from, pid_t to, visit_fn *visit, void *user)
{
    siginfo_t info;
    unsigned n = 0;
    for (pid_t pid = from; pid <= to; pid++)
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
            visit(user, pid);
            n++;
        }
    return n;
}

/* Where the kernel's list can't be read: who can be waited for is a child of ours, and is younger than we. If none of these is found
 * but there is one, any number may be its, which takes half a second. */
static void visit_waitable(visit_fn *visit, void *user)
{
    siginfo_t info;
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
        return;
    if (visit_numbered(getpid() + 1, newest_pid(), visit, user) == 0)
        visit_numbered(2, PIDS_MAX, visit, user);
}

/* Calls visit for each child of pid (0: of this process). Children belong to the thread that forked them. */
static void visit_children(pid_t pid, visit_fn *visit, void *user)
{
    char path[64];
    if (pid)
        snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    else
        snprintf(path, sizeof path, "/proc/self/task");
    DIR *tasks = opendir(path);
    if (!tasks && !pid)
        visit_waitable(visit, user);
    if (!tasks)
        return;
    struct dirent *entry;
    while ((entry = readdir(tasks))) {
        char children[sizeof path + sizeof entry->d_name + 16];
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(children, sizeof children, "%s/%s/children", path, entry->d_name);
        visit_thread(children, visit, user);
    }
    closedir(tasks);
}

/* The pidfd comes first: it stands for whoever has the pid now, and if that is another one, its parent is another one, too. The
 * parent that was seen may have died meanwhile: then it is ours. 0: gone, or it can't be read, as without a descriptor. */
bool tree_signal_child_of(pid_t parent, pid_t pid, int sig)
{
    AUTO_FD pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd >= 0) {
        pid_t now = procstate_parent(pid);
        if (now && now != parent && now != getpid())
            return false;
        if (syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) == 0)
            return true;
    }
    /* Before Linux 5.3, refused, or no descriptor left: better so than not at all. */
    return errno != ESRCH && kill(pid, sig) == 0;
}

struct walk {
    int sig;
    pid_t group;  /* already signalled as a whole */
    pid_t parent; /* whose children are visited; 0: this process, which reaps them itself */
    unsigned depth;
};

static void signal_one(const struct walk *walk, pid_t pid)
{
    if (walk->parent)
        tree_signal_child_of(walk->parent, pid, walk->sig);
    else
        kill(pid, walk->sig);
}

static void signal_descendant(void *user, pid_t pid)
{
    struct walk *walk = user;
    if (pid <= 1 || walk->depth >= MAX_DEPTH)
        return;
    bool alone = getpgid(pid) != walk->group;
    /* A parent that is killed last would fork anew; its orphans come to us, and the caller looks again. */
    if (alone && walk->sig == SIGKILL)
        signal_one(walk, pid);
    /* Otherwise below first: a parent that ends of the signal would take its children out of this tree. */
    struct walk below = *walk;
    below.parent = pid;
    below.depth++;
    visit_children(pid, signal_descendant, &below);
    if (alone && walk->sig != SIGKILL)
        signal_one(walk, pid);
}

void tree_signal(pid_t pid, int sig)
{
    struct walk walk = {.sig = sig, .group = pid, .parent = pid};
    visit_children(pid, signal_descendant, &walk);
    if (kill(-pid, sig) < 0)
        kill(pid, sig); /* died or was held before it became a leader */
}

struct pick {
    int sig;
    bool (*keep)(void *user, pid_t pid);
    void *user;
    unsigned signalled;
};

static void signal_child(void *user, pid_t pid)
{
    struct pick *pick = user;
    if (pid <= 1 || (pick->keep && pick->keep(pick->user, pid)))
        return;
    struct walk walk = {.sig = pick->sig, .group = -1};
    signal_descendant(&walk, pid);
    pick->signalled++;
}

unsigned tree_signal_children(int sig, bool (*keep)(void *user, pid_t pid), void *user)
{
    struct pick pick = {.sig = sig, .keep = keep, .user = user};
    visit_children(0, signal_child, &pick);
    return pick.signalled;
}

struct search {
    bool (*test)(void *user, pid_t pid);
    void *user;
    bool found;
    unsigned depth;
};

static void search_descendant(void *user, pid_t pid)
{
    struct search *search = user;
    if (pid <= 1 || search->found || search->depth >= MAX_DEPTH)
        return;
    search->found = search->test(search->user, pid);
    search->depth++;
    visit_children(pid, search_descendant, search);
    search->depth--;
}

bool tree_any(pid_t pid, bool (*test)(void *user, pid_t pid), void *user)
{
    struct search search = {.test = test, .user = user};
    search_descendant(&search, pid);
    return search.found;
}

struct first {
    bool (*keep)(void *user, pid_t pid);
    void *user;
    pid_t pid;
};

static void remember_first(void *user, pid_t pid)
{
    struct first *first = user;
    if (!first->pid && !(first->keep && first->keep(first->user, pid)))
        first->pid = pid;
}

pid_t tree_first_child(bool (*keep)(void *user, pid_t pid), void *user)
{
    struct first first = {.keep = keep, .user = user};
    visit_children(0, remember_first, &first);
    return first.pid;
}

void tree_name(pid_t pid, char name[16])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, name, 15);
    if (n <= 0) {
        memcpy(name, "?", 2);
        return;
    }
    name[n] = '\0';
    name[strcspn(name, "\n")] = '\0';
    for (char *c = name; *c; c++)
        if (!isprint((unsigned char)*c))
            *c = '?';
}

void tree_describe(pid_t pid, char *text, size_t size)
{
    char name[16];
    tree_name(pid, name);
    snprintf(text, size, "%s (pid %d)", name, (int)pid);
}

static void remember_old(void *user, pid_t pid)
{
    struct tree_old *old = user;
    if (old->n < TREE_OLD_MAX)
        old->pid[old->n++] = pid;
}

void tree_remember(struct tree_old *old)
{
    old->n = 0;
    visit_children(0, remember_old, old);
}

static bool is_old(void *user, pid_t pid)
{
    const struct tree_old *old = user;
    for (unsigned i = 0; i < old->n; i++)
        if (old->pid[i] == pid)
            return true;
    return false;
}

static void count_new(void *user, pid_t pid)
{
    struct pick *pick = user;
    pick->signalled += !is_old(pick->user, pid);
}

static bool any_child(struct tree_old *old)
{
    siginfo_t info = {0};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
        return false;
    struct pick pick = {.user = old};
    visit_children(0, count_new, &pick);
    return pick.signalled > 0;
}

unsigned tree_end_all(struct tree_old *old, unsigned ms)
{
    uint64_t deadline = clock_deadline_ns(ms);
    sigset_t chld;
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    while (any_child(old)) {
        unsigned left = tree_signal_children(SIGKILL, is_old, old);
        siginfo_t info = {0};
        while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid)
            info.si_pid = 0;
        if (clock_now_ns() >= deadline)
            return left;
        /* Blocked and pending is what SIGCHLD is here; the limit covers one that was lost. */
        struct timespec limit = {.tv_nsec = 20 * (long)NS_PER_MS};
        if (any_child(old))
            sigtimedwait(&chld, NULL, &limit);
    }
    return 0;
}
