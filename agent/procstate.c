/* SPDX-License-Identifier: MIT */
#include "procstate.h"

#include "sysfile.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Of include/linux/sched.h; part of the format of /proc/PID/stat since ever. */
#define FLAG_EXITING 0x4u    /* PF_EXITING: inside do_exit() */
#define FLAG_SIGNALED 0x400u /* PF_SIGNALED: a fatal signal was taken */

/* Numbers of proc(5), counted from 1. */
#define FIELD_STATE 3
#define FIELD_FLAGS 9
#define FIELD_PENDING 31
#define FIELD_EXIT_CODE 52

struct thread_stat {
    char state;
    unsigned long long flags;
    unsigned long long pending; /* bit n-1: signal n is on its way to this thread */
    long long exit_code;        /* wait status */
};

const char *procstate_fields(const char *text)
{
    const char *at = strrchr(text, ')');
    return at && at[1] == ' ' && at[2] ? at + 2 : NULL;
}

static bool parse(const char *text, struct thread_stat *ret)
{
    const char *at = procstate_fields(text);
    struct thread_stat t = {0};
    unsigned field = FIELD_STATE;
    if (!at)
        return false;
    for (; *at; field++) {
        if (field == FIELD_STATE)
            t.state = *at;
        else if (field == FIELD_FLAGS)
            t.flags = strtoull(at, NULL, 10);
        else if (field == FIELD_PENDING)
            t.pending = strtoull(at, NULL, 10);
        else if (field == FIELD_EXIT_CODE)
            t.exit_code = strtoll(at, NULL, 10);
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    *ret = t;
    return field > FIELD_EXIT_CODE;
}

static bool is_ending(const struct thread_stat *t)
{
    return t->state == 'Z' || t->state == 'X' || (t->flags & FLAG_EXITING);
}

/* A process that ends tells all its threads by a SIGKILL of their own before the first is gone. */
static bool goes_on(const struct thread_stat *t)
{
    return !is_ending(t) && !(t->flags & FLAG_SIGNALED) && !(t->pending & (1ull << (SIGKILL - 1)));
}

static bool has_thread_that_goes_on(const char *sysroot, pid_t pid)
{
    char path[PATH_MAX], text[1024];
    if (snprintf(path, sizeof path, "%s/proc/%d/task", sysroot, (int)pid) >= (int)sizeof path)
        return false;
    DIR *tasks = opendir(path);
    if (!tasks)
        return false;
    bool found = false;
    struct dirent *entry;
    while (!found && (entry = readdir(tasks))) {
        struct thread_stat t;
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (sysfile_read(text, sizeof text, sysroot, "/proc/%d/task/%s/stat", (int)pid,
                         entry->d_name) > 0 &&
            parse(text, &t))
            found = goes_on(&t);
    }
    closedir(tasks);
    return found;
}

enum procstate procstate_of(const char *sysroot, pid_t pid, int *ret_status)
{
    char text[1024];
    struct thread_stat main_thread;
    if (sysfile_read(text, sizeof text, sysroot, "/proc/%d/stat", (int)pid) <= 0 ||
        !parse(text, &main_thread))
        return PROC_GONE;
    if (!is_ending(&main_thread))
        return PROC_LIVES;
    if (has_thread_that_goes_on(sysroot, pid))
        return PROC_HEADLESS;
    *ret_status = (int)main_thread.exit_code;
    return PROC_ENDING;
}

pid_t procstate_parent(pid_t pid)
{
    char text[512];
    if (sysfile_read(text, sizeof text, "", "/proc/%d/stat", (int)pid) < 0)
        return 0;
    const char *at = procstate_fields(text); /* "state ppid" */
    return at && at[1] == ' ' ? (pid_t)strtol(at + 2, NULL, 10) : 0;
}
