/* SPDX-License-Identifier: MIT */
/* What ranks that hang are doing, taken before they are ended: /proc state, kernel wait, system call, user-space
 * stacks. A forked helper looks, with a budget: files of /proc and other processes' memory can make their
 * reader wait, and the loop must not. What it has found when the time is over counts. */
#ifndef LAUNCH_AGENT_EVIDENCE_H
#define LAUNCH_AGENT_EVIDENCE_H

#include "../proto/err.h"
#include "stacks.h"

#include <uv.h>

#define EVIDENCE_BUDGET_MS 2000

struct watch;

/* From /proc. */
struct evidence_proc {
    pid_t pid;    /* of the process looked at: the worker, or what it runs */
    char state;   /* R S D T t Z ..., '?' if it can't be read */
    uint8_t core; /* not 0: it is writing a core dump; no bool, as its memory is shared */
    char name[16];
    char wait[40]; /* kernel function it sleeps in; empty: unknown */
    char call[32]; /* system call it is in: "futex", "running"; empty: unknown */
    double cpu_s;
};

struct evidence_rank {
    _Atomic uint32_t parts; /* 0: nothing, 1: proc, 2: stacks too; stored after the part */
    struct evidence_proc proc;
    struct stacks stacks;
};

struct evidence {
    uint32_t n;
    struct evidence_rank *ranks; /* mapped, shared with the helper; NULL: none taken */
    int pidfd;                   /* owned: the helper; -1: none */
    struct watch *watch;         /* owned */
    uv_timer_t *timer;           /* borrowed, used while the helper works */
    void (*on_taken)(void *user);
    void *user;
};

/* Starts the helper. pids: one a rank, 0: none (borrowed during the call); first: this rank before the others;
 * timer: initialised, with nobody else's use for it meanwhile. on_taken comes once, within the budget, unless
 * evidence_drop() came first. */
MUST_CHECK int evidence_take(struct evidence *e, uv_loop_t *loop, uv_timer_t *timer,
                             const pid_t *pids, uint32_t n, uint32_t first,
                             void (*on_taken)(void *user), void *user, struct err *err);

/* Ends the helper, if there still is one, and forgets all. Takes a zeroed or dropped one too. Its process is reaped, or,
 * if it does not end at once, left to whoever reaps what is left below us. */
void evidence_drop(struct evidence *e);

/* The process that does the work of a worker: itself, or what a shell script runs and waits for (as long as every
 * process has one child only). */
pid_t evidence_worker(const char *sysroot, pid_t pid);

/* One look at /proc/PID/status only, for the loop: state, and whether a core dump is being written. */
void evidence_glance(const char *sysroot, pid_t pid, struct evidence_proc *ret);

/* All of struct evidence_proc. */
void evidence_read(const char *sysroot, pid_t pid, struct evidence_proc *ret);

#endif
