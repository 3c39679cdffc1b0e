/* SPDX-License-Identifier: MIT */
/* Runs launch again, as a child: `launch check` and `launch bench` are jobs of launch with the bench job as their
 * program. Knows no record of the job's and shows nothing. */
#ifndef LAUNCH_AGENT_BENCH_CHILD_H
#define LAUNCH_AGENT_BENCH_CHILD_H

#include "../../proto/err.h"
#include "../gpu.h"
#include "../tail.h"

#include <stdbool.h>

/* Where the job is, for tests and for one that was linked with another NCCL. */
#define CHILD_ENV_JOB "LAUNCH_BENCH_JOB"

struct child_request {
    char *const *words; /* behind "launch": options, the job and its arguments; NULL-terminated */
    char *const *env;   /* "NAME=value" sets, "NAME" takes away; NULL-terminated; NULL: as it is */
    unsigned limit_ms;  /* then it is ended, at once if it does not go by itself; 0: no limit */
    bool collect;       /* the end of its stderr is kept; else that is ours */
    /* A line of its stdout, without the newline, cut to SIEVE_LINE_MAX bytes; any bytes may come. */
    void (*on_line)(void *user, const char *line, size_t n);
    void *user;
};

struct child_end {
    int code;         /* exit code; 128 + n: signal n killed it */
    bool timed_out;   /* limit_ms had passed */
    int signal;       /* that meanwhile asked us to end, and it as well; 0: none */
    struct tail said; /* with collect; tail_finish() it */
};

/* Runs it and waits for its end, when nothing of it is left. stdin is empty. SIGHUP, SIGINT, SIGQUIT and SIGTERM reach it,
 * from a terminal or by us; it dies with us. Call it from the main thread; children that there are already are left
 * alone. -errno: it could not be started, *ret is untouched. */
MUST_CHECK int child_run(const struct child_request *request, struct child_end *ret,
                         struct err *err);

/* The exit code of an end that says nothing of the job: launch did not start it, or somebody asked for the end. Launch itself has said why. -1: it
 * is the job's own end. */
int child_passed_on(const struct child_end *end);

/* The job that measures: launch-bench-nccl or launch-bench-rccl for GPUs, launch-bench for GPU_NONE, where program_find_ours()
 * looks, or what LAUNCH_BENCH_JOB says. *ret_path: owned by the caller. -ENOENT, -ENOMEM. */
MUST_CHECK int child_find_job(enum gpu_vendor gpus, char **ret_path, struct err *err);

#endif
