/* SPDX-License-Identifier: MIT */
/* What a person reads when a job fails: who failed first and how, in a few lines; and the same as JSON. Facts in, text
 * out; knows nothing of processes, files or terminals. All texts of workers are untrusted bytes. */
#ifndef LAUNCH_AGENT_REPORT_H
#define LAUNCH_AGENT_REPORT_H

#include "../proto/board.h"
#include "../proto/status.h"
#include "doctor/known.h"
#include "errorfile.h"

#include <stdbool.h>
#include <time.h>

/* The failure of an attempt that is named first. */
struct failure {
    bool happened;
    bool has_rank; /* false: not a worker's: `what` says all */
    uint32_t rank;
    pid_t pid;
    enum reason reason;
    int exit_code;        /* that the launcher would give for it */
    int signal;           /* that killed the worker; 0: none did */
    bool core;            /* a core dump was made */
    bool gpu_out;         /* its GPU is in quarantine now, or another one that the job needs */
    time_t at;            /* wall clock; for people only */
    double after_s;       /* since the worker was started */
    char what[512];       /* "exited with code 3", one line */
    const char *evidence; /* borrowed lines of ours: where a rank hangs, what proves that memory ran
                                          out; NULL: none */
    char error[BOARD_ERROR_BYTES + 1]; /* what the worker told through liblaunch; empty: nothing */
};

/* A rank that failed in the same moments, as a consequence. */
struct report_other {
    uint32_t rank;
    double later_s; /* than the one that is named first; negative: it was noticed earlier */
    char what[96];
};

#define REPORT_LINES 25 /* at most so many are written */
#define REPORT_OTHERS 3 /* of them at most so many are shown */

/* Everything is borrowed; what is NULL or 0 is not there. */
struct report {
    const struct failure *failure;
    const char *program;
    const char *run_id;
    uint32_t world_size;
    uint32_t attempt;  /* 0: the first one */
    uint32_t healings; /* of the job, in all attempts */
    uint32_t stopped;  /* ranks that were ended because of it */
    const struct report_other *others;
    uint32_t others_n; /* all there are; the first REPORT_OTHERS of them can be read */
    const char
        *tail; /* last bytes of the culprit's stderr, NULL if it went straight to the terminal */
    size_t tail_n;
    const struct errorfile *said; /* the worker's error file */
    const char
        *evidence; /* lines of ours: why a rank counts as hung, what proves that memory ran out */
    const char *core;           /* where the core dump is */
    const char *logs;           /* directory with the full logs */
    struct known_reason reason; /* a known failure that its texts tell of */
    const char *hint;           /* what to try */
    const char *next;           /* what happens now: "starting all 4 ranks again ..." */
    int exit_code;              /* of the launcher, if it ends now; -1: the job is started again */
    bool colour;
};

/* For a terminal or a file. Heap, NULL: no memory; *ret_n: its length. */
char *report_text(const struct report *report, size_t *ret_n);

/* report_json.c. Likewise; one object and a newline. */
char *report_json(const struct report *report, size_t *ret_n);

/* True if both are the same failure seen again: same reason and code, whichever rank was first (when all fail at once
 * it is chance which one that is). */
bool failure_equal(const struct failure *a, const struct failure *b);

#endif
