/* SPDX-License-Identifier: MIT */
/* The command line of a subcommand that takes launch's own options and runs the bench job with them: checked here as
 * launch would, before anything is started, and what they mean on this machine. */
#ifndef LAUNCH_AGENT_BENCH_OPTIONS_H
#define LAUNCH_AGENT_BENCH_OPTIONS_H

#include "../plan.h"

struct bench_options {
    struct job_spec spec;
    struct plan plan;
    char **
        words; /* owned; the strings but the last are the caller's: for a child launch, NULL-terminated */
    char *job; /* owned: the job's file */
    bool gpus; /* the job has GPUs; else it works on host memory */
};

/* words: NULL-terminated, without a program. Workers that nobody counted are --nproc-per-node=auto. command: its name, for messages. Returns 0, or an exit
 * code with the reason in err. bench_options_finish() in any case. */
MUST_CHECK int bench_options_init(struct bench_options *options, const char *command,
                                  char *const *words, struct err *err);
void bench_options_finish(struct bench_options *options);

/* Both, round a command's own part, which returns an exit code; what is wrong is told. */
int bench_options_run(const char *command, char *const *words, bool json,
                      int (*run)(const struct bench_options *options, bool json));

#endif
