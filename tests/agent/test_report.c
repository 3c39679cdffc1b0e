/* SPDX-License-Identifier: MIT */
#include "../../agent/report.h"
#include "../../agent/json.h"
#include "../../proto/base.h"
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

static struct report plain(void)
{
    return (struct report){
        .failure = &crash, .program = "./job", .run_id = "r1", .world_size = 8, .exit_code = 7};
}

static char *text_of(const struct report *r)
{
    size_t n;
    char *text = report_text(r, &n);
    CHECK_INT(n, ==, strlen(text));
    return text;
}

static unsigned lines_of(const char *text)
{
    unsigned lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

TEST(the_report_names_program_rank_cause_and_what_happens_now)
{
    struct report r = plain();
    r.stopped = 7;
    r.next = "exit code 7; no restarts are left";
    char *text = text_of(&r);
    CHECK_HAS(text,
              "./job: rank 3 of 8 failed first: it exited with code 7 (pid 4711, after 1.5 s)");
    CHECK_HAS(text, "the other 7 ranks still running were ended because of it");
    CHECK_HAS(text, "exit code 7; no restarts are left\n");
    CHECK(!strchr(text, '\x1b'));
    free(text);
    r.colour = true;
    text = text_of(&r);
    CHECK_HAS(text, "\x1b[1;31mlaunch: ./job: rank 3");
    free(text);
}

TEST(the_report_tells_the_wall_clock_time)
{
    struct failure f = crash;
    struct report r = plain();
    r.failure = &f;
    f.at = 1795955969;
    setenv("TZ", "UTC", 1);
    char *text = text_of(&r);
    CHECK_HAS(text, "(pid 4711, 2026-11-29 12:39:29, after 1.5 s)");
    free(text);
}

TEST(the_report_shows_the_last_lines_of_stderr_without_terminal_controls)
{
    char tail[4096] = "";
    for (int i = 0; i < 30; i++)
        snprintf(tail + strlen(tail), sizeof tail - strlen(tail), "line %d\n", i);
    strcat(tail, "\x1b]0;evil\x07 \xc2\x9b! \xc3\xa4 last, without newline");
    struct report r = plain();
    r.tail = tail;
    r.tail_n = strlen(tail);
    char *text = text_of(&r);
    CHECK_HAS(text, "| line 29\n");
    CHECK_HAS(text, "| ?]0;evil? ?\?! \xc3\xa4 last, without newline\n");
    CHECK(!strstr(text, "| line 20\n"));
    CHECK(!strchr(text, '\x1b'));
    free(text);
}

TEST(the_report_stays_short_whatever_a_worker_wrote)
{
    static char many[4001], wide[100000];
    for (size_t i = 0; i < 2000; i++)
        memcpy(many + 2 * i, "x\n", 2);
    memset(wide, 'y', sizeof wide - 1);
    struct errorfile said = {.message = "ValueError: boom\nand more"};
    memcpy(said.traceback, many, 4000);
    struct report_other others[REPORT_OTHERS] = {{.what = "exited with code 1"},
                                                 {.what = "exited with code 1"},
                                                 {.what = "exited with code 1"}};
    struct failure f = crash;
    struct report r = plain();
    r.failure = &f;
    for (int bits = 0; bits < 1 << 10; bits++) {
        bool known = bits & 512;
        r.reason = (struct known_reason){known ? &KNOWN[0] : NULL, known ? wide : NULL, 99000};
        r.tail = bits & 1 ? many : wide;
        r.tail_n = strlen(r.tail);
        r.said = bits & 2 ? &said : NULL;
        f.evidence = bits & 4 ? many : NULL;
        r.core = bits & 8 ? "core.1" : NULL;
        r.logs = bits & 16 ? "/logs" : NULL;
        r.hint = bits & 32 ? "think" : NULL;
        r.next = bits & 64 ? "the end" : NULL;
        r.stopped = bits & 128 ? 5 : 0;
        r.others = others;
        r.others_n = bits & 256 ? 9 : 0;
        char *text = text_of(&r);
        CHECK_INT(lines_of(text), <=, REPORT_LINES);
        CHECK(!r.next || strstr(text, "the end\n"));
        CHECK(!r.hint || strstr(text, "try: think\n"));
        CHECK(!known || strstr(text, "NCCL's last warning: yyyy"));
        CHECK(!r.core || strstr(text, "core dump: core.1\n"));
        CHECK(!r.others_n || strstr(text, "and so did 6 more ranks\n"));
        CHECK(strlen(text) < 10000);
        free(text);
    }
}

TEST(a_known_failure_is_named_with_its_public_reference)
{
    struct report r = plain();
    struct known row = {.name = "x", .cause = "it was full", .fix = "make room"};
    r.reason = (struct known_reason){&row, "a\x1b[2J\xc2\x9b\nb", 4};
    char *text = text_of(&r);
    CHECK_HAS(text, "launch:   known: it was full\nlaunch:   NCCL's last warning: a?[2\n");
    free(text);
    row.reference = "NVIDIA/nccl#1";
    r.reason.warning = NULL;
    text = text_of(&r);
    CHECK_HAS(text, "launch:   known: it was full (NVIDIA/nccl#1)\n");
    CHECK(!strstr(text, "last warning"));
    free(text);
}

TEST(a_traceback_that_python_printed_too_is_shown_once)
{
    struct errorfile said = {.message = "ValueError: boom",
                             .traceback = "Traceback:\n  File \"t.py\"\nValueError: boom\n"};
    static const struct {
        const char *tail;
        bool shown;
    } CASES[] = {{"warming up\nTraceback:\n  File \"t.py\"\nValueError: boom\n", false},
                 {"ValueError: boom", false},
                 {"ValueError: boom\nterminate called\n", true},
                 {"ValueError: boom!\n", true},
                 {"boom\n", true}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct report r = plain();
        r.said = &said;
        r.tail = CASES[i].tail;
        r.tail_n = strlen(r.tail);
        char *text = text_of(&r);
        CHECK_HAS(text, "its traceback:");
        CHECK((strstr(text, "its last lines on stderr:") != NULL) == CASES[i].shown);
        free(text);
    }
}

TEST(what_the_worker_said_and_its_traceback_are_shown)
{
    struct errorfile said = {.message = "ValueError: boom\nsecond line",
                             .traceback = "Traceback:\n  File \"t.py\"\nValueError: boom\n"};
    struct report r = plain();
    r.said = &said;
    r.program = "./a\x1b[2J";
    char *text = text_of(&r);
    CHECK_HAS(text, "launch: ./a?[2J: rank 3");
    CHECK_HAS(text, "launch:   it said: ValueError: boom\n");
    CHECK_HAS(text,
              "launch:   its traceback:\nlaunch:   | Traceback:\nlaunch:   |   File \"t.py\"\n");
    free(text);
}

TEST(ranks_that_fell_with_it_are_told_apart_from_those_that_were_ended)
{
    struct report_other others[] = {{.rank = 1, .later_s = -0.012, .what = "exited with code 1"},
                                    {.rank = 5, .later_s = 0.034, .what = "exited with code 2"}};
    struct report r = plain();
    r.others = others;
    r.others_n = 2;
    r.stopped = 1;
    char *text = text_of(&r);
    CHECK_HAS(text, "rank 1 exited with code 1, 12 ms earlier, probably because of it\n");
    CHECK_HAS(text, "rank 5 exited with code 2, 34 ms later, probably because of it\n");
    CHECK_HAS(text, "the other 1 rank still running was ended because of it\n");
    CHECK(!strstr(text, "more rank"));
    free(text);
}

TEST(a_failure_without_a_rank_is_told_as_it_is)
{
    struct failure f = {.happened = true, .what = "rank 2 can't be started: fork: no"};
    struct report r = {.failure = &f, .program = "job", .world_size = 4};
    char *text = text_of(&r);
    CHECK_STR(text, "launch: job: rank 2 can't be started: fork: no\n");
    free(text);
}

TEST(evidence_stands_between_the_cause_and_what_happens_now)
{
    struct failure f = crash;
    struct report r = plain();
    f.evidence = "rank 3: sleeps\n  main thread: f < main\nrank 4: runs\n";
    r.failure = &f;
    r.tail = "tail\n";
    r.tail_n = 5;
    char *text = text_of(&r);
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

/* The report as JSON, parsed; *ret_text: to be freed. */
static struct json_value json_of(const struct report *r, char **ret_text)
{
    size_t n;
    struct json_value root;
    *ret_text = report_json(r, &n);
    CHECK_INT(json_parse(&root, *ret_text, n), ==, 0);
    CHECK_INT(root.type, ==, JSON_OBJECT);
    return root;
}

static const char *member(const struct json_value *root, const char *name)
{
    static char text[256];
    struct json_value value;
    if (!json_member(root, name, &value))
        test_fail(__FILE__, __LINE__, "no member %s", name);
    if (value.type == JSON_STRING)
        json_string(&value, text, sizeof text);
    else
        snprintf(text, sizeof text, "%.*s", (int)value.n, value.at);
    return text;
}

TEST(the_json_holds_the_same_facts)
{
    struct report_other other = {.rank = 1, .later_s = 0.25, .what = "exited with code 1"};
    struct report r = plain();
    r.tail = "a \"line\"\n\x1b[0m\xff";
    r.tail_n = strlen(r.tail);
    r.others = &other;
    r.others_n = 1;
    r.hint = "think";
    r.reason = (struct known_reason){&KNOWN[0], "a\x9b", 2};
    char *text;
    struct json_value root = json_of(&r, &text);
    CHECK_STR(member(&root, "rank"), "3");
    CHECK_STR(member(&root, "reason"), "EXIT");
    CHECK_STR(member(&root, "what"), "exited with code 7");
    CHECK_STR(member(&root, "worker_exit_code"), "7");
    CHECK_STR(member(&root, "exit_code"), "7");
    CHECK_STR(member(&root, "signal"), "null");
    CHECK_STR(member(&root, "after_s"), "1.500000");
    CHECK_STR(member(&root, "stderr_tail"), "a \"line\"\n\x1b[0m\xef\xbf\xbd");
    CHECK_STR(member(&root, "hint"), "think");
    CHECK_HAS(member(&root, "known"), "{\"name\": \"shm-full\", \"cause\": ");
    CHECK_HAS(text, "\"warning\": \"a\\ufffd\"}");
    CHECK_STR(member(&root, "logs"), "null");
    CHECK_HAS(member(&root, "consequences"), "{\"rank\": 1, \"later_s\": 0.250000, ");
    free(text);
}

TEST(the_json_of_every_reason_and_of_an_empty_report_is_valid)
{
    for (unsigned reason = 0; reason < REASONS_N; reason++) {
        struct failure f = {.happened = true, .reason = reason};
        struct report r = {.failure = &f, .exit_code = -1};
        char *text;
        struct json_value root = json_of(&r, &text);
        CHECK_STR(member(&root, "reason"), reason_name(reason));
        CHECK_STR(member(&root, "rank"), "null");
        CHECK_STR(member(&root, "exit_code"), "null");
        free(text);
    }
}
