/* SPDX-License-Identifier: MIT */
#include "pick.h"

#define ALL_SETS_MAX 10 /* of so many, all sets are tried */

static unsigned count(uint64_t set)
{
    return (unsigned)__builtin_popcountll(set);
}

/* Of one GPU to all of a set. */
static unsigned sum(const struct distances *d, unsigned from, uint64_t set)
{
    unsigned total = 0;
    for (; set; set &= set - 1)
        total += d->at[from][__builtin_ctzll(set)];
    return total;
}

/* Of all pairs with one GPU in each set (a pair inside both sets counts twice). */
static unsigned sum_pairs(const struct distances *d, uint64_t a, uint64_t b)
{
    unsigned total = 0;
    for (uint64_t left = a; left; left &= left - 1)
        total += sum(d, (unsigned)__builtin_ctzll(left), b);
    return total;
}

/* From a first GPU on, always the nearest to those chosen; of several the one farthest from what stays free. */
static uint64_t grow(const struct distances *d, uint64_t free, unsigned k, unsigned first)
{
    uint64_t chosen = PICK_BIT(first);
    while (count(chosen) < k) {
        unsigned best = 0, best_near = 0, best_far = 0;
        uint64_t best_bit = 0;
        for (uint64_t left = free & ~chosen; left; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctzll(left);
            unsigned near = sum(d, i, chosen), far = sum(d, i, free & ~chosen);
            if (best_bit && (near > best_near || (near == best_near && far <= best_far)))
                continue;
            best = i;
            best_near = near;
            best_far = far;
            best_bit = PICK_BIT(best);
        }
        chosen |= best_bit;
    }
    return chosen;
}

/* The best set so far. */
struct best {
    uint64_t set;
    unsigned near, far;
};

static void consider(struct best *best, const struct distances *d, uint64_t free, uint64_t set)
{
    unsigned near = sum_pairs(d, set, set), far = sum_pairs(d, set, free & ~set);
    bool better =
        !best->set || near < best->near ||
        (near == best->near && (far > best->far || (far == best->far && set < best->set)));
    if (better)
        *best = (struct best){set, near, far};
}

uint64_t pick(const struct distances *d, uint64_t free, unsigned k)
{
    struct best best = {0};
    if (k == 0 || count(free) < k)
        return 0;
    if (count(free) <= ALL_SETS_MAX) {
        for (uint64_t set = free; set; set = (set - 1) & free)
            if (count(set) == k)
                consider(&best, d, free, set);
        return best.set;
    }
    for (uint64_t left = free; left; left &= left - 1)
        consider(&best, d, free, grow(d, free, k, (unsigned)__builtin_ctzll(left)));
    return best.set;
}
