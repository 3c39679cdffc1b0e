/* SPDX-License-Identifier: MIT */
#include "../../agent/report.h"
#include "../harness.h"

#include <stdio.h>
#include <stdlib.h>

static const struct failure crash = {.happened = true,
                                     .has_rank = true,
                                     .rank = 3,
                                     .pid = 4711,
                                     .reason = REASON_EXIT,
                                     .exit_code = 7,
                                     .after_s = 1.5,
                                     .what = "exited with code 7"};

TEST(the_report_names_program_rank_cause_and_what_happens_now)
{
    size_t n;
    char *text =
        report_text(&crash, "./job", 8, 7, NULL, 0, "exit code 7; no restarts are left", &n);
    CHECK_HAS(text,
              "./job: rank 3 of 8 failed first: it exited with code 7 (pid 4711, after 1.5 s)");
    CHECK_HAS(text, "the other 7 ranks still running were ended because of it");
    CHECK_HAS(text, "exit code 7; no restarts are left\n");
    CHECK_INT(n, ==, strlen(text));
    free(text);
}

TEST(the_report_shows_the_last_lines_of_stderr_without_terminal_controls)
{
    char tail[4096] = "";
    for (int i = 0; i < 30; i++)
        snprintf(tail + strlen(tail), sizeof tail - strlen(tail), "line %d\n", i);
    strcat(tail, "\x1b]0;evil\x07 last, without newline");
    size_t n;
    char *text = report_text(&crash, "x", 4, 0, tail, strlen(tail), NULL, &n);
    CHECK_HAS(text, "| line 29\n");
    CHECK_HAS(text, "| ?]0;evil? last, without newline\n");
    CHECK(!strstr(text, "| line 20\n"));
    CHECK(!memchr(text, '\x1b', n));
    free(text);
}

TEST(the_report_stays_short_whatever_a_worker_wrote)
{
    char *tail = malloc(100000);
    memset(tail, 'x', 100000);
    size_t n;
    char *text = report_text(&crash, "x", 4, 3, tail, 100000, "now", &n);
    CHECK(n < 2000);
    free(text);
    free(tail);
}

TEST(a_failure_without_a_rank_is_told_as_it_is)
{
    struct failure f = {.happened = true, .what = "rank 2 can't be started: fork: no"};
    size_t n;
    char *text = report_text(&f, "job", 4, 0, NULL, 0, NULL, &n);
    CHECK_STR(text, "launch: job: rank 2 can't be started: fork: no\n");
    free(text);
}

TEST(evidence_stands_between_the_cause_and_what_happens_now)
{
    struct failure f = crash;
    size_t n;
    f.evidence = "rank 3: sleeps\n  main thread: f < main\nrank 4: runs\n";
    char *text = report_text(&f, "x", 8, 0, "tail\n", 5, "now", &n);
    CHECK_HAS(text, "1.5 s)\nlaunch:   rank 3: sleeps\nlaunch:     main thread: f < main\n"
                    "launch:   rank 4: runs\nlaunch:   its last lines");
    free(text);
}

TEST(the_same_failure_is_recognised_whichever_rank_was_first)
{
    struct failure other = crash;
    other.rank = 1;
    CHECK(failure_equal(&crash, &other));
    other.exit_code = 8;
    CHECK(!failure_equal(&crash, &other));
    struct failure none = {0};
    CHECK(!failure_equal(&none, &none));
}
