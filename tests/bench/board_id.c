/* SPDX-License-Identifier: MIT */
/* board_id ROUNDS: how long a unique id is on its way. Rank 0 publishes as worker/nccl.c does, after the others have gone to
 * sleep (making a real id takes far longer than they look before they sleep); prints, for each round, the ns until the
 * last rank had it. A job: liblaunch brings main(). */
#include "../../proto/clock.h"
#include "../../worker/device.h"

#include <stdio.h>
#include <string.h>

#define MAKING_NS NS_PER_MS /* what ncclGetUniqueId() takes, about */

static void publish(struct board_head *head, uint32_t number)
{
    struct timespec t = {.tv_nsec = MAKING_NS};
    nanosleep(&t, NULL);
    memset(head->id, (int)number, sizeof head->id);
    head->id_published_ns = clock_now_ns();
    atomic_store_explicit(&head->id_generation, number, memory_order_release);
    board_wake(&head->id_generation);
}

static int await(const struct board *b, uint32_t number)
{
    uint64_t deadline_ns = clock_deadline_ns(10000);
    uint32_t epoch = atomic_load_explicit(&b->head->epoch, memory_order_acquire);
    return board_await_id(b, number, epoch, deadline_ns) == 0 ? LAUNCH_OK : LAUNCH_FAILED;
}

static void print_slowest(const struct board *b, uint32_t nranks)
{
    uint64_t last = 0;
    for (uint32_t rank = 0; rank < nranks; rank++) {
        uint64_t seen_ns = atomic_load(&board_slot(b, rank)->id_seen_ns);
        last = seen_ns > last ? seen_ns : last;
    }
    printf("%llu\n", (unsigned long long)(last - b->head->id_published_ns));
}

int launch_main(struct launch *l, int argc, char **argv)
{
    const struct board *b = launch_device_board(l);
    uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 200;
    for (uint32_t i = 1; i <= rounds; i++) {
        int rc = launch_barrier(l);
        if (rc == LAUNCH_OK && launch_rank(l) == 0)
            publish(b->head, i);
        else if (rc == LAUNCH_OK)
            rc = await(b, i);
        atomic_store(&launch_device_slot(l)->id_seen_ns, clock_now_ns());
        if (rc == LAUNCH_OK)
            rc = launch_barrier(l);
        if (rc != LAUNCH_OK)
            return rc;
        if (launch_rank(l) == 0)
            print_slowest(b, (uint32_t)launch_world_size(l));
    }
    return LAUNCH_OK;
}
