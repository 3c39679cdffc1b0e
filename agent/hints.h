/* SPDX-License-Identifier: MIT */
/* What to try after a failure, found by its signature in a table. Pure: facts in, one sentence out. */
#ifndef LAUNCH_AGENT_HINTS_H
#define LAUNCH_AGENT_HINTS_H

#include "../proto/status.h"

#include <stdbool.h>
#include <stddef.h>

#define HINTS_TEXTS 3

struct hint_facts {
    enum reason reason;
    int exit_code; /* that the launcher gives for it */
    int signal;    /* 0: none */
    bool oom;      /* the kernel's counters prove that memory ran out */
    struct hint_text {
        const char *text; /* last lines of stderr, error text, traceback; NULL: not there */
        size_t n;
    } texts[HINTS_TEXTS];
};

/* One sentence or two without a final newline; NULL: nothing is known. */
const char *hints_find(const struct hint_facts *facts);

#endif
