/* SPDX-License-Identifier: MIT */
#include "../../agent/pick.h"
#include "../harness.h"

static struct distances near;

/* GPUs i and j are in one switch of `sw`, in one root of `root`. */
static void machine(unsigned n, unsigned sw, unsigned root)
{
    near.n = n;
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; j < n; j++)
            near.at[i][j] = i == j                 ? PCI_SELF
                            : i / sw == j / sw     ? PCI_PIX
                            : i / root == j / root ? PCI_PHB
                                                   : PCI_SYS;
}

static unsigned cost(uint64_t set, uint64_t other)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < near.n; i++)
        for (unsigned j = 0; j < near.n; j++)
            if ((set & PICK_BIT(i)) && (other & PICK_BIT(j)))
                sum += near.at[i][j];
    return sum;
}

TEST(nothing_is_picked_of_too_few)
{
    machine(8, 2, 4);
    CHECK_INT(pick(&near, 0x3, 3), ==, 0);
    CHECK_INT(pick(&near, 0, 1), ==, 0);
    CHECK_INT(pick(&near, 0xff, 0), ==, 0);
    CHECK_INT(pick(&near, UINT64_MAX, 64), ==, UINT64_MAX);
}

TEST(gpus_of_one_switch_and_one_root_stay_together)
{
    machine(8, 2, 4);
    CHECK_INT(pick(&near, 0xff, 4), ==, 0x0f);
    CHECK_INT(pick(&near, 0xfe, 2), ==, 0x0c); /* not 1 and a stranger */
    CHECK_INT(pick(&near, 0xf1, 4), ==, 0xf0);
    CHECK_INT(pick(&near, 0xff, 2), ==, 0x03);
}

TEST(good_sets_are_left_for_the_next)
{
    machine(8, 4, 4);
    CHECK_INT(pick(&near, 0xf1, 1), ==, 0x01); /* and the four others stay whole */
    CHECK_INT(pick(&near, 0xf3, 2), ==, 0x03);
    CHECK_INT(pick(&near, 0x3f, 2), ==, 0x30);
    CHECK_INT(pick(&near, 0x1f, 1), ==, 0x10);
}

TEST(without_any_distance_the_lowest_are_taken)
{
    machine(8, 1, 1);
    CHECK_INT(pick(&near, 0xf4, 2), ==, 0x14);
}

TEST(a_large_server_is_divided_by_switches_too)
{
    machine(16, 4, 8);
    CHECK_INT(pick(&near, 0xffff, 4), ==, 0x000f);
    CHECK_INT(pick(&near, 0xfffe, 8), ==, 0xff00);
    CHECK_INT(pick(&near, 0xfff1, 1), ==, 0x0001);
    CHECK_INT(pick(&near, 0xff3f, 2), ==, 0x0030);
}

/* All machines of 8 GPUs, all free sets, all sizes: what is picked is as near as anything could be. */
TEST(no_other_set_is_nearer)
{
    static const unsigned SHAPES[][2] = {{8, 8}, {4, 8}, {2, 8}, {2, 4},
                                         {4, 4}, {1, 4}, {1, 2}, {3, 6}};
    for (size_t s = 0; s < sizeof SHAPES / sizeof SHAPES[0]; s++) {
        machine(8, SHAPES[s][0], SHAPES[s][1]);
        for (uint64_t free = 1; free < 256; free++) {
            unsigned best[9];
            memset(best, 0xff, sizeof best);
            for (uint64_t set = free; set; set = (set - 1) & free) {
                unsigned k = (unsigned)__builtin_popcountll(set), c = cost(set, set);
                best[k] = c < best[k] ? c : best[k];
            }
            for (unsigned k = 1; k <= (unsigned)__builtin_popcountll(free); k++) {
                uint64_t got = pick(&near, free, k);
                CHECK_INT(__builtin_popcountll(got), ==, k);
                CHECK_INT(got & ~free, ==, 0);
                CHECK_INT(cost(got, got), ==, best[k]);
            }
        }
    }
}
