/* SPDX-License-Identifier: MIT */
#include "culprit.h"

#include "../proto/base.h"

#include <string.h>

bool culprit_is_consequence(const char *text, size_t n)
{
    static const char *const SIGNS[] = {
        "Connection reset by peer",
        "Connection closed by peer", /* gloo */
        "Connection closed by remote peer",
        "closed by remote peer", /* gloo, NCCL */
        "Broken pipe",
        "ncclRemoteError",
        "remote process exited",                   /* NCCL's words for it */
        "failed to recv, got 0 bytes",             /* the TCPStore was in the rank that died */
        "has left; a collective needs every rank", /* liblaunch */
        "the launcher asks the job to end", /* the same, to a rank that is ended with the others */
        "ConnectionResetError",
        "BrokenPipeError",
    };
    for (size_t i = 0; text && i < ARRAY_LEN(SIGNS); i++)
        if (memmem(text, n, SIGNS[i], strlen(SIGNS[i])))
            return true;
    return false;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

size_t culprit_pick(const struct culprit_candidate *c, size_t n, size_t first)
{
    if (!c[first].consequence)
        return first;
    size_t best = first;
    for (size_t i = 0; i < n; i++) {
        if (c[i].consequence || apart(c[i].ended_ns, c[first].ended_ns) > CULPRIT_WINDOW_NS)
            continue;
        if (best == first || c[i].ended_ns < c[best].ended_ns)
            best = i;
    }
    return best;
}
