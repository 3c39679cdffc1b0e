/* SPDX-License-Identifier: MIT */
#include "hints.h"

#include "../proto/base.h"

#include <signal.h>
#include <stddef.h>

struct hint {
    int exit_code; /* 0: any */
    int signal;    /* 0: any */
    const char *say;
};

static const struct hint HINTS[] = {
    {.exit_code = 127,
     .say = "exit code 127 usually means that a script called a program that is not there"},
    {.exit_code = 126,
     .say = "exit code 126 usually means that a script called a file that can't be executed"},
    {.signal = SIGBUS,
     .say = "SIGBUS often means a full /dev/shm (in a container: --shm-size) or a file cut short "
            "while it was mapped"},
    {.signal = SIGSEGV,
     .say = "for a backtrace: ulimit -c unlimited, or build with -g -fsanitize=address"},
    {.signal = SIGILL,
     .say = "the program may have been built for another CPU: build it without -march=native, or "
            "on this machine"},
    {.signal = SIGKILL,
     .say = "somebody or the kernel sent SIGKILL, it can't be said who: dmesg tells of memory that "
            "ran out"},
    {.signal = SIGXCPU, .say = "the limit of CPU time was reached: ulimit -t"},
    {.signal = SIGXFSZ, .say = "the limit of file size was reached: ulimit -f"},
    {.signal = SIGSYS,
     .say = "a system call was forbidden: look for a seccomp filter of the container"},
};

static bool fits(const struct hint *hint, const struct hint_facts *facts)
{
    return (!hint->exit_code ||
            (facts->reason == REASON_EXIT && facts->exit_code == hint->exit_code)) &&
           (!hint->signal || facts->signal == hint->signal);
}

const char *hints_find(const struct hint_facts *facts)
{
    if (facts->oom)
        return "memory ran out: a smaller batch, fewer data loaders, or a higher limit (the "
               "cgroup's memory.max)";
    if (facts->core)
        return "gdb PROGRAM CORE, and bt in it, shows where it was";
    if (facts->reason == REASON_RENDEZVOUS && !facts->state_lost)
        return "every rank must call launch_join(), and launch_leave() before it ends";
    for (size_t i = 0; i < ARRAY_LEN(HINTS); i++)
        if (fits(&HINTS[i], facts))
            return HINTS[i].say;
    return NULL;
}
