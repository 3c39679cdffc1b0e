/* SPDX-License-Identifier: MIT */
#include "../../agent/macro.h"
#include "../../proto/base.h"
#include "../harness.h"

static const struct {
    const char *text, *rank7; /* NULL: nothing is replaced */
} CASES[] = {
    {"${local_rank}", "7"},
    {"$local_rank", "7"},
    {"out-$local_rank.txt", "out-7.txt"},
    {"${local_rank}${local_rank}", "77"},
    {"a${local_rank}b$local_rank-c", "a7b7-c"},
    {"$$$local_rank", "$$7"},
    /* The escape of the macro itself. */
    {"$${local_rank}", "${local_rank}"},
    {"$$local_rank", "$local_rank"},
    {"$$local_rank $local_rank", "$local_rank 7"},
    /* Whatever is not it. */
    {"$local_rank2", NULL},
    {"$local_rank_", NULL},
    {"$LOCAL_RANK", NULL},
    {"${LOCAL_RANK}", NULL},
    {"${rank}", NULL},
    {"$rank", NULL},
    {"${local_rank", NULL},
    {"${ local_rank}", NULL},
    {"${local_rank:-0}", NULL},
    {"{local_rank}", NULL},
    {"local_rank", NULL},
    {"$", NULL},
    {"", NULL},
    {"$$", NULL},
    {"$$$", NULL},
    {"pa$$word", NULL},
    {"^a$|^b$$", NULL},
    {"$$rank", NULL},
};

TEST(only_local_rank_is_replaced_in_an_argument)
{
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        const char *want = CASES[i].rank7 ? CASES[i].rank7 : CASES[i].text;
        AUTO_FREE char *got = macro_expand(CASES[i].text, 7);
        CHECK_STR(got, want);
        CHECK(macro_in(CASES[i].text) == (CASES[i].rank7 != NULL));
    }
}

TEST(two_dollars_stay_two_dollars_though_torchrun_makes_them_one)
{
    AUTO_FREE char *got = macro_expand("a$$b $$ $$$$ ${local_rank}", 12);
    CHECK_STR(got, "a$$b $$ $$$$ 12");
}
