/* SPDX-License-Identifier: MIT */
/* From the word on the command line to something execve() will take, with the mistakes found before
 * anything is started and explained afterwards if exec fails all the same. Knows nothing of jobs. */
#ifndef LAUNCH_AGENT_PROGRAM_H
#define LAUNCH_AGENT_PROGRAM_H

#include "../proto/err.h"

#include <stddef.h>
#include <stdint.h>

enum program_how {
    PROGRAM_DETECT, /* by Python if the name ends in .py, else as it is */
    PROGRAM_DIRECT, /* as it is, whatever it is called */
    PROGRAM_SCRIPT, /* by Python, whatever it is called */
    PROGRAM_MODULE, /* the name of a Python module */
};

/* What to execute, with its NULL-terminated argument vector. */
struct program {
    const char *file; /* to be given to execve(): points at path or helper */
    char **argv;      /* owned array; the strings are borrowed */
    size_t argc;
    size_t lead;  /* words of argv before the job's own arguments */
    char *path;   /* owned: where the user's program was found; NULL: Python finds it */
    char *helper; /* owned: the program that runs it (python, /bin/sh, launch-run), or NULL */
    char **lists; /* owned: an argv for each worker, of argc + 1 words; NULL: all have the same */
    uint32_t lists_n;
};

/* Looks the first word of argv up (in the PATH if it holds no '/'), follows it to its interpreter, and
 * decides how it is run:
 *   a binary or a script with "#!"     as it is
 *   an executable text without "#!"    by /bin/sh, as the shell and execvp() do
 *   a shared object X.so               by launch-run, which calls its launch_main()
 *   a Python script or module          by $PYTHON_EXEC, else the python, else the python3 of the PATH, with -u
 * `argv` is borrowed. Errors, each with an exit code of `env`'s convention in *ret_exit (127 not found,
 * 126 found but can't be executed; 2 what can't be a module's name): -ENOENT, -EACCES, -EISDIR, -ENOEXEC, -EINVAL. *p is
 * then finished. */
MUST_CHECK int program_resolve(struct program *p, char **argv, enum program_how how, int *ret_exit,
                               struct err *err);

/* Replaces ${local_rank} (see macro.h) in the arguments of n workers. Without any, nothing is made. -ENOMEM. */
MUST_CHECK int program_expand(struct program *p, uint32_t n, struct err *err);

/* Argument vector of a worker. */
char *const *program_argv(const struct program *p, uint32_t local_rank);

/* Takes a zeroed one too. */
void program_finish(struct program *p);

/* A program that comes with launch: beside this executable (build tree) or in ../libexec/launch (installed). *ret_path: owned
 * by the caller. -ENOENT, with what it does ("runs shared objects") in the text; -ENOMEM. */
MUST_CHECK int program_find_ours(const char *name, const char *what, char **ret_path,
                                 struct err *err);

/* Exit code for an errno of execve(): 127 for ENOENT and ENOTDIR, else 126. */
int program_exit_code(int exec_errno);

#endif
