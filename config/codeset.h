/* SPDX-License-Identifier: MIT */
/* Sets of ways in which a worker ends: exit codes, signals, hangs. Knows nothing of what is done about them. */
#ifndef LAUNCH_CONFIG_CODESET_H
#define LAUNCH_CONFIG_CODESET_H

#include "../proto/base.h"

#include <stdbool.h>
#include <stdint.h>

struct codeset {
    uint64_t codes[4]; /* bit n: exit code n, or death by signal n - 128 */
    uint64_t signals;  /* bit n - 1: death by signal n */
    uint64_t hang;     /* 0 or 1; as wide as the rest, so that there is no padding to compare */
};

/* "all", "none", or a list of: an exit code 1..255; a range "3-5"; a signal by its name; "signal" (any); "hang".
 * -EINVAL: anything else. */
MUST_CHECK int codeset_parse(struct codeset *ret, const char *text);

/* exit_code: that the launcher would give, 128+n for a signal. signal: 0 for an exit. */
bool codeset_has(const struct codeset *set, int exit_code, int signal, bool hang);

#endif
