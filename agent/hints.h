/* SPDX-License-Identifier: MIT */
/* What to try after a failure, by how it ended; what its texts tell is doctor/known.h's. Pure: facts in, one
 * sentence out. */
#ifndef LAUNCH_AGENT_HINTS_H
#define LAUNCH_AGENT_HINTS_H

#include "../proto/status.h"

#include <stdbool.h>

struct hint_facts {
    enum reason reason;
    int exit_code;   /* that the launcher gives for it */
    int signal;      /* 0: none */
    bool state_lost; /* all have come, and none has the job's state */
    bool core;       /* there is a core dump */
    bool oom;        /* the kernel's counters prove that memory ran out */
};

/* One sentence or two without a final newline; NULL: nothing is known. */
const char *hints_find(const struct hint_facts *facts);

#endif
