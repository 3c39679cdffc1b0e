/* SPDX-License-Identifier: MIT */
/* From the moment when the last rank calls launch_join() until it has returned in all of them: rank 0 prints it, in ns. */
#include "../../proto/clock.h"
#include "../../worker/launch.h"

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    struct launch *l;
    uint64_t called = clock_now_ns();
    int rc = launch_join(&l, 0);
    uint64_t mine[2] = {called, clock_now_ns()}, last[2] = {0, 0};
    size_t n = rc == LAUNCH_OK ? (size_t)launch_world_size(l) : 0;
    uint64_t(*all)[2] = calloc(n + 1, sizeof *all);
    if (!all || rc != LAUNCH_OK || launch_all_gather(l, mine, all, sizeof mine) != LAUNCH_OK)
        return 1;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++)
            last[k] = all[i][k] > last[k] ? all[i][k] : last[k];
    if (launch_rank(l) == 0)
        printf("%llu\n", (unsigned long long)(last[1] - last[0]));
    launch_leave(l);
    free(all);
    return 0;
}
