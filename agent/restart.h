/* SPDX-License-Identifier: MIT */
/* Pure: what to do after a failed attempt. No clock, no process, no loop; tests walk its whole domain. */
#ifndef LAUNCH_AGENT_RESTART_H
#define LAUNCH_AGENT_RESTART_H

#include "../proto/status.h"

#include <stdbool.h>
#include <stdint.h>

struct restart_policy {
    uint32_t max_restarts;
};

struct restart_history {
    uint32_t restarts;  /* made so far */
    enum reason reason; /* why the first failing rank of the last attempt failed */
    uint32_t
        same_in_row; /* attempts in a row, this one included, that ended with this same failure */
    bool stop_requested; /* by a signal from outside */
};

struct restart_verdict {
    bool again;
    uint64_t after_ms;
    const char *why; /* a phrase for the log: "no restarts are left" */
};

/* A first failure is tried again at once; the same failure again waits 100 ms, 200 ms, ... doubled up
 * to 30 s, so that a worker which dies at once does not spin the machine. What can't be started is not
 * tried again, nor is a job that was asked to end. */
struct restart_verdict restart_decide(const struct restart_policy *policy,
                                      const struct restart_history *history);

#endif
