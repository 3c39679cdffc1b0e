/* SPDX-License-Identifier: MIT */
/* From a spec to a job file and back. */
#include "../../config/emit.h"

#include "../../config/fields.h"
#include "../../config/jobfile.h"
#include "../harness.h"
#include "same.h"

#include <stdlib.h>

static const struct field *row(const char *name)
{
    return field_find(name, strlen(name));
}

/* The caller frees. */
static char *emit(const struct job_spec *spec)
{
    char *text = NULL;
    size_t n;
    struct err err;
    FILE *out = open_memstream(&text, &n);
    CHECK(out != NULL);
    if (emit_config(out, spec, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK_INT(fclose(out), ==, 0);
    return text;
}

/* As a job file the text gives the same spec. */
static void check_round_trip(struct job_spec *spec)
{
    struct job_spec again;
    struct err err;
    char *text = emit(spec);
    CHECK_INT(spec_init(&again), ==, 0);
    if (jobfile_parse(&again, "f", text, strlen(text), &err) < 0 || spec_check(&again, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s in\n%s", err.text, text);
    again.argv = again.file_argv;
    if (!same_spec(spec, &again))
        test_fail(__FILE__, __LINE__, "another job from\n%s", text);
    spec_finish(&again);
    free(text);
}

/* Values of each kind of row, good or not: those that the row takes are tried. */
static const char *const VALUES[] = {"0",
                                     "1",
                                     "4096",
                                     "08",
                                     "gpu",
                                     "auto",
                                     "cpu",
                                     "job",
                                     "rank",
                                     "none",
                                     "all",
                                     "off",
                                     "1.5s",
                                     "90m",
                                     "500ms",
                                     "0:3,10:1",
                                     "0,2,10",
                                     "64K",
                                     "worker",
                                     "torchrun",
                                     "1,3-5,SIGSEGV,hang",
                                     "93",
                                     "startup:2,same:3",
                                     "TERM,RTMIN+3",
                                     "SIGHUP",
                                     "yes",
                                     "null",
                                     "~",
                                     "a b",
                                     "#x",
                                     "'",
                                     "\"\\",
                                     "-x",
                                     "é—\u2028\ufeff",
                                     "a: b",
                                     "[x",
                                     "::1",
                                     "1:1",
                                     "static",
                                     "fork",
                                     "host:29500",
                                     "timeout=30,a=b",
                                     "default",
                                     "uuid",
                                     "heal",
                                     "2,0",
                                     "a,,b",
                                     " ",
                                     "\t\n",
                                     "1e3",
                                     "$HOME ${x}"};

TEST(every_value_of_every_setting_comes_back_from_a_file)
{
    unsigned tried = 0;
    for (size_t i = 0; i < FIELDS_N; i++) {
        unsigned before = tried;
        for (size_t v = 0; v < ARRAY_LEN(VALUES) && FIELDS[i].group != GROUP_FILE; v++) {
            struct job_spec spec;
            CHECK_INT(spec_init(&spec), ==, 0);
            if (field_set(&FIELDS[i], &spec, VALUES[v], "", NULL) == 0) {
                CHECK_INT(spec_check(&spec, NULL), ==, 0);
                check_round_trip(&spec);
                tried++;
            }
            spec_finish(&spec);
        }
        if (tried == before && FIELDS[i].group != GROUP_FILE)
            test_fail(__FILE__, __LINE__, "no value for %s here", FIELDS[i].name);
    }
}

/* The character as UTF-8, at most three bytes. */
static void encode(char *text, int c)
{
    size_t n = 0;
    if (c >= 0x800) {
        text[n++] = (char)(0xe0 | c >> 12);
        text[n++] = (char)(0x80 | (c >> 6 & 0x3f));
    } else if (c >= 0x80) {
        text[n++] = (char)(0xc0 | c >> 6);
    }
    text[n++] = (char)(c < 0x80 ? c : 0x80 | (c & 0x3f));
    text[n] = '\0';
}

TEST(every_text_comes_back_as_argument_and_variable)
{
    enum { AT_ONCE = 128 };
    static char words[AT_ONCE][4], variables[AT_ONCE][20];
    static char *argv[AT_ONCE + 4] = {(char *)"p"}, *env[AT_ONCE + 1];
    for (int first = 0; first < 0x3000; first += AT_ONCE) {
        for (int i = 0; i < AT_ONCE; i++) {
            encode(words[i], first + i ? first + i : 'x');
            snprintf(variables[i], sizeof variables[i], "V%d=%.3s%.3s", i, words[i], words[i]);
            argv[1 + i] = words[i];
            env[i] = variables[i];
        }
        argv[AT_ONCE + 1] = (char *)"";
        argv[AT_ONCE + 2] = (char *)"-";
        struct job_spec spec;
        CHECK_INT(spec_init(&spec), ==, 0);
        spec.argv = argv;
        spec.env = env;
        check_round_trip(&spec);
        spec.env = NULL;
        spec_finish(&spec);
    }
}

TEST(each_value_tells_where_it_came_from)
{
    static const char FILE_TEXT[] = "role: trainer\ntee: 0:3\n";
    struct job_spec spec;
    struct err err;
    CHECK_INT(spec_init(&spec), ==, 0);
    CHECK_INT(field_set(row("np"), &spec, "4", "", NULL), ==, 0);
    CHECK_INT(field_set(row("share-gpus"), &spec, "1", "", NULL), ==, 0);
    CHECK_INT(field_set(row("config"), &spec, "a\nb.yaml", "", NULL), ==, 0);
    CHECK_INT(field_set(row("forward-signals"), &spec, "SIGHUP", "", NULL), ==, 0);
    CHECK_INT(field_set_from(row("max-restarts"), &spec, "3", (struct origin){.source = SOURCE_PET},
                             "", NULL),
              ==, 0);
    CHECK_INT(field_set_from(row("timeout"), &spec, "1h", (struct origin){.source = SOURCE_LAUNCH},
                             "", NULL),
              ==, 0);
    CHECK_INT(jobfile_parse(&spec, "f", FILE_TEXT, sizeof FILE_TEXT - 1, &err), ==, 0);
    CHECK_INT(spec_check(&spec, &err), ==, 0);
    char *text = emit(&spec);
    CHECK_HAS(text, "\nrole: trainer  # a\\nb.yaml:1\n");
    CHECK_HAS(text, "\ntee: \"0:3\"  # a\\nb.yaml:2\n");
    CHECK(strstr(text, "nproc_per_node: 4  # command line --nproc-per-node\n") == text);
    CHECK_HAS(text, "\nmax_restarts: 3  # PET_MAX_RESTARTS\n");
    CHECK_HAS(text, "\ntimeout: 1h  # LAUNCH_TIMEOUT\n");
    CHECK_HAS(text, "\nmaster_port: 0  # default\n");
    CHECK_HAS(text, "\n# run_id:  # not set\n");
    CHECK_HAS(text, "\n# gpu_visibility: rank  # follows from other settings\n");
    CHECK_HAS(text,
              "\n# signals_to_handle: SIGTERM,SIGINT,SIGQUIT  # follows from other settings\n");
    CHECK(!strstr(text, "virtual_local_rank") && !strstr(text, "nnodes") &&
          !strstr(text, "print_config"));
    free(text);
    spec_finish(&spec);
}

TEST(of_two_settings_of_one_thing_the_one_that_counts_is_shown)
{
    struct job_spec spec;
    CHECK_INT(spec_init(&spec), ==, 0);
    CHECK_INT(field_set(row("virtual-local-rank"), &spec, "1", "", NULL), ==, 0);
    char *text = emit(&spec);
    CHECK_HAS(text, "\nvirtual_local_rank: 1  # command line --virtual-local-rank\n");
    CHECK(!strstr(text, "gpu_visibility"));
    free(text);
    CHECK_INT(field_set(row("gpu-visibility"), &spec, "job", "", NULL), ==, 0);
    text = emit(&spec);
    CHECK_HAS(text, "\ngpu_visibility: job  # command line --gpu-visibility\n");
    CHECK(!strstr(text, "virtual_local_rank"));
    free(text);
    spec_finish(&spec);
}

TEST(a_text_that_is_no_utf8_can_not_be_shown)
{
    static const char *const BAD[] = {"\xff",     "\xc0\xaf",         "\xed\xa0\x80",
                                      "\xe2\x82", "\xf4\x90\x80\x80", "a\x80"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        struct job_spec spec;
        struct err err;
        char *argv[] = {(char *)"p", (char *)BAD[i], NULL};
        FILE *out = fopen("/dev/null", "w");
        CHECK(out != NULL);
        CHECK_INT(spec_init(&spec), ==, 0);
        spec.argv = argv;
        CHECK_INT(emit_config(out, &spec, &err), ==, -EINVAL);
        CHECK_STR(err.text, "args is no UTF-8, so that no job file can hold it");
        spec_finish(&spec);
        fclose(out);
    }
}

TEST(the_example_explains_every_setting_and_is_a_job_file_with_and_without_its_marks)
{
    char *text = NULL;
    size_t n, kept = 0;
    struct job_spec spec, defaults;
    struct err err;
    FILE *out = open_memstream(&text, &n);
    CHECK(out != NULL);
    emit_example(out);
    CHECK_INT(fclose(out), ==, 0);
    CHECK_INT(spec_init(&defaults), ==, 0);
    CHECK_INT(spec_init(&spec), ==, 0);
    CHECK_INT(jobfile_parse(&spec, "f", text, n, &err), ==, 0);
    CHECK(same_spec(&spec, &defaults));
    for (size_t i = 0; i < FIELDS_N; i++) {
        char line[FIELD_ENV_BYTES + 4], key[FIELD_ENV_BYTES];
        snprintf(line, sizeof line, "\n#%s: ", field_key(FIELDS[i].name, key));
        CHECK_INT(strstr(text, line) != NULL, ==, FIELDS[i].group != GROUP_FILE);
    }
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        CHECK(strcspn(line, "\n") < 80);
        size_t name = 1 + strcspn(line + 1, ":");
        char known[FIELD_ENV_BYTES] = "";
        if (line[0] == '#' && name < sizeof known)
            snprintf(known, sizeof known, "%.*s", (int)name - 1, line + 1);
        const struct field *field = row(known);
        size_t bytes = strcspn(line, "\n") + 1;
        if (field && field->def)
            memmove(text + kept, line + 1, bytes - 1), kept += bytes - 1;
    }
    if (jobfile_parse(&spec, "f", text, kept, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK(same_spec(&spec, &defaults));
    spec_finish(&spec);
    spec_finish(&defaults);
    free(text);
}

TEST(the_jobs_of_a_file_come_back)
{
    static const char TEXT[] =
        "max_restarts: 3\nprogram: \"a \\n b\"\nargs: [-x]\n"
        "env: {A: \"1\\n2\"}\njobs:\n  one: {gpus: 1}\n  2: {env: {B: $$}}\n";
    struct job_spec spec, again;
    struct err err;
    CHECK_INT(spec_init(&spec), ==, 0);
    CHECK_INT(spec_init(&again), ==, 0);
    CHECK_INT(field_set(row("config"), &spec, "f", "", NULL), ==, 0);
    CHECK_INT(jobfile_parse(&spec, "f", TEXT, sizeof TEXT - 1, &err), ==, 0);
    CHECK_INT(spec_check(&spec, &err), ==, 0);
    char *text = emit(&spec);
    CHECK_HAS(text, "jobs:\n  one:\n    nproc_per_node: 1  # default\n");
    if (jobfile_parse(&again, "again", text, strlen(text), &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK_INT(spec_check(&again, &err), ==, 0);
    CHECK_INT(again.jobs_n, ==, 2);
    CHECK(same_spec(&spec, &again));
    free(text);
    spec_finish(&spec);
    spec_finish(&again);
}
