/* SPDX-License-Identifier: MIT */
/* What a person reads when a job fails: who failed first and how, in a few lines. Text in, text out; knows
 * nothing of processes. */
#ifndef LAUNCH_AGENT_REPORT_H
#define LAUNCH_AGENT_REPORT_H

#include "../proto/board.h"
#include "../proto/status.h"

#include <stdbool.h>

/* The first failure of an attempt. */
struct failure {
    bool happened;
    bool has_rank; /* false: not a worker's: `what` says all */
    uint32_t rank;
    pid_t pid;
    enum reason reason;
    int exit_code;                     /* that the launcher would give for it */
    double after_s;                    /* since the worker was started */
    char what[512];                    /* "exited with code 3", one line */
    const char *evidence;              /* borrowed: whole lines to be shown; NULL: none */
    char error[BOARD_ERROR_BYTES + 1]; /* what the worker told through liblaunch; empty: nothing */
};

/* Writes the report of an attempt. tail: last bytes of the culprit's stderr, NULL if it went straight to the terminal.
 * stopped: ranks that were ended because of it. next: what happens now ("restarts as attempt 2 of 3 ...").
 * LAUNCH_LOG's place to go is the log; this returns a heap text (NULL: no memory) of *ret_n bytes. */
char *report_text(const struct failure *failure, const char *program, uint32_t world_size,
                  uint32_t stopped, const char *tail, size_t tail_n, const char *next,
                  size_t *ret_n);

/* True if both are the same failure seen again: same reason and code, whichever rank was first. */
bool failure_equal(const struct failure *a, const struct failure *b);

#endif
