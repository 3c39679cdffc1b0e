/* SPDX-License-Identifier: MIT */
/* What to do after a failed attempt: again, after how long, or give up and why. restart_decide() is pure: no clock, no
 * dice, no process, no loop; tests walk its whole domain.
 *
 * A failure is of one class: start-up (before any sign of progress), signal, hang, or exit. A restart counts against
 * --max-restarts and against the limit of its class until it is older than --restart-window, or until the history is
 * emptied after progress (--restart-refill). The first failure is tried again at once; the same failure again waits
 * 100 ms, 200 ms, ... doubled up to 30 s, each with up to a quarter on top by chance, so that a worker which dies at
 * once does not spin the machine, nor do many jobs come back in step. */
#ifndef LAUNCH_AGENT_RESTART_H
#define LAUNCH_AGENT_RESTART_H

#include "../config/spec.h"
#include "../proto/status.h"

#include <stdbool.h>
#include <stdint.h>

/* A failure this soon after the start, of a program that gives no other sign of progress, is a start-up crash. */
#define RESTART_STARTUP_S 10.0

struct restart_policy {
    uint32_t max_restarts;
    uint64_t window_ms; /* 0: restarts count for ever */
    struct limits limits;
    struct codeset on, not_on; /* not_on wins */
};

/* How the attempt ended. */
struct restart_failure {
    enum reason reason;
    int exit_code; /* that the launcher would give for it */
    int signal;    /* that killed the worker; 0: none did */
    bool started;  /* it had shown some progress */
    bool gpu_out;  /* a GPU that the next attempt would use is in quarantine */
};

/* A restart that was made, or, where no window makes its time matter, all of its class: a job may be started again for ever. */
struct restart_past {
    uint64_t at_ms; /* of any clock that never goes back */
    enum restart_class class;
    uint32_t times;
};

struct restart_history {
    struct restart_past *past; /* owned: those that may still count, oldest first */
    size_t n, room;
    uint32_t
        same_in_row; /* attempts in a row, this one included, that ended with this same failure */
    bool stop_requested; /* from outside, or by the job's deadline */
};

struct restart_verdict {
    bool again;
    uint64_t after_ms;
    uint32_t counted; /* restarts that count against --max-restarts, without this one */
    bool spent;       /* nothing but the number of restarts forbids another one */
    enum restart_class class;
    const char *why; /* a phrase for the log: "no restarts are left" */
};

/* jitter: any number, the more evenly drawn the better. */
struct restart_verdict restart_decide(const struct restart_policy *policy,
                                      const struct restart_history *history,
                                      const struct restart_failure *failure, uint64_t now_ms,
                                      uint32_t jitter);

struct restart_policy restart_policy_of(const struct job_spec *spec);

/* Notes a restart that is made now and forgets those that can't count any more. -ENOMEM. */
MUST_CHECK int restart_remember(struct restart_history *history,
                                const struct restart_policy *policy, enum restart_class class,
                                uint64_t now_ms);

/* The job has got further than ever before: all its restarts are there again. */
void restart_refill(struct restart_history *history);

/* Takes a zeroed one too. */
void restart_finish(struct restart_history *history);

#endif
