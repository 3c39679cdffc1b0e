/* SPDX-License-Identifier: MIT */
/* Which rank's failure is named first. Pure. When one rank dies, its peers notice within moments ("Connection reset by
 * peer") and may be gone before it: a big process takes long to die. Such a failure is only a consequence. */
#ifndef LAUNCH_AGENT_CULPRIT_H
#define LAUNCH_AGENT_CULPRIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CULPRIT_WINDOW_NS 200000000ull

struct culprit_candidate {
    uint32_t rank;
    uint64_t ended_ns;
    bool consequence;
};

/* The last lines that a rank wrote, or its error text, say that a peer or the network went away. */
bool culprit_is_consequence(const char *text, size_t n);

/* Index of the one to be named: `first`, which was noticed first, unless that is a consequence and another one, which
 * is none, ended within the window; of several the earliest. n > 0. */
size_t culprit_pick(const struct culprit_candidate *candidates, size_t n, size_t first);

#endif
