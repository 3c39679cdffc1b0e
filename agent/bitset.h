/* SPDX-License-Identifier: MIT */
/* A set of small numbers, as the kernel's masks and lists are: CPUs or memory nodes. */
#ifndef LAUNCH_AGENT_BITSET_H
#define LAUNCH_AGENT_BITSET_H

#include "../proto/base.h"

#include <stdbool.h>
#include <stdint.h>

#define BITSET_MAX 8192 /* the most CPUs that a kernel is built for */
#define BITSET_WORD 64

/* Zeroed: empty. A set can be handed to the kernel as a mask as it is (x86-64, AArch64: little endian words). */
struct bitset {
    uint64_t word[BITSET_MAX / BITSET_WORD];
};

/* i: 0 .. BITSET_MAX - 1; what is outside is in no set, and is not added. */
void bitset_add(struct bitset *set, int i);
bool bitset_has(const struct bitset *set, int i);

bool bitset_empty(const struct bitset *set);
unsigned bitset_count(const struct bitset *set);

/* The lowest member above `after`; -1: there is none. for (int i = -1; (i = bitset_next(set, i)) >= 0;) */
int bitset_next(const struct bitset *set, int after);

/* set becomes what both have; what either has; what the other has not. */
void bitset_and(struct bitset *set, const struct bitset *other);
void bitset_or(struct bitset *set, const struct bitset *other);
void bitset_minus(struct bitset *set, const struct bitset *other);

/* Reads the kernel's "0-3,8,10-11", blanks around it and nothing at all included. What is beyond BITSET_MAX is
 * left out. False: something else; set is empty then. */
bool bitset_parse(struct bitset *set, const char *text);

/* Writes the same, "" for none; what does not fit ends in "...". size: at least 4. Returns text. */
char *bitset_text(const struct bitset *set, char *text, size_t size);

#endif
