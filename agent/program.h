/* SPDX-License-Identifier: MIT */
/* From the word on the command line to something execve() will take, with the mistakes found before
 * anything is started and explained afterwards if exec fails all the same. Knows nothing of jobs. */
#ifndef LAUNCH_AGENT_PROGRAM_H
#define LAUNCH_AGENT_PROGRAM_H

#include "../proto/err.h"

/* What to execute, with its NULL-terminated argument vector. */
struct program {
    const char *file; /* to be given to execve(): points at path or helper */
    char **argv;      /* owned array; the strings are borrowed */
    char *path;       /* owned: where the user's program was found */
    char *helper;     /* owned: the program that runs it (/bin/sh, launch-run), or NULL */
};

/* Looks the first word of argv up (in the PATH if it holds no '/'), follows it to its interpreter, and
 * decides how it is run:
 *   a binary or a script with "#!"     as it is
 *   an executable text without "#!"    by /bin/sh, as the shell and execvp() do
 *   a shared object X.so               by launch-run, which calls its launch_main()
 * `argv` is borrowed. Errors, each with an exit code of `env`'s convention in *ret_exit (127 not found,
 * 126 found but can't be executed): -ENOENT, -EACCES, -EISDIR, -ENOEXEC. *p is then finished. */
MUST_CHECK int program_resolve(struct program *p, char **argv, int *ret_exit, struct err *err);

/* Takes a zeroed one too. */
void program_finish(struct program *p);

/* Exit code for an errno of execve(): 127 for ENOENT and ENOTDIR, else 126. */
int program_exit_code(int exec_errno);

#endif
