/* SPDX-License-Identifier: MIT */
/* Forks workers: clone3 with a pidfd, everything that must happen between fork and exec, and a gate at which
 * all wait until all exist, so that a fork that fails never leaves half a group running.
 *
 * Fork from the main thread only: PDEATHSIG is tied to the thread that forked. */
#ifndef LAUNCH_AGENT_SPAWN_H
#define LAUNCH_AGENT_SPAWN_H

#include "../proto/err.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Where between fork and exec a child failed. */
enum spawn_stage { SPAWN_OK, SPAWN_STDIO, SPAWN_EXEC, SPAWN_STAGES_N };

struct spawn_record {
    uint32_t stage; /* enum spawn_stage */
    int32_t error;  /* errno */
};

/* Where a child shall run and have its memory. */
struct spawn_place {
    const void *cpus; /* mask for sched_setaffinity(); NULL: as inherited */
    size_t cpus_bytes;
    const void *nodes; /* mask for set_mempolicy(); NULL: as inherited */
    size_t nodes_bytes;
    int mem_policy; /* MPOL_* */
};

/* What of it the kernel refused, for the first child that it did to. */
struct spawn_refusal {
    unsigned index;          /* of the child */
    int affinity, mempolicy; /* errno; 0: done, or not asked for */
};

/* What this process changed for itself and its workers shall not inherit; taken at start. */
struct spawn_inherited {
    sigset_t mask;
    struct sigaction pipe, chld; /* SIGPIPE, SIGCHLD */
    struct rlimit nofile;
};

/* Memory shared with the children until they exec: the gate and a record of failure each. A worker's program never
 * sees it, so what it says can be trusted. */
struct spawn_group;

/* Reads signal mask, SIGPIPE, SIGCHLD and RLIMIT_NOFILE of this process. Call before changing them. */
void spawn_inherited_read(struct spawn_inherited *inherited);

/* Many workers mean many descriptors here (a pidfd, two pipes and `files` log files each): raises the soft limit as
 * far as n workers need, and by one more for each where the hard limit allows it. -EMFILE: the hard limit is too low. */
MUST_CHECK int spawn_reserve_descriptors(unsigned n, unsigned files, struct err *err);

/* Whether the limit, as it is now, leaves room for `more` descriptors a worker beside those. */
bool spawn_may_open(unsigned n, unsigned more);

MUST_CHECK int spawn_group_create(struct spawn_group **ret, unsigned n, struct err *err);

/* No child of it may be left; NULL is fine. */
void spawn_group_destroy(struct spawn_group *group);

/* What it points to must stay as it is until the group is destroyed: a child may share our memory. */
struct spawn_request {
    const char *file; /* for execve() */
    char *const *argv;
    char *const *envp;
    int stdio[3];    /* become 0, 1, 2; -1: inherit */
    int keep_fd[2];  /* stay open in the worker, same number; -1: none */
    bool background; /* of low priority, until spawn_foreground() */
    bool traceable;  /* by us and our helpers, where Yama lets only a parent trace */
    struct spawn_place place;
    int cgroup_fd; /* cgroup v2 directory the child is born into; 0 or -1, or refused: ours */
    const struct spawn_inherited *inherited;
};

/* Starts child `index` of the group; it waits at the gate. The child: own session (so own process group), SIGKILL when
 * this process dies, signal mask, SIGPIPE and RLIMIT_NOFILE as inherited, no other descriptor than 0, 1, 2 and keep_fd.
 * *ret_pidfd: owned by the caller, close-on-exec. Errors: -EAGAIN (RLIMIT_NPROC, pids cgroup), -ENOMEM, -EMFILE; text says
 * which limit. */
MUST_CHECK int spawn_start(struct spawn_group *group, unsigned index,
                           const struct spawn_request *request, pid_t *ret_pid, int *ret_pidfd,
                           struct err *err);

/* Waits, at most a second, until the started children for which a place was asked have taken it, which they do before
 * they come to the gate. True: to one of them the kernel refused something, *ret says what. */
bool spawn_refused(struct spawn_group *group, unsigned started, struct spawn_refusal *ret);

/* Lets all go. */
void spawn_open_gate(struct spawn_group *group);

/* Sends all away: those at the gate exit without having run anything. */
void spawn_group_dismiss(struct spawn_group *group);

/* A child that was started in the background goes on as any other. Its priority is that of its session's autogroup, which
 * everybody may raise again to what it was (not so nice and SCHED_IDLE), but no two within 100 ms. pid: not reaped.
 * 0: it does, or the kernel has no autogroups and it always did; -EAGAIN: later. */
MUST_CHECK int spawn_foreground(pid_t pid);

/* What became of child `index`, once it has exited: stage SPAWN_OK means that it reached its program. */
struct spawn_record spawn_result(const struct spawn_group *group, unsigned index);

#endif
