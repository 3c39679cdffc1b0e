/* SPDX-License-Identifier: MIT */
/* User-space stacks of another process: all its threads, main thread first, equal ones counted together. By
 * elfutils' libdw, which is loaded at the first use only and needn't be there. Stops the process for
 * the time of the look, and may take long or fail in it: for a helper process only, never for the loop. */
#ifndef LAUNCH_AGENT_STACKS_H
#define LAUNCH_AGENT_STACKS_H

#include "../proto/base.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define STACKS_MAX 4          /* different ones that are kept */
#define STACKS_TEXT_BYTES 400 /* "innermost < ... < main" */
#define STACKS_WHY_BYTES 96

struct stack {
    uint32_t threads; /* that have it */
    char text[STACKS_TEXT_BYTES];
};

struct stacks {
    uint32_t threads; /* of the process, also those that were not looked at */
    uint32_t n;
    struct stack stack[STACKS_MAX]; /* the first is the main thread's */
    char why[STACKS_WHY_BYTES];     /* n == 0: why there are none */
};

/* deadline_ns: CLOCK_MONOTONIC; threads that do not stop by then are left out. Symbols come from the program's and
 * the libraries' own files; nothing is downloaded. */
void stacks_take(pid_t pid, uint64_t deadline_ns, struct stacks *ret);

#endif
