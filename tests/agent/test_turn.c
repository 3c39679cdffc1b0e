/* SPDX-License-Identifier: MIT */
#include "../../agent/turn.h"
#include "../harness.h"

static struct turn_table table;

static void held_by(unsigned jobs, const uint64_t *held)
{
    table = (struct turn_table){.free = 0xff, .jobs = jobs};
    for (unsigned i = 0; i < jobs; i++) {
        table.held[i] = held[i];
        table.free &= ~held[i];
    }
}

static void waits(uint64_t ticket, uint64_t among, unsigned wants)
{
    table.ask[table.asks++] = (struct turn_ask){ticket, among, wants};
}

static uint64_t asks(uint64_t ticket, uint64_t among, unsigned wants)
{
    return turn_grant(&table, &(struct turn_ask){ticket, among, wants});
}

TEST(a_job_alone_gets_what_is_free)
{
    held_by(1, (uint64_t[]){0x0f});
    CHECK_INT(asks(1, 0xff, 4), ==, 0xf0);
    CHECK_INT(asks(1, 0xff, 5), ==, 0);
    CHECK_INT(asks(1, 0xf3, 4), ==, 0xf0);
    CHECK_INT(asks(1, 0x0f, 1), ==, 0);
}

TEST(who_came_first_is_served_first)
{
    held_by(0, NULL);
    waits(1, 0xff, 6);
    CHECK_INT(asks(2, 0xff, 2), ==, 0xc0); /* what the first one leaves */
    CHECK_INT(asks(2, 0xff, 3), ==, 0);
    waits(3, 0xff, 8); /* later: it does not count */
    CHECK_INT(asks(2, 0xff, 2), ==, 0xc0);
    CHECK_INT(turn_before(&table, &(struct turn_ask){.ticket = 2}), ==, 1);
}

TEST(a_small_job_may_not_delay_a_large_one)
{
    held_by(2, (uint64_t[]){0x03, 0x0c});
    waits(1, 0xff, 6); /* the end of either is enough for it */
    CHECK_INT(asks(2, 0xff, 1), ==, 0);
    held_by(2, (uint64_t[]){0x03, 0x0c});
    waits(1, 0xff, 8); /* needs all */
    CHECK_INT(asks(2, 0xff, 1), ==, 0);
}

TEST(a_small_job_passes_a_large_one_that_it_does_not_delay)
{
    held_by(1, (uint64_t[]){0x0f});
    waits(1, 0xff, 6); /* waits for the end of the one that holds four; then two are left over */
    CHECK_INT(asks(2, 0xff, 2), ==, 0x30);
    CHECK_INT(asks(2, 0xff, 3), ==, 0);
    held_by(1, (uint64_t[]){0x0f});
    waits(1, 0x0f, 4); /* wants none of those */
    CHECK_INT(asks(2, 0xff, 4), ==, 0xf0);
}

TEST(a_job_that_can_never_be_served_delays_nobody)
{
    held_by(1, (uint64_t[]){0x0f});
    waits(1, 0, 4); /* of GPUs that are not ours to see */
    waits(2, 0xff, 64);
    CHECK_INT(asks(3, 0xff, 4), ==, 0xf0);
}

/* Every pair of holders, every wish of one that waits and of one that would pass it: if that one is let through, the first
 * is served after the same ends as without it. */
TEST(whoever_ends_first_nobody_waits_longer)
{
    for (unsigned cut = 0; cut < 256; cut++) {
        uint64_t a = cut & 0x0f, b = cut & 0xf0;
        for (unsigned first = 1; first <= 8; first++) {
            for (unsigned second = 1; second <= 8; second++) {
                held_by(2, (uint64_t[]){a, b});
                waits(1, 0xff, first);
                unsigned free = (unsigned)__builtin_popcountll(table.free);
                uint64_t got = asks(2, 0xff, second);
                if (!got || free >= first)
                    continue;
                for (unsigned ends = 0; ends < 4; ends++) {
                    unsigned then = free + (ends & 1 ? (unsigned)__builtin_popcountll(a) : 0) +
                                    (ends & 2 ? (unsigned)__builtin_popcountll(b) : 0);
                    CHECK_INT(then >= first, ==, then - second >= first);
                }
            }
        }
    }
}
