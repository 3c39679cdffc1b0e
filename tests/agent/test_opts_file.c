/* SPDX-License-Identifier: MIT */
/* A job file under the command line and the environment: who goes before whom, and whose program is run. */
#include "../../config/fields.h"
#include "../config/same.h"
#include "opts_rig.h"

#include <stdio.h>

static const char *job_file(const char *text)
{
    static char path[300];
    test_write("job.yaml", text);
    snprintf(path, sizeof path, "--config=%s/job.yaml", test_dir());
    return path;
}

static void check_words(char **argv, const char *const *words)
{
    CHECK(argv != NULL);
    for (; *words; words++, argv++)
        CHECK_STR(*argv, *words);
    CHECK(*argv == NULL);
}

#define CHECK_WORDS(argv, ...) check_words(argv, (const char *const[]){__VA_ARGS__, NULL})

TEST(a_job_files_program_takes_what_stands_behind_the_dashes)
{
    clear_environment();
    struct run run;
    const char *config = job_file("program: ./train\nargs: [--lr, 1e-4]\n");
    PARSE(&run, config);
    CHECK_RUNS(&run);
    CHECK_WORDS(run.spec.argv, "./train", "--lr", "1e-4");
    spec_finish(&run.spec);
    PARSE(&run, config, "--");
    CHECK_RUNS(&run);
    CHECK_WORDS(run.spec.argv, "./train", "--lr", "1e-4");
    spec_finish(&run.spec);
    PARSE(&run, config, "--np", "2", "--", "--epochs=3", "--", "");
    CHECK_RUNS(&run);
    CHECK_WORDS(run.spec.argv, "./train", "--lr", "1e-4", "--epochs=3", "--", "");
    spec_finish(&run.spec);
}

TEST(a_program_on_the_command_line_takes_the_place_of_the_files_and_its_arguments)
{
    clear_environment();
    struct run run;
    const char *config = job_file("program: ./train\nargs: [--lr, 1e-4]\nenv: {A: b}\nnp: 2\n");
    PARSE(&run, config, "./other", "--x");
    CHECK_RUNS(&run);
    CHECK(run.spec.argv == run.argv + 2);
    CHECK_INT(run.spec.nproc, ==, 2);
    CHECK_STR(run.spec.env[0], "A=b");
    spec_finish(&run.spec);
    config = job_file("np: 2\n");
    PARSE(&run, config, "--", "./other");
    CHECK_RUNS(&run);
    CHECK_STR(run.spec.argv[0], "./other");
    spec_finish(&run.spec);
    PARSE(&run, config);
    CHECK_INT(run.r, ==, -EINVAL);
    CHECK_HAS(run.err.text, "no program given, neither here nor as 'program' in ");
    spec_finish(&run.spec);
}

/* Two values that the row takes. */
static bool two_values(const struct field *field, const char *ret[2])
{
    static const char *const TEXTS[] = {"1",      "2",        "0",    "1s",      "job",    "rank",
                                        "worker", "torchrun", "none", "auto",    "off",    "USR1",
                                        "TERM",   "signal:1", "fork", "c10d",    "static", "spawn",
                                        "1:1",    "a=1",      "null", "default", "uuid",   "heal"};
    int n = 0;
    for (size_t i = 0; i < ARRAY_LEN(TEXTS) && n < 2; i++) {
        struct job_spec spec;
        CHECK_INT(spec_init(&spec), ==, 0);
        if (field_set(field, &spec, TEXTS[i], "", NULL) == 0)
            ret[n++] = TEXTS[i];
        spec_finish(&spec);
    }
    if (n == 1)
        ret[1] = ret[0];
    return n > 0;
}

/* For every setting: the later source of each pair counts, and is remembered. */
TEST(the_command_line_beats_variables_and_these_beat_the_file_for_every_setting)
{
    for (size_t i = 0; i < FIELDS_N; i++) {
        const struct field *field = &FIELDS[i];
        const char *values[2];
        char text[200], option[200], again[200], ours[FIELD_ENV_BYTES];
        if (field->group == GROUP_FILE)
            continue;
        CHECK(two_values(field, values));
        snprintf(text, sizeof text, "%s: '%s'\n", field->name, values[0]);
        snprintf(option, sizeof option, "--%s=%s", field->name, values[1]);
        for (enum source source = SOURCE_FILE; source < SOURCES_N; source++) {
            if (source == SOURCE_PET && !field->pet)
                continue;
            struct run run, plain;
            clear_environment();
            const char *config = job_file(text);
            if (source >= SOURCE_PET && field->pet)
                setenv(field->pet, values[1], 1);
            if (source >= SOURCE_LAUNCH)
                setenv(field_env(field, ours), values[1], 1);
            PARSE(&run, config, "--standalone",
                  source == SOURCE_COMMAND_LINE ? option : "--standalone", "p");
            CHECK_RUNS(&run);
            if (strcmp(field->name, "standalone") != 0)
                CHECK_INT(run.spec.origin[i].source, ==, source);
            clear_environment();
            snprintf(again, sizeof again, "--%s=%s", field->name, values[source != SOURCE_FILE]);
            PARSE(&plain, "--standalone", again, "p");
            CHECK_RUNS(&plain);
            CHECK(same_spec(&run.spec, &plain.spec));
            spec_finish(&run.spec);
            spec_finish(&plain.spec);
        }
    }
}

TEST(a_job_file_is_named_on_the_command_line_only)
{
    clear_environment();
    setenv("LAUNCH_CONFIG", "/no/such/file", 1);
    setenv("LAUNCH_PRINT_CONFIG", "junk", 1);
    struct run run;
    PARSE(&run, "p");
    CHECK_RUNS(&run);
    spec_finish(&run.spec);
    PARSE(&run, "--config=/no/such/file");
    CHECK_INT(run.r, ==, -ENOENT);
    CHECK_STR(run.err.text, "job file /no/such/file: No such file or directory");
    spec_finish(&run.spec);
}

TEST(to_show_the_values_in_effect_no_program_is_needed)
{
    clear_environment();
    struct run run;
    PARSE(&run, "--print-config");
    CHECK_INT(run.r, ==, 0);
    CHECK_INT(run.action, ==, OPTS_PRINT_CONFIG);
    CHECK(!run.spec.argv);
    spec_finish(&run.spec);
    PARSE(&run, "--example-config");
    CHECK_INT(run.action, ==, OPTS_EXAMPLE_CONFIG);
    spec_finish(&run.spec);
    PARSE(&run, "--print-config", "--np=0");
    CHECK_INT(run.r, ==, -EINVAL);
    spec_finish(&run.spec);
}
