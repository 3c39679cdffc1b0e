/* SPDX-License-Identifier: MIT */
/* How many restarts each class of failure may use: "startup:2,hang:1". Classes: agent/restart.h says what falls into
 * which. */
#ifndef LAUNCH_CONFIG_LIMITS_H
#define LAUNCH_CONFIG_LIMITS_H

#include "../proto/base.h"

#include <stdint.h>

enum restart_class {
    RESTART_STARTUP, /* before any sign of progress */
    RESTART_SIGNAL,
    RESTART_HANG,
    RESTART_EXIT,
    RESTART_SAME, /* on top of the others: the same failure again and again */
    RESTART_CLASSES_N
};

#define LIMITS_NONE UINT32_MAX
#define LIMITS_MAX 1000000u

struct limits {
    uint32_t of[RESTART_CLASSES_N]; /* LIMITS_NONE: as many as there are */
};

extern const char *const LIMITS_NAMES[RESTART_CLASSES_N];

/* "none", or a list of class:number, each class at most once. -EINVAL: anything else. */
MUST_CHECK int limits_parse(struct limits *ret, const char *text);

#endif
