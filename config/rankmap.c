/* SPDX-License-Identifier: MIT */
/* See rankmap.h. Two bits a rank. */
#include "rankmap.h"

#include <string.h>

unsigned rankmap_get(const struct rankmap *map, uint32_t rank)
{
    return rank < BOARD_MAX_RANKS ? map->packed[rank / 4] >> rank % 4 * 2 & RANKMAP_MAX : 0;
}

static void put(struct rankmap *map, uint32_t rank, unsigned value)
{
    map->packed[rank / 4] |= (uint8_t)(value << rank % 4 * 2);
    map->listed = rank < map->listed ? map->listed : rank + 1;
}

/* A rank in decimal digits; moves *text behind it. */
static bool take_rank(const char **text, uint32_t *ret)
{
    uint32_t rank = 0;
    const char *p = *text;
    for (; *p >= '0' && *p <= '9'; p++) {
        rank = rank * 10 + (uint32_t)(*p - '0');
        if (rank >= BOARD_MAX_RANKS)
            return false;
    }
    if (p == *text)
        return false;
    *text = p;
    *ret = rank;
    return true;
}

static bool take_value(const char **text, unsigned *ret)
{
    if (**text < '0' || **text > '0' + (char)RANKMAP_MAX)
        return false;
    *ret = (unsigned)(*(*text)++ - '0');
    return true;
}

/* Entries with a comma between any two, at least one. with_values: "rank:value", else "rank". */
static bool parse_entries(struct rankmap *map, const char *text, bool with_values)
{
    struct rankmap seen = {0}, made = {0};
    for (;;) {
        uint32_t rank;
        unsigned value = 1;
        if (!take_rank(&text, &rank))
            return false;
        if (with_values && (*text++ != ':' || !take_value(&text, &value)))
            return false;
        if (rankmap_get(&seen, rank) && rankmap_get(&made, rank) != value)
            return false;
        put(&seen, rank, 1);
        put(&made, rank, value);
        if (!*text)
            break;
        if (*text++ != ',')
            return false;
    }
    *map = made;
    return true;
}

bool rankmap_parse(struct rankmap *map, const char *text)
{
    unsigned value;
    const char *end = text;
    if (!take_value(&end, &value) || *end)
        return parse_entries(map, text, true);
    *map = (struct rankmap){0};
    memset(map->packed, (int)(value * 0x55), sizeof map->packed);
    return true;
}

bool rankmap_parse_list(struct rankmap *map, const char *text)
{
    return parse_entries(map, text, false);
}
