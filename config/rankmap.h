/* SPDX-License-Identifier: MIT */
/* A small number for every rank: which of its streams a setting is about. Knows text and ranks, not
 * what the numbers do. */
#ifndef LAUNCH_CONFIG_RANKMAP_H
#define LAUNCH_CONFIG_RANKMAP_H

#include "../proto/board.h"

#include <stdbool.h>

/* Values of a map. */
#define RANKMAP_STDOUT 1u
#define RANKMAP_STDERR 2u
#define RANKMAP_MAX 3u

/* Zeroed: 0 for every rank. Plain data, copied freely. */
struct rankmap {
    uint8_t packed[BOARD_MAX_RANKS / 4];
    uint32_t listed; /* highest rank that was named, plus one; 0: none was */
};

/* "3": for every rank; "0:3,10:1": for those ranks, 0 for the others. False: it is neither, or it says
 * two things about a rank; *map is unchanged. */
MUST_CHECK bool rankmap_parse(struct rankmap *map, const char *text);

/* "0,2,10": 1 for those ranks, 0 for the others. */
MUST_CHECK bool rankmap_parse_list(struct rankmap *map, const char *text);

/* 0 for a rank beyond BOARD_MAX_RANKS. */
unsigned rankmap_get(const struct rankmap *map, uint32_t rank);

#endif
