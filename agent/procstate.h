/* SPDX-License-Identifier: MIT */
/* What /proc tells about a process that may be on its way out: the kernel frees a dying thread's robust locks long
 * before a pidfd tells of the death. Reads only; knows no rank. */
#ifndef LAUNCH_AGENT_PROCSTATE_H
#define LAUNCH_AGENT_PROCSTATE_H

#include <sys/types.h>

enum procstate {
    PROC_GONE,     /* no such process, or it can't be read */
    PROC_LIVES,    /* its main thread runs, sleeps or is stopped */
    PROC_HEADLESS, /* its main thread has ended alone; other threads go on */
    PROC_ENDING,   /* all of it is ending, or a zombie */
};

/* pid: a process that was not reaped. sysroot: before /proc, "" for the real one.
 * *ret_status, with PROC_ENDING: its wait status; 0 also stands for "not known" (a process of another user). */
enum procstate procstate_of(const char *sysroot, pid_t pid, int *ret_status);

/* From field 3, the state, on in the text of a /proc/PID/stat: behind the name in parentheses, which may hold anything. NULL:
 * there is none. */
const char *procstate_fields(const char *text);

/* 0: there is no such process. */
pid_t procstate_parent(pid_t pid);

#endif
