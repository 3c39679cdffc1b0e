/* SPDX-License-Identifier: MIT */
/* The tail against the plain definition, over many ways to cut the same bytes in pieces. */
#include "../../agent/tail.h"
#include "../harness.h"

#include <stdlib.h>

#define TOTAL 40000

/* The last TAIL_BYTES of n bytes, from a line start when there is one. */
static size_t expected_start(const char *all, size_t n)
{
    size_t at = n > TAIL_BYTES ? n - TAIL_BYTES : 0;
    if (at == 0 || all[at - 1] == '\n')
        return at;
    for (size_t i = at; i + 1 < n; i++)
        if (all[i] == '\n')
            return i + 1;
    return at;
}

static void follow(unsigned seed, size_t largest_piece, int newline_every)
{
    static char all[TOTAL];
    struct tail tail = {0};
    for (size_t i = 0; i < TOTAL; i++)
        all[i] = rand_r(&seed) % newline_every ? (char)rand_r(&seed) : '\n';
    for (size_t n = 0; n < TOTAL;) {
        size_t piece = 1 + (size_t)rand_r(&seed) % largest_piece, shown;
        piece = piece < TOTAL - n ? piece : TOTAL - n;
        tail_add(&tail, all + n, piece);
        n += piece;
        const char *text = tail_text(&tail, &shown);
        size_t start = expected_start(all, n);
        CHECK_INT(shown, ==, n - start);
        CHECK(memcmp(text, all + start, shown) == 0);
    }
    tail_finish(&tail);
}

TEST(the_tail_is_the_end_whatever_the_pieces)
{
    static const size_t pieces[] = {50, 1000, TAIL_BYTES, 2 * TAIL_BYTES, TOTAL};
    for (unsigned i = 0; i < 5; i++)
        for (int newlines = 2; newlines <= 20000; newlines *= 10)
            follow(i, pieces[i], newlines);
}

TEST(an_untouched_tail_is_empty_and_costs_nothing)
{
    struct tail tail = {0};
    size_t n;
    CHECK_STR(tail_text(&tail, &n), "");
    CHECK_INT(n, ==, 0);
    CHECK(!tail.bytes);
    tail_finish(&tail);
    tail_finish(NULL);
}
