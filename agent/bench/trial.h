/* SPDX-License-Identifier: MIT */
/* A run of the bench job of which NCCL keeps a log: launch as a child, with a deadline, nothing started again, and its log
 * read afterwards. Shows nothing. */
#ifndef LAUNCH_AGENT_BENCH_TRIAL_H
#define LAUNCH_AGENT_BENCH_TRIAL_H

#include "../nccl_log.h"
#include "child.h"

struct trial_request {
    char *const *options; /* launch's, the user's; NULL-terminated */
    char *const *job;     /* the job and its arguments; NULL-terminated */
    char *const *env;     /* as in child_request */
    unsigned limit_ms;    /* without a sign of life for so long, the job hangs */
    uint64_t wait_ms;     /* launch may wait for its GPUs before: --wait */
    void (*on_line)(void *user, const char *line, size_t n);
    void *user;
};

struct trial {
    struct child_end end;
    struct nccl_log *log; /* owned */
    double seconds;
};

/* When a launch that does not end by itself is ended; 0: never, as it may wait for ever. */
unsigned trial_limit_ms(const struct trial_request *request);

/* -errno: it could not be started, or there is no directory for the log; ret is zeroed. */
MUST_CHECK int trial_run(const struct trial_request *request, struct trial *ret, struct err *err);
void trial_finish(struct trial *trial);

/* Whether launch itself counted the job as hanging, or it had to be ended. */
bool trial_hung(const struct trial *trial);

#endif
