/* SPDX-License-Identifier: MIT */
/* agent/hang_report.[ch]: equal ranks share a line, the suspect comes first, nothing a rank says does harm. */
#include "../../agent/hang_report.h"
#include "../harness.h"

#include <stdio.h>

#define N 8

static struct hang h;
static struct hang_rank ranks[N];
static struct evidence_rank evidence[N];
static struct hang_verdict verdict;

static void setup(void)
{
    hang_begin(&h, ranks, N, NS_PER_S, 1);
    memset(evidence, 0, sizeof evidence);
    verdict = (struct hang_verdict){.rank = 1, .why = HANG_STEP};
    for (unsigned i = 0; i < N; i++) {
        ranks[i].seen.step = i == 1 ? 4 : 5;
        evidence[i].parts = 2;
        evidence[i].proc =
            (struct evidence_proc){.state = 'S', .wait = "futex_wait", .call = "futex"};
        evidence[i].stacks = (struct stacks){.threads = 3, .n = 2};
        evidence[i].stacks.stack[0] =
            (struct stack){.threads = 1, .text = "syscall < barrier < main"};
        evidence[i].stacks.stack[1] = (struct stack){.threads = 1, .text = "poll < io"};
    }
    evidence[1].proc = (struct evidence_proc){.state = 'R'};
    snprintf(evidence[1].stacks.stack[0].text, STACKS_TEXT_BYTES, "spin < main");
}

static char *told(void)
{
    return hang_report(&h, &verdict, evidence, NULL, NULL);
}

static unsigned lines(const char *text)
{
    unsigned n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

TEST(equal_ranks_share_a_line_and_the_odd_one_comes_first)
{
    setup();
    char *text = told();
    CHECK(strncmp(text, "rank 1: step 4, runs on a CPU\n  main thread: spin < main\n", 30) == 0);
    CHECK_HAS(text, "\nranks 0, 2-7: step 5, sleeps in futex (futex_wait)\n"
                    "  main thread: syscall < barrier < main\n");
    CHECK_HAS(text, "  1 other thread: poll < io\n  and 1 more threads\n");
    CHECK_INT(lines(text), ==, 6);
    free(text);
}

TEST(who_ended_early_is_mentioned)
{
    setup();
    ranks[3].seen = (struct hang_facts){.ended_well = true};
    char *text = told();
    CHECK_HAS(text, "rank 3 ended early with 0");
    CHECK_HAS(text, "ranks 0, 2, 4-7:");
    ranks[4].seen = (struct hang_facts){.ended_well = true};
    ranks[5].seen = (struct hang_facts){0}; /* not with 0 */
    free(text);
    text = told();
    CHECK_HAS(text, "ranks 3, 4 ended early with 0");
    free(text);
}

TEST(stopped_dumping_and_unreadable_ranks_are_told_as_such)
{
    static const struct {
        struct evidence_proc proc;
        const char *words;
    } cases[] = {{{.state = 'T'}, "is stopped (state T)"},
                 {{.state = 'D', .wait = "nfs"}, "state D) in nfs"},
                 {{.state = 'S', .core = true}, "writes a core dump"},
                 {{.state = 't'}, "debugger"},
                 {{.state = 'Z'}, "zombie"},
                 {{.state = '?'}, "can't be looked at"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setup();
        evidence[1].proc = cases[i].proc;
        char *text = told();
        CHECK_HAS(text, cases[i].words);
        free(text);
    }
}

TEST(what_is_missing_has_a_reason)
{
    setup();
    evidence[1].stacks = (struct stacks){.why = "ptrace: Operation not permitted"};
    char *text = told();
    CHECK_HAS(text, "no stack: ptrace: Operation not permitted");
    free(text);
    evidence[1].parts = 1;
    text = told();
    CHECK_HAS(text, "no stack: there was no time");
    free(text);
    evidence[1].parts = 0;
    text = told();
    CHECK_HAS(text, "rank 1: step 4, not looked at");
    free(text);
    text = hang_report(&h, &verdict, NULL, "fork: no", NULL);
    CHECK_HAS(text, "no evidence could be taken: fork: no");
    free(text);
}

TEST(the_report_stays_short_when_every_rank_is_elsewhere)
{
    setup();
    for (unsigned i = 0; i < N; i++)
        ranks[i].seen.step = 10 + i;
    char *text = told();
    CHECK_HAS(text, "3 more ranks are elsewhere");
    CHECK(lines(text) <= 13);
    free(text);
}

TEST(texts_without_an_end_and_impossible_numbers_do_no_harm)
{
    setup();
    memset(evidence, 0x41, sizeof evidence);
    for (unsigned i = 0; i < N; i++)
        evidence[i].parts = 2;
    char *text = told();
    CHECK(text && strlen(text) < 20000);
    free(text);
}

TEST(the_last_status_of_the_suspect_is_shown)
{
    setup();
    struct notify_rank notes[N] = {
        [1] = {.status = "saving", .stopping = true}, [2] = {.status = "no"}};
    char *text = hang_report(&h, &verdict, evidence, NULL, notes);
    CHECK_HAS(text, "its last STATUS: saving (it was stopping)\n");
    free(text);
}

TEST(lists_of_ranks_are_short)
{
    char text[80];
    bool flags[200] = {false};
    for (unsigned i = 0; i < 200; i += 2)
        flags[i] = true;
    hang_report_list(flags, 200, text, sizeof text);
    CHECK(strlen(text) < sizeof text);
    CHECK_HAS(text, ", ...");
    for (unsigned i = 0; i < 200; i++)
        flags[i] = true;
    hang_report_list(flags, 200, text, sizeof text);
    CHECK_STR(text, "ranks 0-199");
    hang_report_list(flags, 2, text, sizeof text);
    CHECK_STR(text, "ranks 0, 1");
}
