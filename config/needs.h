/* SPDX-License-Identifier: MIT */
/* Settings that do nothing unless another one is set: what each row of the table needs, and the line that tells a user who
 * has set the one and not the other. No error: a job file may hold what only some runs make use of. */
#ifndef LAUNCH_CONFIG_NEEDS_H
#define LAUNCH_CONFIG_NEEDS_H

#include "spec.h"

enum need {
    NEED_NOTHING,
    NEED_RESTARTS,    /* something is started again, or gone on without */
    NEED_RESTARTABLE, /* ... if there are restarts */
    NEED_HEALING,
    NEED_SHRINKING,
    NEED_STANDBYS,
    NEED_LEASE,
    NEED_CHOSEN_GPUS,
    NEED_LOG_FILES,
    NEED_ROTATION,
    NEEDS_N
};

/* "--max-restarts=N": the option comes first, there may be words behind it. NULL for NEED_NOTHING. */
const char *need_text(enum need need);

bool need_is_met(enum need need, const struct job_spec *spec);

/* From row *at on, the next setting that was given and has no effect, as one line for the user; *at is then the row behind it.
 * False: there is no more. Not told are defaults, given as they are, the defaults of a login (variables), and what lacks
 * something that a source which goes before has taken away (a job file's, when the command line says --max-restarts=0). */
#define NEED_LINE_BYTES 512
bool need_next_idle(const struct job_spec *spec, size_t *at, char line[NEED_LINE_BYTES]);

#endif
