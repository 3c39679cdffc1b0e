/* SPDX-License-Identifier: MIT */
#include "../../agent/culprit.h"
#include "../../proto/base.h"
#include "../harness.h"

#define MS 1000000ull

TEST(words_of_a_peer_that_went_away_are_a_consequence)
{
    static const char *const CONSEQUENCES[] = {
        "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:1",
        "recv: Connection reset by peer",
        ("ncclRemoteError: A call failed possibly due to a network error or a remote process "
         "exiting"),
        "write: Broken pipe",
        "rank 1 has left; a collective needs every rank",
        "DistNetworkError: failed to recv, got 0 bytes",
    };
    static const char *const CAUSES[] = {"", "ValueError: boom", "CUDA error: out of memory",
                                         "Address already in use"};
    for (size_t i = 0; i < ARRAY_LEN(CONSEQUENCES); i++)
        CHECK(culprit_is_consequence(CONSEQUENCES[i], strlen(CONSEQUENCES[i])));
    for (size_t i = 0; i < ARRAY_LEN(CAUSES); i++)
        CHECK(!culprit_is_consequence(CAUSES[i], strlen(CAUSES[i])));
    CHECK(!culprit_is_consequence(NULL, 0));
    CHECK(!culprit_is_consequence("Broken pipe", 10));
}

TEST(the_first_is_named_unless_it_is_a_consequence)
{
    struct culprit_candidate c[] = {
        {0, 100 * MS, true}, {1, 150 * MS, false}, {2, 120 * MS, false}};
    CHECK_INT(culprit_pick(c, 3, 1), ==, 1);
    CHECK_INT(culprit_pick(c, 3, 0), ==, 2);
    CHECK_INT(culprit_pick(c, 1, 0), ==, 0);
}

TEST(outside_the_moment_nobody_takes_the_place_of_the_first)
{
    for (uint64_t ms = 0; ms <= 400; ms++) {
        struct culprit_candidate c[] = {{0, 1000 * MS, true}, {1, (1000 + ms) * MS, false}};
        CHECK_INT(culprit_pick(c, 2, 0), ==, ms <= 200);
        c[1].ended_ns = (1000 - ms) * MS;
        CHECK_INT(culprit_pick(c, 2, 0), ==, ms <= 200);
    }
}

/* All sets of up to four ranks with one of three times and either kind. */
TEST(the_whole_domain_of_four_ranks)
{
    for (unsigned code = 0; code < 6 * 6 * 6 * 6; code++)
        for (size_t first = 0; first < 4; first++) {
            static const uint64_t TIMES[] = {1000 * MS, 1100 * MS, 1250 * MS};
            struct culprit_candidate c[4];
            for (unsigned i = 0, rest = code; i < 4; i++, rest /= 6)
                c[i] = (struct culprit_candidate){i, TIMES[rest % 6 % 3], rest % 6 >= 3};
            size_t got = culprit_pick(c, 4, first);
            if (!c[first].consequence || got == first) {
                CHECK_INT(got, ==, first);
                continue;
            }
            CHECK(!c[got].consequence);
            for (unsigned i = 0; i < 4; i++)
                CHECK(c[i].consequence || c[i].ended_ns >= c[got].ended_ns ||
                      c[first].ended_ns - c[i].ended_ns > 200 * MS);
        }
}
