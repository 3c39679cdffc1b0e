/* SPDX-License-Identifier: MIT */
#include "turn.h"

#include <stdlib.h>
#include <string.h>

static unsigned count(uint64_t set)
{
    return (unsigned)__builtin_popcountll(set);
}

/* One that waits for `ask`, has `free` of its GPUs free and is served once enough of the jobs that hold the others have
 * ended. Whether it may have to wait for one more of them when `less` of its free ones are gone: there is then a
 * set of jobs whose end would have been just enough. */
static bool delays(const struct turn_table *table, const struct turn_ask *ask, unsigned free,
                   unsigned less)
{
    bool reached[GPU_MAX + 1] = {true}; /* sums of GPUs that the ends of some jobs may free */
    for (unsigned i = 0; i < table->jobs; i++) {
        unsigned size = count(table->held[i] & ask->among);
        for (unsigned sum = GPU_MAX; size && sum >= size; sum--)
            reached[sum] |= reached[sum - size];
    }
    for (unsigned sum = 0; sum <= GPU_MAX; sum++)
        if (reached[sum] && free + sum >= ask->wants && free + sum < ask->wants + less)
            return true;
    return false;
}

static int by_ticket(const void *a, const void *b)
{
    uint64_t x = ((const struct turn_ask *)a)->ticket, y = ((const struct turn_ask *)b)->ticket;
    return (x > y) - (x < y);
}

uint64_t turn_grant(const struct turn_table *table, const struct turn_ask *job)
{
    struct turn_ask ask[GPU_MAX];
    unsigned n = 0;
    uint64_t free = table->free, mine = job->among;
    for (unsigned i = 0; i < table->asks; i++)
        if (table->ask[i].ticket < job->ticket)
            ask[n++] = table->ask[i];
    qsort(ask, n, sizeof ask[0], by_ticket);
    for (unsigned i = 0; i < n; i++) {
        uint64_t its = free & ask[i].among, served = pick(&table->near, its, ask[i].wants);
        if (served)
            free &= ~served; /* it is about to take them */
        else if (delays(table, &ask[i], count(its), job->wants))
            mine &= ~ask[i].among;
    }
    return pick(&table->near, free & mine, job->wants);
}

unsigned turn_before(const struct turn_table *table, const struct turn_ask *job)
{
    unsigned before = 0;
    for (unsigned i = 0; i < table->asks; i++)
        before += table->ask[i].ticket < job->ticket;
    return before;
}
