/* SPDX-License-Identifier: MIT */
/* Process trees: signalling a worker with everything below it, and ending what re-parented itself to us.
 * A child that we have not reaped keeps its pid, and so does the group that it leads. Whoever is further below may end and be reaped
 * at any moment, and its pid be another's: it is signalled through a pidfd, and only if it is where it was seen. */
#ifndef LAUNCH_AGENT_TREE_H
#define LAUNCH_AGENT_TREE_H

#include <stdbool.h>
#include <sys/types.h>

/* Sends sig to the process group `pid` leads and to every descendant that left that group (setsid). pid: an
 * unreaped child of ours that is a group leader. */
void tree_signal(pid_t pid, int sig);

/* Sends sig to all our children (and their trees) but those for which keep() is true. keep may be NULL.
 * Returns how many children were signalled. */
unsigned tree_signal_children(int sig, bool (*keep)(void *user, pid_t pid), void *user);

/* Sends sig to `pid`, which was seen as a child of `parent` a moment ago. False: it is not any more, nor ours, and nobody got it. */
bool tree_signal_child_of(pid_t parent, pid_t pid, int sig);

/* Whether test(user, ...) is true for pid or for a process below it. */
bool tree_any(pid_t pid, bool (*test)(void *user, pid_t pid), void *user);

/* A child of ours for which keep() is false, 0 if there is none. keep may be NULL. */
pid_t tree_first_child(bool (*keep)(void *user, pid_t pid), void *user);

/* Name (comm) of a process for a message, "?" if it is gone. Control characters are replaced. */
void tree_name(pid_t pid, char name[16]);

/* "name (pid 12)". */
void tree_describe(pid_t pid, char *text, size_t size);

/* Children that this process was born with: whoever exec()s us may have started some. */
#define TREE_OLD_MAX 64
struct tree_old {
    unsigned n;
    pid_t pid[TREE_OLD_MAX];
};
void tree_remember(struct tree_old *old);

/* Kills and reaps everything below this process but its old children until nothing is left or `ms` have passed; for
 * the guard, after the agent has gone. Returns the number of processes that could not be ended. */
unsigned tree_end_all(struct tree_old *old, unsigned ms);

#endif
