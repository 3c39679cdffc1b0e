/* SPDX-License-Identifier: MIT */
/* The settings table itself, and every type of setting with good and bad text. */
#include "../../config/fields.h"
#include "../harness.h"

#include <stdio.h>

static const struct field *row(const char *name)
{
    const struct field *field = field_find(name, strlen(name));
    if (!field)
        test_fail(__FILE__, __LINE__, "no setting %s", name);
    return field;
}

/* Sets it on a spec of its own and tells the return code. */
static int try(const char *name, const char *text, struct err *err)
{
    struct job_spec spec;
    CHECK_INT(spec_init(&spec), ==, 0);
    *err = (struct err){0};
    int r = field_set(row(name), &spec, text, name, err);
    CHECK_INT(field_given(row(name), &spec), ==, r == 0);
    spec_finish(&spec);
    return r;
}

static void refused(const char *name, const char *text)
{
    struct err err;
    if (try(name, text, &err) != -EINVAL)
        test_fail(__FILE__, __LINE__, "%s takes \"%s\"", name, text);
    CHECK_INT(err.code, ==, -EINVAL);
    CHECK_HAS(err.text, name);
    CHECK_HAS(err.text, ": must be ");
    CHECK_HAS(err.text, ", not '");
}

static void taken(const char *name, const char *text)
{
    struct err err;
    if (try(name, text, &err) != 0)
        test_fail(__FILE__, __LINE__, "%s refuses \"%s\": %s", name, text, err.text);
}

static uint64_t duration_ms(const char *text)
{
    struct job_spec spec;
    struct err err;
    CHECK_INT(spec_init(&spec), ==, 0);
    if (field_set(row("rendezvous-timeout"), &spec, text, "", &err) < 0)
        test_fail(__FILE__, __LINE__, "\"%s\": %s", text, err.text);
    uint64_t ms = spec.rendezvous_timeout_ms;
    spec_finish(&spec);
    return ms;
}

TEST(every_row_is_complete_and_its_default_parses)
{
    for (size_t i = 0; i < FIELDS_N; i++) {
        const struct field *field = &FIELDS[i];
        CHECK(field->name && *field->name && !strpbrk(field->name, "_ ="));
        CHECK(field->help && *field->help);
        CHECK_INT(field->help[strlen(field->help) - 1], ==, '.');
        CHECK(field->parse != NULL);
        CHECK_INT(field->group, <, GROUPS_N);
        CHECK(field->offset < sizeof(struct job_spec));
        CHECK(field->min <= field->max);
        if (field->def)
            taken(field->name, field->def);
        for (size_t w = 0; field->choices && field->choices[w]; w++)
            taken(field->name, field->choices[w]);
    }
    for (int group = 0; group < GROUPS_N; group++)
        CHECK(FIELD_GROUPS[group] && *FIELD_GROUPS[group]);
}

/* All names that lead to a row: the n-th one, NULL behind the last. */
static const char *nth_name(const struct field *field, size_t n, char buf[64])
{
    const char *p = field->aliases;
    if (n == 0)
        return field->name;
    for (; p && --n > 0; p = strchr(p, ' '))
        p += strspn(p, " ");
    if (!p)
        return NULL;
    p += strspn(p, " ");
    snprintf(buf, 64, "%.*s", (int)strcspn(p, " "), p);
    return buf;
}

TEST(every_name_alias_letter_and_variable_leads_to_one_row_only)
{
    for (size_t i = 0; i < FIELDS_N; i++) {
        char name[64], env[FIELD_ENV_BYTES], other[FIELD_ENV_BYTES];
        for (size_t n = 0; nth_name(&FIELDS[i], n, name); n++) {
            const char *known = nth_name(&FIELDS[i], n, name);
            CHECK(field_find(known, strlen(known)) == &FIELDS[i]);
            CHECK(strcmp(known, "help") != 0 && strcmp(known, "version") != 0);
            for (size_t j = 0; j < FIELDS_N; j++) {
                char second[64];
                for (size_t m = 0; nth_name(&FIELDS[j], m, second); m++)
                    CHECK((i == j && n == m) || strcmp(known, nth_name(&FIELDS[j], m, second)));
            }
        }
        CHECK(!FIELDS[i].letter || field_find_letter(FIELDS[i].letter) == &FIELDS[i]);
        CHECK(FIELDS[i].letter != 'h' && FIELDS[i].letter != 'V');
        for (size_t j = 0; j < i; j++) {
            CHECK(!FIELDS[i].pet || !FIELDS[j].pet || strcmp(FIELDS[i].pet, FIELDS[j].pet));
            CHECK(strcmp(field_env(&FIELDS[i], env), field_env(&FIELDS[j], other)));
        }
    }
}

TEST(dashes_and_underscores_in_names_are_the_same)
{
    CHECK(row("nproc_per_node") == row("nproc-per-node"));
    CHECK(row("nproc_per-node") == row("nproc-per-node"));
    CHECK(row("np") == row("nproc-per-node"));
    CHECK(row("rdzv_id") == row("run-id"));
    CHECK(field_find("nproc-per-nod", 13) == NULL);
    CHECK(field_find("nproc-per-node=", 15) == NULL);
    CHECK(field_find("nproc", 5) == NULL);
    CHECK(field_find("", 0) == NULL);
    CHECK(field_find_letter('\0') == NULL);
}

TEST(the_variable_of_a_row_is_its_name_in_capitals)
{
    char buf[FIELD_ENV_BYTES];
    CHECK_STR(field_env(row("nproc-per-node"), buf), "LAUNCH_NPROC_PER_NODE");
}

static const char *nearest(const char *name)
{
    return field_nearest(name, strlen(name));
}

TEST(a_mistyped_name_finds_the_nearest_one)
{
    CHECK_STR(nearest("nproc-per-nod"), "nproc-per-node");
    CHECK_STR(nearest("nproc_per_mode"), "nproc-per-node");
    CHECK_STR(nearest("nproc"), "nproc-per-node");
    CHECK_STR(nearest("nprocs"), "nproc-per-node");
    CHECK(nearest("s") == NULL);
    CHECK(nearest("zebras") == NULL);
    CHECK_STR(nearest("max-restart"), "max-restarts");
    CHECK_STR(nearest("share-gpu"), "share-gpus");
    CHECK_STR(nearest("rdvz-id"), "run-id");
    CHECK_STR(nearest("standa"), "standalone");
    CHECK(nearest("zebra") == NULL);
    CHECK(nearest("x") == NULL);
    CHECK(nearest("") == NULL);

    char longest[300];
    memset(longest, 'r', sizeof longest);
    for (size_t n = 0; n <= sizeof longest; n++)
        CHECK(field_nearest(longest, n) == NULL);
}

TEST(every_name_with_a_letter_missing_is_found_again)
{
    for (size_t i = 0; i < FIELDS_N; i++) {
        size_t n = strlen(FIELDS[i].name);
        for (size_t hole = 0; n > 4 && hole < n; hole++) {
            char word[64];
            snprintf(word, sizeof word, "%.*s%s", (int)hole, FIELDS[i].name,
                     FIELDS[i].name + hole + 1);
            CHECK_STR(nearest(word), FIELDS[i].name);
        }
    }
}

TEST(every_name_with_two_letters_swapped_is_found_again)
{
    for (size_t i = 0; i < FIELDS_N; i++) {
        const char *name = FIELDS[i].name;
        for (size_t at = 0; at + 1 < strlen(name) && strlen(name) > 2; at++) {
            char word[64];
            snprintf(word, sizeof word, "%s", name);
            word[at] = name[at + 1];
            word[at + 1] = name[at];
            CHECK_STR(nearest(word), name);
        }
    }
}

TEST(a_worker_count_is_a_whole_decimal_number_or_a_word)
{
    static const char *const BAD[] = {"",
                                      " ",
                                      "4.0",
                                      "1e1",
                                      "0x2",
                                      "2x",
                                      "+2",
                                      "+-2",
                                      "-1",
                                      "-5",
                                      "2 3",
                                      " 2",
                                      "2 ",
                                      "2\n",
                                      "0",
                                      "00",
                                      "4097",
                                      "99999",
                                      "4294967297",
                                      "18446744073709551617",
                                      "99999999999999999999",
                                      "GPU",
                                      "gpus",
                                      "gp",
                                      "cpu ",
                                      "xpu",
                                      "\xff"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++)
        refused("nproc-per-node", BAD[i]);

    struct job_spec spec;
    struct err err;
    CHECK_INT(spec_init(&spec), ==, 0);
    for (unsigned n = 1; n <= 4096; n++) {
        char text[16];
        snprintf(text, sizeof text, n % 2 ? "%u" : "%06u", n);
        CHECK_INT(field_set(row("np"), &spec, text, "", &err), ==, 0);
        CHECK_INT(spec.nproc, ==, n);
        CHECK_INT(spec.nproc_mode, ==, NPROC_NUMBER);
    }
    CHECK_INT(field_set(row("np"), &spec, "08", "", &err), ==, 0);
    CHECK_INT(spec.nproc, ==, 8);

    static const char *const WORDS[NPROC_MODES_N] = {
        [NPROC_GPU] = "gpu", [NPROC_AUTO] = "auto", [NPROC_CPU] = "cpu"};
    for (int mode = NPROC_GPU; mode < NPROC_MODES_N; mode++) {
        CHECK_INT(field_set(row("np"), &spec, WORDS[mode], "", &err), ==, 0);
        CHECK_INT(spec.nproc_mode, ==, mode);
        CHECK_INT(spec.nproc, ==, 0);
    }
    spec_finish(&spec);
}

TEST(a_refused_count_says_what_would_be_right)
{
    struct err err;
    CHECK_INT(try("nproc-per-node", "4.0", &err), ==, -EINVAL);
    CHECK_STR(err.text, "nproc-per-node: must be a number from 1 to 4096, 'gpu', 'auto' or 'cpu', "
                        "not '4.0'");
    CHECK_INT(try("gpu-visibility", "", &err), ==, -EINVAL);
    CHECK_STR(err.text, "gpu-visibility: must be 'job' or 'rank', not ''");
    CHECK_INT(try("nnodes", "2", &err), ==, -EINVAL);
    CHECK_HAS(err.text, "must be 1 or 1:1");
    CHECK_HAS(err.text, "several servers yet");
    CHECK_INT(try("node-rank", "1", &err), ==, -EINVAL);
    CHECK_STR(err.text, "node-rank: must be 0, not '1'");
}

TEST(numbers_keep_their_range)
{
    static const char *const BAD[] = {"", "-1", "+1", "1.0", "0x1", " 1", "1 ", "1k", "none"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        refused("max-restarts", BAD[i]);
        refused("master-port", BAD[i]);
        refused("node-rank", BAD[i]);
    }
    taken("max-restarts", "1000000");
    refused("max-restarts", "1000001");
    taken("master-port", "65535");
    refused("master-port", "65536");
    refused("master-port", "18446744073709551616");
}

TEST(durations_take_a_unit_and_a_fraction)
{
    CHECK_INT(duration_ms("0"), ==, 0);
    CHECK_INT(duration_ms("0.0h"), ==, 0);
    CHECK_INT(duration_ms("30"), ==, 30000);
    CHECK_INT(duration_ms("030s"), ==, 30000);
    CHECK_INT(duration_ms("1.5s"), ==, 1500);
    CHECK_INT(duration_ms("1.5"), ==, 1500);
    CHECK_INT(duration_ms("500ms"), ==, 500);
    CHECK_INT(duration_ms("10m"), ==, 600000);
    CHECK_INT(duration_ms("2.25h"), ==, 8100000);
    CHECK_INT(duration_ms("1000h"), ==, 3600000000);
    CHECK_INT(duration_ms("3600000000ms"), ==, 3600000000);
}

TEST(a_short_duration_never_becomes_none)
{
    CHECK_INT(duration_ms("0.000000001"), ==, 1);
    CHECK_INT(duration_ms("0.5ms"), ==, 1);
    CHECK_INT(duration_ms("1.001ms"), ==, 2);
    refused("monitor-interval", "0");
    refused("monitor-interval", "0.0");
    taken("monitor-interval", "0.1");
}

TEST(bad_durations_are_refused)
{
    static const char *const BAD[] = {"",
                                      " ",
                                      "-1",
                                      "-1s",
                                      "+1",
                                      "1 s",
                                      " 1s",
                                      "1s ",
                                      ".5",
                                      "5.",
                                      "5.s",
                                      "1.5.5",
                                      "1e3",
                                      "1S",
                                      "1sec",
                                      "1d",
                                      "s",
                                      "ms",
                                      ".",
                                      "1,5",
                                      "0x10",
                                      "inf",
                                      "nan",
                                      "none",
                                      "1000.1h",
                                      "1001h",
                                      "3600000001ms",
                                      "3600000000",
                                      "18446744073709551617",
                                      "99999999999999999999h",
                                      "0.0000000001",
                                      "1ss"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        refused("rendezvous-timeout", BAD[i]);
        refused("shutdown-timeout", BAD[i]);
        refused("monitor-interval", BAD[i]);
        refused("restart-window", BAD[i]);
        refused("timeout", BAD[i]);
    }
}

TEST(lists_of_signals_codes_and_limits_say_what_they_take)
{
    struct err err;
    taken("signals-to-handle", "SIGTERM,INT");
    refused("signals-to-handle", "none"); /* a job that nothing can end */
    taken("forward-signals", "none");
    refused("forward-signals", "FOO");
    refused("forward-signals", "KILL");
    refused("forward-signals", "");
    taken("restart-on", "1,3-5,SIGSEGV,signal");
    refused("restart-on", "0");
    refused("no-restart-on", "300");
    refused("restart-limits", "boom:1");
    taken("restart-limits", "startup:2,same:3");
    CHECK_INT(try("forward-signals", "TERM,FOO", &err), ==, -EINVAL);
    CHECK_STR(err.text, "forward-signals: must be 'none' or signals such as SIGTERM,USR1 (KILL, "
                        "STOP, CHLD, PIPE, TSTP and CONT can't be had), not 'TERM,FOO'");
}

TEST(switches_and_words_are_matched_whole)
{
    static const char *const ON[] = {"1", "true", "yes", "on", "TRUE"};
    static const char *const OFF[] = {"0", "false", "no", "off", "False"};
    static const char *const BAD[] = {"", "2", "onn", "tru", "y", " 1", "01", "1\n"};
    for (size_t i = 0; i < ARRAY_LEN(ON); i++) {
        struct job_spec spec;
        CHECK_INT(spec_init(&spec), ==, 0);
        CHECK_INT(field_set(row("share-gpus"), &spec, ON[i], "", NULL), ==, 0);
        CHECK_INT(spec.share_gpus, ==, 1);
        CHECK_INT(field_set(row("share-gpus"), &spec, OFF[i], "", NULL), ==, 0);
        CHECK_INT(spec.share_gpus, ==, 0);
        CHECK_INT(field_set(row("virtual-local-rank"), &spec, ON[i], "", NULL), ==, 0);
        CHECK_INT(spec.gpu_visibility, ==, GPU_VISIBILITY_RANK);
        CHECK_INT(field_set(row("virtual-local-rank"), &spec, OFF[i], "", NULL), ==, 0);
        CHECK_INT(spec.gpu_visibility, ==, GPU_VISIBILITY_JOB);
        spec_finish(&spec);
    }
    for (size_t i = 0; i < FIELDS_N; i++) {
        for (size_t b = 0; b < ARRAY_LEN(BAD) && !FIELDS[i].arg && !FIELDS[i].max; b++)
            refused(FIELDS[i].name, BAD[b]);
    }
    taken("wait", "on");
    refused("wait", "onn"); /* a switch that may be a time */
    taken("wait", "2");
    refused("exit-code", "0");
    refused("exit-code", "Worker");
    refused("gpu-visibility", "ranks");
    refused("rdzv-backend", "etcd");
    refused("start-method", "foo");
    refused("nnodes", "0");
    refused("nnodes", "1:2");
    refused("nnodes", "1:1:1");
    taken("nnodes", "1:1");
    taken("rdzv-endpoint", "");
    taken("rdzv-endpoint", "localhost:0");
    taken("local-addr", "local\x01host");
}

TEST(names_may_hold_only_what_is_safe_where_they_end_up)
{
    char text[300];
    for (size_t n = 0; n < sizeof text; n++) {
        memset(text, 'a', n);
        text[n] = '\0';
        (n >= 1 && n <= 63 ? taken : refused)("run-id", text);
        (n >= 1 && n <= 63 ? taken : refused)("role", text);
        (n >= 1 && n <= 253 ? taken : refused)("master-addr", text);
    }
    for (int c = 1; c < 256; c++) {
        char first[] = {(char)c, '\0'}, later[] = {'a', (char)c, '\0'};
        bool alnum = c < 128 && strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789",
                                       c);
        (alnum ? taken : refused)("run-id", first);
        (alnum || strchr("._-", c) ? taken : refused)("run-id", later);
        (alnum || strchr(":[", c) ? taken : refused)("master-addr", first);
        (alnum || strchr("._-:%[]", c) ? taken : refused)("master-addr", later);
        (c >= 32 && c < 127 ? taken : refused)("role", first);
    }
    taken("master-addr", "::1");
    taken("master-addr", "[fe80::1%eth0]");
}

TEST(all_256_byte_values_are_quoted_as_printable_text)
{
    char buf[FIELD_QUOTE_BYTES];
    for (int c = 0; c < 256; c++) {
        char byte = (char)c, want[8];
        snprintf(want, sizeof want, c >= 32 && c < 127 ? "%c" : "\\x%02x", c);
        if (c == '\n' || c == '\r' || c == '\t' || c == '\\')
            snprintf(want, sizeof want, "\\%c",
                     c == '\n'   ? 'n'
                     : c == '\r' ? 'r'
                     : c == '\t' ? 't'
                                 : c);
        CHECK_STR(field_quote(&byte, 1, buf), want);
    }
    CHECK_STR(field_quote("", 0, buf), "");
}

TEST(long_text_is_cut_when_quoted)
{
    char text[200], buf[FIELD_QUOTE_BYTES];
    memset(text, 'a', sizeof text);
    CHECK_INT(strlen(field_quote(text, 60, buf)), ==, 60);
    CHECK(!strstr(buf, "..."));
    CHECK_INT(strlen(field_quote(text, 61, buf)), ==, 63);
    CHECK_STR(buf + 60, "...");
    memset(text, '\x1b', sizeof text);
    CHECK_INT(strlen(field_quote(text, sizeof text, buf)), ==, 63);
    CHECK_STR(buf + 56, "\\x1b...");
    text[0] = 'a';
    CHECK_INT(strlen(field_quote(text, sizeof text, buf)), ==, 60);
}

TEST(a_refused_value_leaves_the_setting_as_it_was)
{
    struct job_spec spec;
    CHECK_INT(spec_init(&spec), ==, 0);
    CHECK_INT(field_set(row("role"), &spec, "trainer", "", NULL), ==, 0);
    CHECK_INT(field_set(row("role"), &spec, "\n", "", NULL), ==, -EINVAL);
    CHECK_STR(spec.role, "trainer");
    CHECK_INT(field_set(row("np"), &spec, "gpu", "", NULL), ==, 0);
    CHECK_INT(field_set(row("np"), &spec, "0", "", NULL), ==, -EINVAL);
    CHECK_INT(spec.nproc_mode, ==, NPROC_GPU);
    spec_finish(&spec);
}

TEST(rows_that_set_the_same_thing_are_given_together)
{
    struct job_spec spec;
    CHECK_INT(spec_init(&spec), ==, 0);
    for (size_t i = 0; i < FIELDS_N; i++)
        CHECK(!field_given(&FIELDS[i], &spec));
    CHECK_INT(field_set(row("virtual-local-rank"), &spec, "1", "", NULL), ==, 0);
    CHECK(field_given(row("gpu-visibility"), &spec));
    CHECK_INT(field_set(row("standalone"), &spec, "1", "", NULL), ==, 0);
    CHECK(!field_given(row("nnodes"), &spec));
    CHECK(!field_given(row("nproc-per-node"), &spec));
    spec_finish(&spec);
}
