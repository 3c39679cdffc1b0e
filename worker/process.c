/* SPDX-License-Identifier: MIT */
/* What becomes of a membership when its process ends, or forks a child that has a copy of it. Owns who the process's member is;
 * must never know what members do. */
#include "worker.h"

static struct launch *member; /* NULL: none */
static bool prepared;

/* Where a forked child writes what it has to say as the rank that its parent is: of no use to anybody. */
static struct board_slot nowhere;

int process_refuse(struct launch *l)
{
    return launch_fail(l, LAUNCH_INVALID,
                       "process %d was forked by rank %u and is no rank: only its parent can call "
                       "this, or it runs a program of its own (exec)",
                       (int)getpid(), l->rank);
}

/* Costs the calls of a member nothing: the child's generation is none that the group ever has, and that is where launch_check()
 * ends. The early notice of a death is the parent's: the C library and the kernel let a child hold no robust lock. What is not
 * seen here: a child of the bare system call. */
static void on_child(void)
{
    if (!member)
        return;
    member->generation = 0;
    member->slot = &nowhere;
    process_refuse(member);
}

void process_set_member(struct launch *l)
{
    if (l && !prepared)
        prepared = pthread_atfork(NULL, NULL, on_child) == 0;
    member = l;
}

struct launch *process_member(void)
{
    return member;
}

/* A program that returns from main() or calls exit() as a member leaves as well. One that does not get so far (_exit(), a crash
 * behind a wrapper that says 0) keeps its stage: the agent sees that. */
__attribute__((destructor)) static void leave_at_exit(void)
{
    if (member && member->pid == getpid() && atomic_load(&member->slot->stage) != STAGE_FAILED)
        launch_device_set_stage(member, STAGE_LEFT);
}
