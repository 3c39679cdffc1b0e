/* SPDX-License-Identifier: MIT */
/* torchrun's command line (2.11, and --shutdown-timeout of later ones): every flag that it has. */
#include "../../agent/opts.h"
#include "../../config/fields.h"
#include "../harness.h"

#include <stdio.h>
#include <stdlib.h>

static const struct flag {
    const char *name;
    const char *value, *bad; /* value NULL: a switch; bad NULL: any text is taken */
    char letter;
    bool no_variable; /* torchrun has no PET_ variable of it */
} FLAGS[] = {
    {.name = "nnodes", .value = "1:1", .bad = "2"},
    {.name = "nproc-per-node", .value = "3", .bad = "0"},
    {.name = "rdzv-backend", .value = "c10d", .bad = "etcd"},
    {.name = "rdzv-endpoint", .value = "localhost:0", .bad = "localhost:"},
    {.name = "rdzv-id", .value = "job-7", .bad = "a/b"},
    {.name = "rdzv-conf", .value = "timeout=900,join_timeout=600", .bad = "a"},
    {.name = "standalone"},
    {.name = "max-restarts", .value = "3", .bad = "-1"},
    {.name = "monitor-interval", .value = "0.1", .bad = "0"},
    {.name = "start-method", .value = "forkserver", .bad = "thread"},
    {.name = "event-log-handler", .value = "console", .bad = "nothing"},
    {.name = "role", .value = "trainer", .bad = ""},
    {.name = "module", .letter = 'm'},
    {.name = "no-python"},
    {.name = "run-path"},
    {.name = "log-dir", .value = "/tmp", .bad = ""},
    {.name = "redirects", .value = "0:1,1:2", .bad = "5", .letter = 'r'},
    {.name = "tee", .value = "3", .bad = "x", .letter = 't'},
    {.name = "local-ranks-filter", .value = "0,1", .bad = "x"},
    {.name = "duplicate-stdout-filters", .value = "loss,ERROR", .bad = ""},
    {.name = "duplicate-stderr-filters", .value = "loss,ERROR", .bad = ""},
    {.name = "node-rank", .value = "0", .bad = "1"},
    {.name = "master-addr", .value = "127.0.0.1", .bad = "a b"},
    {.name = "master-port", .value = "29500", .bad = "x"},
    {.name = "local-addr", .value = "10.0.0.1"},
    {.name = "logs-specs", .value = "default", .bad = "mine", .no_variable = true},
    {.name = "signals-to-handle", .value = "SIGTERM,SIGINT", .bad = "FOO"},
    {.name = "shutdown-timeout", .value = "60", .bad = "-1"},
    {.name = "virtual-local-rank"},
    {.name = "use-env"}, /* of python -m torch.distributed.launch */
};

/* Parses up to three words as "launch words... train.py"; says whether they were taken and the program was found. */
static bool taken(const char *a, const char *b, struct err *err)
{
    char *argv[5] = {(char *)"launch"};
    int argc = 1;
    if (a)
        argv[argc++] = (char *)a;
    if (b)
        argv[argc++] = (char *)b;
    argv[argc++] = (char *)"train.py";
    struct job_spec spec;
    enum opts_action action = OPTS_HELP;
    CHECK_INT(spec_init(&spec), ==, 0);
    int r = opts_parse(&spec, argc, argv, &action, err);
    bool found = r == 0 && action == OPTS_RUN && strcmp(spec.argv[0], "train.py") == 0;
    spec_finish(&spec);
    return found;
}

static void expect_taken(const char *a, const char *b)
{
    struct err err = {0};
    if (!taken(a, b, &err))
        test_fail(__FILE__, __LINE__, "%s %s: %s", a ? a : "", b ? b : "", err.text);
}

/* "--rdzv-conf", and with under "--rdzv_conf". */
static const char *spell(const struct flag *flag, bool under, char buf[64])
{
    snprintf(buf, 64, "--%s", flag->name);
    for (char *c = buf + 2; under && *c; c++)
        *c = *c == '-' ? '_' : *c;
    return buf;
}

TEST(every_flag_of_torchrun_is_taken_in_both_spellings_with_equals_or_blank)
{
    CHECK_INT(clearenv(), ==, 0);
    for (size_t i = 0; i < ARRAY_LEN(FLAGS); i++) {
        for (int under = 0; under < 2; under++) {
            char name[64], word[128];
            spell(&FLAGS[i], under, name);
            expect_taken(name, FLAGS[i].value);
            if (FLAGS[i].value) {
                snprintf(word, sizeof word, "%s=%s", name, FLAGS[i].value);
                expect_taken(word, NULL);
            }
        }
        if (FLAGS[i].letter) {
            char letter[] = {'-', FLAGS[i].letter, '\0'};
            expect_taken(letter, FLAGS[i].value);
        }
    }
}

TEST(a_bad_value_of_any_flag_of_torchrun_is_refused_by_name)
{
    CHECK_INT(clearenv(), ==, 0);
    for (size_t i = 0; i < ARRAY_LEN(FLAGS); i++) {
        char word[128];
        struct err err = {0};
        const char *bad = FLAGS[i].value ? FLAGS[i].bad : "maybe";
        if (!bad)
            continue;
        snprintf(word, sizeof word, "--%s=%s", FLAGS[i].name, bad);
        CHECK(!taken(word, NULL, &err));
        CHECK_HAS(err.text, "must be ");
        CHECK_HAS(err.text, FLAGS[i].name);
    }
}

TEST(an_endpoint_is_a_host_with_or_without_a_port)
{
    static const char *const GOOD[] = {"localhost", "localhost:29400", "[::1]:0", "[::1]",
                                       "::1",       "10.0.0.1:65535",  ""};
    static const char *const BAD[] = {"h:",       "h:x", "h:65536", "h:99999999999999999999",
                                      "[::1]:-1", "h:1 "};
    CHECK_INT(clearenv(), ==, 0);
    char word[128];
    for (size_t i = 0; i < ARRAY_LEN(GOOD); i++) {
        snprintf(word, sizeof word, "--rdzv-endpoint=%s", GOOD[i]);
        expect_taken(word, NULL);
    }
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        struct err err = {0};
        snprintf(word, sizeof word, "--rdzv-endpoint=%s", BAD[i]);
        CHECK(!taken(word, NULL, &err));
        CHECK_HAS(err.text, "must be a host, or host and port");
    }
}

TEST(every_variable_of_torchrun_is_read)
{
    for (size_t i = 0; i < ARRAY_LEN(FLAGS); i++) {
        char name[64] = "PET_";
        struct err err = {0};
        size_t n = strlen(name);
        if (FLAGS[i].no_variable)
            continue;
        for (const char *c = FLAGS[i].name; *c; c++)
            name[n++] = *c == '-' ? '_' : (char)(*c - 'a' + 'A');
        CHECK_INT(clearenv(), ==, 0);
        setenv(name, FLAGS[i].value ? FLAGS[i].value : "0", 1);
        expect_taken(NULL, NULL);
        if (FLAGS[i].value && !FLAGS[i].bad)
            continue;
        setenv(name, FLAGS[i].value ? FLAGS[i].bad : "maybe", 1);
        /* An empty variable counts as not set. */
        CHECK(taken(NULL, NULL, &err) == (FLAGS[i].bad && !*FLAGS[i].bad));
    }
}

TEST(more_than_one_server_is_refused_with_what_works_today)
{
    static const char *const MORE[] = {"2", "1:2", "2:2", "0", "8:16", "1:1:1", ""};
    CHECK_INT(clearenv(), ==, 0);
    for (size_t i = 0; i < ARRAY_LEN(MORE); i++) {
        struct err err = {0};
        CHECK(!taken("--nnodes", MORE[i], &err));
        CHECK_HAS(err.text, "can't have several servers yet");
        CHECK_HAS(err.text, "--nnodes=1 --nproc-per-node=gpu");
    }
}

/* torchrun's own parser takes `torchrun s.py --log x` for an ambiguous --log-dir and ends. */
TEST(no_argument_of_the_script_is_taken_for_an_ambiguous_option)
{
    CHECK_INT(clearenv(), ==, 0);
    for (size_t i = 0; i < FIELDS_N; i++) {
        for (size_t n = 1; n <= strlen(FIELDS[i].name); n++) {
            char word[80];
            char *argv[] = {(char *)"launch", (char *)"s.py", word, (char *)"x", NULL};
            struct job_spec spec;
            enum opts_action action;
            snprintf(word, sizeof word, "--%.*s", (int)n, FIELDS[i].name);
            CHECK_INT(spec_init(&spec), ==, 0);
            CHECK_INT(opts_parse(&spec, 4, argv, &action, NULL), ==, 0);
            CHECK(spec.argv == argv + 1);
            for (size_t f = 0; f < FIELDS_N; f++)
                CHECK(field_source(&FIELDS[f], &spec) == SOURCE_DEFAULT);
            spec_finish(&spec);
        }
    }
}

TEST(a_module_is_neither_a_plain_program_nor_a_path)
{
    struct err err = {0};
    CHECK_INT(clearenv(), ==, 0);
    CHECK(!taken("-m", "--no-python", &err));
    CHECK_HAS(err.text, "--module contradicts --no-python");
    CHECK(!taken("--run-path", "-m", &err));
    CHECK_HAS(err.text, "--module contradicts --run-path");
    CHECK(taken("--run-path", "--no-python", &err));
    setenv("PET_NO_PYTHON", "1", 1);
    CHECK(!taken("-m", NULL, &err));
    CHECK(taken("-m", "--no-python=0", &err));
}
