/* SPDX-License-Identifier: MIT */
/* Ranks for a message: "0, 3, 5 and 12 more". Any thread with a list of its own. */
#ifndef LAUNCH_PROTO_RANKLIST_H
#define LAUNCH_PROTO_RANKLIST_H

#include <stddef.h>
#include <stdint.h>

struct ranklist {
    char *text; /* borrowed; always ends with NUL */
    size_t size, used;
    uint32_t n, most;
};

/* Names the first `most` ranks and counts the others. size: not 0; what has no room is cut. */
void ranklist_begin(struct ranklist *list, char *text, size_t size, uint32_t most);
void ranklist_add(struct ranklist *list, uint32_t rank);

/* Adds how many were not named; returns how many there are. */
uint32_t ranklist_end(struct ranklist *list);

#endif
