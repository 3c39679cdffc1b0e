/* SPDX-License-Identifier: MIT */
/* Job files: what each key means, what is refused and with which words, and which source goes before which. */
#include "../../config/jobfile.h"

#include "../../config/fields.h"
#include "../../config/yaml.h"
#include "../../proto/env.h"
#include "../harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* The caller finishes spec. */
static int read_text(struct job_spec *spec, const char *text, struct err *err)
{
    CHECK_INT(spec_init(spec), ==, 0);
    return jobfile_parse(spec, "job.yaml", text, strlen(text), err);
}

static void take(struct job_spec *spec, const char *text)
{
    struct err err;
    if (read_text(spec, text, &err) < 0)
        test_fail(__FILE__, __LINE__, "refused: %s", err.text);
}

static void check_refused(const char *text, const char *line)
{
    struct job_spec spec;
    struct err err;
    CHECK_INT(read_text(&spec, text, &err), ==, -EINVAL);
    CHECK_STR(err.text, line);
    spec_finish(&spec);
}

static bool reads(const char *text)
{
    struct job_spec spec;
    int r = read_text(&spec, text, NULL);
    CHECK(r == 0 || r == -EINVAL);
    spec_finish(&spec);
    return r == 0;
}

TEST(a_job_file_sets_program_arguments_variables_and_settings)
{
    struct job_spec spec;
    take(&spec, "nproc_per_node: 4\n"
                "max-restarts: 3   # dash or underscore\n"
                "rdzv_id: night\n"
                "program: ./train\n"
                "args: [--lr, 1e-4]\n"
                "env:\n"
                "  NCCL_DEBUG: INFO\n");
    CHECK_INT(spec.nproc, ==, 4);
    CHECK_INT(spec.max_restarts, ==, 3);
    CHECK_STR(spec.run_id, "night");
    CHECK_STR(spec.file_argv[0], "./train");
    CHECK_STR(spec.file_argv[1], "--lr");
    CHECK_STR(spec.file_argv[2], "1e-4");
    CHECK(!spec.file_argv[3]);
    CHECK_STR(spec.env[0], "NCCL_DEBUG=INFO");
    CHECK(!spec.env[1]);
    CHECK_INT(spec.origin[field_find("np", 2) - FIELDS].source, ==, SOURCE_FILE);
    CHECK_INT(spec.origin[field_find("run-id", 6) - FIELDS].line, ==, 3);
    spec_finish(&spec);
}

TEST(arguments_and_variables_are_text_as_written)
{
    static const char *const AS_WRITTEN[] = {
        "NO",  "no",   "yes",   "on",         "off",   "true",  "null", "~",    "1e-5", "1e3",
        "007", "0o17", "0755",  "0x1F",       "1_000", "22:30", "1.10", ".inf", "+1",   "-.5",
        "y",   "=",    "12e03", "2001-12-14", "0b1",   "NULL",  "",     "1,2",  "a b",  "#x"};
    for (size_t i = 0; i < ARRAY_LEN(AS_WRITTEN); i++) {
        const char *word = AS_WRITTEN[i], *quote = *word == '#' ? "'" : "";
        char text[200], want[80];
        struct job_spec spec;
        snprintf(text, sizeof text,
                 "program: p\nargs:\n- %s%s%s\n- \"%s\"\nenv:\n  A: %s%s%s\n  B: '%s'\n", quote,
                 word, quote, word, quote, word, quote, word);
        take(&spec, text);
        CHECK_STR(spec.file_argv[1], word);
        CHECK_STR(spec.file_argv[2], word);
        snprintf(want, sizeof want, "A=%s", word);
        CHECK_STR(spec.env[0], want);
        want[0] = 'B';
        CHECK_STR(spec.env[1], want);
        spec_finish(&spec);
    }
}

TEST(every_setting_takes_its_default_from_a_file_under_every_name)
{
    for (size_t i = 0; i < FIELDS_N; i++) {
        const struct field *field = &FIELDS[i];
        char text[200], key[FIELD_ENV_BYTES];
        const char *names[] = {field->name, field_key(field->name, key), field->aliases};
        for (size_t n = 0; n < ARRAY_LEN(names) && names[n]; n++) {
            snprintf(text, sizeof text, "%s: '%s'\n", names[n], field->def ? field->def : "1");
            bool no_value_known =
                !field->def && (field->choices || strpbrk(field->arg ? field->arg : "", ":="));
            if (field->group == GROUP_FILE)
                CHECK(!reads(text));
            else if (!no_value_known && !reads(text))
                test_fail(__FILE__, __LINE__, "%s", text);
        }
    }
}

TEST(a_setting_with_an_ambiguous_value_is_refused_and_quotes_help)
{
    static const char *const AMBIGUOUS[] = {"", "~", "null", "Null", "NULL", "017", "00", "08"};
    for (size_t i = 0; i < FIELDS_N; i++) {
        for (size_t v = 0; v < ARRAY_LEN(AMBIGUOUS); v++) {
            char text[200];
            snprintf(text, sizeof text, "%s: %s\n", FIELDS[i].name, AMBIGUOUS[v]);
            CHECK(!reads(text));
        }
    }
    CHECK(reads("role: 'null'\n"));
    CHECK(reads("run_id: \"007\"\n"));
    CHECK(reads("nproc_per_node: '08'\n"));
    CHECK(reads("max_restarts: 0\n"));
    check_refused("nproc_per_node: 017\n", "job.yaml:1:17: nproc_per_node: 017 is octal to some "
                                           "readers of YAML and decimal to others; "
                                           "leave the zeros out, or quote it");
    check_refused("x: &x ~\nrole: *x\n",
                  "job.yaml:1:1: unknown key 'x'; launch --example-config shows them all");
    check_refused(
        "role: ~\n",
        "job.yaml:1:7: role: has no value; leave it out for the default, or quote what is meant");
}

TEST(a_number_is_decimal_digits_and_nothing_else)
{
    static const char *const BAD[] = {"0o17", "0x4", "1e1", "4.0",  "+4", "-4",
                                      "1_0",  "4 4", "2:0", "four", ".4"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        char text[80];
        snprintf(text, sizeof text, "nproc_per_node: %s\n", BAD[i]);
        CHECK(!reads(text));
        snprintf(text, sizeof text, "max_restarts: \"%s\"\n", BAD[i]);
        CHECK(!reads(text));
    }
    CHECK(reads("nproc_per_node: 4   \n"));
}

TEST(a_switch_takes_all_the_words_of_yaml_for_yes_and_no)
{
    static const char *const WORDS[][2] = {{"yes", "no"}, {"on", "off"},     {"true", "false"},
                                           {"1", "0"},    {"True", "False"}, {"YES", "NO"},
                                           {"On", "Off"}};
    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
        for (int off = 0; off < 2; off++) {
            char text[80];
            struct job_spec spec;
            snprintf(text, sizeof text, "share_gpus: %s\n", WORDS[i][off]);
            take(&spec, text);
            CHECK_INT(spec.share_gpus, ==, !off);
            spec_finish(&spec);
        }
    }
    CHECK(!reads("share_gpus: maybe\n"));
    struct job_spec spec;
    take(&spec, "cgroup: off\nexit_code: worker\n"); /* here it is a word, and stays one */
    CHECK_INT(spec.cgroup, ==, CGROUP_OFF);
    spec_finish(&spec);
}

TEST(a_list_of_commas_may_be_a_yaml_list_and_nothing_else_may)
{
    struct job_spec spec;
    take(&spec, "restart_on: [1, 3-5, SIGSEGV]\nforward_signals:\n- USR1\n- USR2\nredirects: "
                "['0:3', '10:1']\n");
    CHECK(codeset_has(&spec.restart_on, 4, 0, false));
    CHECK(codeset_has(&spec.restart_on, 139, 11, false));
    CHECK_INT(spec.forward_signals.n, ==, 2);
    CHECK_INT(rankmap_get(&spec.redirects, 10), ==, 1);
    spec_finish(&spec);
    for (size_t i = 0; i < FIELDS_N; i++) {
        char text[200];
        snprintf(text, sizeof text, "%s: [%s]\n", FIELDS[i].name,
                 FIELDS[i].def ? FIELDS[i].def : "1");
        CHECK_INT(reads(text), ==,
                  FIELDS[i].list && !(FIELDS[i].def && strchr(FIELDS[i].def, ':')));
        snprintf(text, sizeof text, "%s: {a: 1}\n", FIELDS[i].name);
        CHECK(!reads(text));
    }
    check_refused("nproc_per_node: [4]\n",
                  "job.yaml:1:17: nproc_per_node: must be one value, not a list");
    check_refused("restart_on: []\n",
                  "job.yaml:1:13: restart_on: the list is empty; leave it out for the default");
    check_refused("restart_on: ['1,2']\n",
                  "job.yaml:1:14: restart_on: a comma in an item of a list; write all as one text");
}

TEST(a_bad_value_is_refused_with_its_place_even_where_something_else_goes_before_it)
{
    struct job_spec spec;
    struct err err;
    CHECK_INT(spec_init(&spec), ==, 0);
    CHECK_INT(field_set(field_find("np", 2), &spec, "2", "--np", &err), ==, 0);
    static const char BAD[] = "nproc_per_node:\n  many\n", GOOD[] = "np: 8\nmax_restarts: 1\n";
    CHECK_INT(jobfile_parse(&spec, "job.yaml", BAD, sizeof BAD - 1, &err), ==, -EINVAL);
    CHECK_STR(err.text, "job.yaml:2:3: nproc_per_node: must be a number from 1 to 4096, 'gpu', "
                        "'auto' or 'cpu', not 'many'");
    CHECK_INT(jobfile_parse(&spec, "job.yaml", GOOD, sizeof GOOD - 1, &err), ==, 0);
    CHECK_INT(spec.nproc, ==, 2);
    CHECK_INT(spec.max_restarts, ==, 1);
    spec_finish(&spec);
}

TEST(an_unknown_key_is_refused_and_the_nearest_one_named)
{
    check_refused("nproc_per_node: 1\nprogram: ./p\nnprocs_per_nodes: 8\n",
                  "job.yaml:3:1: unknown key 'nprocs_per_nodes' (did you mean 'nproc_per_node'?)");
    check_refused("progam: x\n", "job.yaml:1:1: unknown key 'progam' (did you mean 'program'?)");
    check_refused("max_restart: 1\n",
                  "job.yaml:1:1: unknown key 'max_restart' (did you mean 'max_restarts'?)");
    check_refused("zebra: 1\n",
                  "job.yaml:1:1: unknown key 'zebra'; launch --example-config shows them all");
    check_refused("Role: 1\n", "job.yaml:1:1: unknown key 'Role' (did you mean 'role'?)");
    check_refused("\"a\\eb\": 1\n",
                  "job.yaml:1:1: unknown key 'a\\x1bb'; launch --example-config shows them all");
    check_refused("<<: {}\n", "job.yaml:1:1: '<<' is not there: write the keys out");
    check_refused("config: x\n", "job.yaml:1:1: config belongs on the command line");
    check_refused("? [a]\n: 1\n", "job.yaml:1:3: a key must be a word, not a list");
}

TEST(a_key_that_is_there_twice_is_refused_under_any_spelling)
{
    check_refused("np: 1\nrole: a\nnproc-per-node: 2\n",
                  "job.yaml:3:1: nproc_per_node: is set a second time, after line 1");
    check_refused("program: a\nprogram: b\n",
                  "job.yaml:2:1: program: is there a second time, after line 1");
    check_refused("env: {A: 1}\nenv: {B: 1}\n",
                  "job.yaml:2:1: env: is there a second time, after line 1");
    check_refused("env:\n  A: 1\n  B: 1\n  A: 1\n",
                  "job.yaml:4:3: env: A is there a second time, after line 2");
}

TEST(a_value_of_the_wrong_shape_is_refused_with_what_would_be_right)
{
    check_refused("program: [a, b]\n",
                  "job.yaml:1:10: program: must be one word, not a list; 'args' has the rest");
    check_refused(
        "program: ''\n",
        "job.yaml:1:10: program: must be one word, not an empty one; 'args' has the rest");
    check_refused("program:\n", "job.yaml:1:9: program: has no value; leave it out then");
    check_refused("program: a\nargs: --lr\n",
                  "job.yaml:2:7: args: must be a list such as [--lr, 1e-4], not a text");
    check_refused("program: a\nargs: [{a: 1}]\n",
                  "job.yaml:2:8: args: an argument must be a text, not a map");
    check_refused("args: [a]\n", "job.yaml:1:7: args: there is no 'program' that they belong to");
    check_refused("env: [A]\n",
                  "job.yaml:1:6: env: must be a map such as {NCCL_DEBUG: INFO}, not a list");
    check_refused("env: {A: [1, 2]}\n", "job.yaml:1:10: env: A: must be a text, not a list");
    check_refused("env: {[A]: 1}\n",
                  "job.yaml:1:7: env: 'a list' is no name of a variable (A-Z a-z 0-9 _)");
    check_refused("- a\n", "job.yaml:1:1: must be settings such as nproc_per_node: 4, not a list");
    check_refused("word\n", "job.yaml:1:1: must be settings such as nproc_per_node: 4, not a text");
}

TEST(a_file_of_blanks_and_comments_sets_nothing)
{
    static const char *const TEXTS[] = {" ",          "\n\n", "# nothing\n", "---\n",
                                        "---\n...\n", "~\n",  "{}\n",        "%YAML 1.2\n---\n"};
    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++)
        CHECK(reads(TEXTS[i]));
}

TEST(variables_are_expanded_from_our_own_environment)
{
    struct job_spec spec;
    setenv("WHERE", "/data", 1);
    setenv("NOTHING", "", 1);
    unsetenv("UNSET");
    take(&spec, "env:\n  A: ${WHERE}/x:$${WHERE}\n  B: '$$$$1'\n  C: \"<${NOTHING}>\"\n  WHERE: "
                "${WHERE}${WHERE}\n");
    CHECK_STR(spec.env[0], "A=/data/x:${WHERE}");
    CHECK_STR(spec.env[1], "B=$$1");
    CHECK_STR(spec.env[2], "C=<>");
    CHECK_STR(spec.env[3], "WHERE=/data/data");
    spec_finish(&spec);
    check_refused("env:\n  A: x${UNSET}\n",
                  "job.yaml:2:6: env: A: ${UNSET} is not set where launch was started");
    static const char *const BAD[] = {"$WHERE", "$",      "${WHERE", "${}", "${WHERE:-x}",
                                      "$$$",    "${W H}", "$(ls)",   "${1}"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        char text[80];
        snprintf(text, sizeof text, "env:\n  A: %s\n", BAD[i]);
        check_refused(text, "job.yaml:2:6: env: A: a $ must be ${NAME} or, for itself, $$");
    }
    check_refused("env: {A: ${WHERE}}\n",
                  "job.yaml:1:11: while parsing a flow mapping: did not find expected ',' "
                  "or '}'; within { } a ${NAME} must be quoted");
}

TEST(a_variable_that_launch_sets_itself_is_refused)
{
    static const char *const DECIDED[] = {ENV_DECIDED};
    for (size_t i = 0; i < ARRAY_LEN(DECIDED); i++) {
        char text[120], line[160];
        snprintf(text, sizeof text, "env:\n  A: b\n  %s: 1\n", DECIDED[i]);
        snprintf(line, sizeof line,
                 "job.yaml:3:3: env: %s is what launch itself sets for each worker", DECIDED[i]);
        check_refused(text, line);
    }
    check_refused(
        "env: {PET_MAX_RESTARTS: 1}\n",
        "job.yaml:1:7: env: PET_MAX_RESTARTS is a setting; write 'max_restarts:' outside of env");
    for (size_t i = 0; i < FIELDS_N; i++) {
        char text[120], ours[FIELD_ENV_BYTES];
        snprintf(text, sizeof text, "env:\n  %s: 1\n", field_env(&FIELDS[i], ours));
        CHECK(!reads(text));
    }
    static const char *const NAMES[] = {"''", "1A", "A-B", "A B", "A=B", "\"A\\n\"", "é"};
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        char text[120];
        snprintf(text, sizeof text, "env:\n  %s: 1\n", NAMES[i]);
        CHECK(!reads(text));
    }
    CHECK(reads("env: {LAUNCH_LOG: debug, PETS: 2, _x1: 3}\n"));
}

TEST(a_variable_may_not_grow_beyond_what_a_program_can_be_given)
{
    static char big[60000], text[300];
    memset(big, 'x', sizeof big - 1);
    setenv("BIG", big, 1);
    CHECK(reads("env:\n  A: ${BIG}${BIG}\n"));
    snprintf(text, sizeof text, "env:\n  A: ${BIG}${BIG}${BIG}\n");
    check_refused(text, "job.yaml:2:6: env: A: longer than 128 kB, which no program can be given");
}

/* ---- files ---- */

static void check_unreadable(const char *path, const char *part)
{
    struct job_spec spec;
    struct err err;
    CHECK_INT(spec_init(&spec), ==, 0);
    CHECK_INT(jobfile_read(&spec, path, &err), <, 0);
    CHECK_HAS(err.text, part);
    CHECK_HAS(err.text, path);
    spec_finish(&spec);
}

TEST(what_is_no_file_of_a_reasonable_size_is_refused_without_waiting)
{
    char path[200];
    snprintf(path, sizeof path, "%s/pipe", test_dir());
    CHECK_INT(mkfifo(path, 0600), ==, 0);
    check_unreadable(path, "is a pipe");
    check_unreadable(test_dir(), "is a directory");
    check_unreadable("/dev/zero", "is a device");
    check_unreadable("/no/such/file", "No such file or directory");
    test_write("empty", "");
    snprintf(path, sizeof path, "%s/empty", test_dir());
    check_unreadable(path, "is empty");
    CHECK_INT(truncate(path, 100 << 20), ==, 0); /* 100 MB, all holes: reading them would say NUL */
    check_unreadable(path, "has 104857600 bytes");
    CHECK_INT(truncate(path, YAML_MAX_BYTES), ==, 0);
    check_unreadable(path, "NUL");
}

TEST(a_file_is_read_to_its_end)
{
    char path[200], text[3000];
    memset(text, '#', sizeof text);
    snprintf(text + 2000, 1000, "\nmax_restarts: 9\n");
    test_write("job.yaml", text);
    snprintf(path, sizeof path, "%s/job.yaml", test_dir());
    struct job_spec spec;
    struct err err;
    CHECK_INT(spec_init(&spec), ==, 0);
    CHECK_INT(jobfile_read(&spec, path, &err), ==, 0);
    CHECK_INT(spec.max_restarts, ==, 9);
    spec_finish(&spec);
}

/* ---- several jobs ---- */

TEST(of_several_jobs_each_has_what_all_have_unless_it_says_so_itself)
{
    struct job_spec spec;
    take(&spec, "max_restarts: 2\n"
                "program: ./train\n"
                "args: [-x]\n"
                "env: {A: all, B: all}\n"
                "jobs:\n"
                "  one:\n"
                "    gpus: 4\n"
                "    env: {B: own, C: own}\n"
                "  two:\n"
                "    max_restarts: 0\n"
                "    args: [-y, -z]\n"
                "  three: {program: ./eval, name: third}\n");
    CHECK_INT(spec.jobs_n, ==, 3);
    const struct job_spec *one = &spec.jobs[0], *two = &spec.jobs[1], *three = &spec.jobs[2];
    CHECK_STR(one->name, "one");
    CHECK_INT(one->max_restarts, ==, 2);
    CHECK_INT(one->gpus_n, ==, 4);
    CHECK_STR(one->argv[0], "./train");
    CHECK_STR(one->argv[1], "-x");
    CHECK(!one->argv[2]);
    CHECK_STR(one->env[0], "A=all");
    CHECK_STR(one->env[1], "B=own");
    CHECK_STR(one->env[2], "C=own");
    CHECK(!one->env[3]);
    CHECK_INT(two->max_restarts, ==, 0);
    CHECK_INT(two->gpus_mode, ==, GPUS_VISIBLE);
    CHECK_STR(two->argv[0], "./train");
    CHECK_STR(two->argv[1], "-y");
    CHECK_STR(two->env[1], "B=all");
    CHECK_STR(three->name, "third");
    CHECK_STR(three->argv[0], "./eval");
    CHECK(!three->argv[1]);
    CHECK_INT(spec_check(&spec, NULL), ==, 0);
    spec_finish(&spec);
}

TEST(what_goes_before_the_file_goes_before_each_of_its_jobs)
{
    static const char TEXT[] = "program: p\njobs:\n  a: {max_restarts: 1}\n  b: {}\n";
    struct job_spec spec;
    CHECK_INT(spec_init(&spec), ==, 0);
    const struct field *restarts = field_find("max-restarts", 12);
    CHECK_INT(field_set(restarts, &spec, "7", "", NULL), ==, 0);
    CHECK_INT(jobfile_parse(&spec, "f", TEXT, sizeof TEXT - 1, NULL), ==, 0);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_INT(spec.jobs[i].max_restarts, ==, 7);
        CHECK_INT(field_source(restarts, &spec.jobs[i]), ==, SOURCE_COMMAND_LINE);
    }
    spec_finish(&spec);
}

TEST(jobs_that_make_no_sense_are_refused_with_their_place)
{
    check_refused("jobs: []\n", "job.yaml:1:7: jobs: must be a map of names and jobs, 1 to 64 of "
                                "them, not a list");
    check_refused("jobs: {}\n", "job.yaml:1:7: jobs: must be a map of names and jobs, 1 to 64 of "
                                "them, not an empty one");
    check_refused("jobs:\n", "job.yaml:1:6: jobs: has no value; leave it out then");
    check_refused("jobs:\n  a: {program: x}\n  a: {program: x}\n",
                  "job.yaml:3:3: jobs: a is there a second time, after line 2");
    check_refused("jobs:\n  a: {}\n", "job.yaml:2:3: jobs: a: has no 'program'");
    check_refused("jobs:\n  a b: {program: x}\n",
                  "job.yaml:2:3: jobs: a name: must be 1 to 63 of A-Z a-z 0-9 . _ -, a letter or "
                  "digit first, not 'a b'");
    check_refused("jobs:\n  a: {program: x, jobs: {}}\n",
                  "job.yaml:2:19: jobs: a job can't have jobs of its own");
    check_refused("jobs:\n  a: x\n",
                  "job.yaml:2:6: jobs: a: must be a map with 'program' and settings, not a text");
    check_refused("jobs:\n  [a]: {}\n", "job.yaml:2:3: jobs: a name must be a word, not a list");
    check_refused("jobs:\n  a: {program: x, gpu: 3}\n",
                  "job.yaml:2:19: unknown key 'gpu' (did you mean 'gpus'?)");
    check_refused("program: x\njobs:\n  a: {np: 0}\n",
                  "job.yaml:3:11: nproc_per_node: must be a number from 1 to 4096, 'gpu', 'auto' "
                  "or 'cpu', not '0'");
}

TEST(what_two_jobs_can_not_both_have_is_refused)
{
    static const char *const CASES[][2] = {
        {"run_id: x", "--run-id=x: two jobs of a file would have it, and each needs its own"},
        {"master_port: 4000",
         "--master-port=4000: two jobs of a file would have it, and each needs its own"},
        {"master_port: 0", NULL},
        {"log_dir: logs", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char text[200];
        struct job_spec spec;
        struct err err = {0};
        snprintf(text, sizeof text, "program: p\n%s\njobs: {a: {}, b: {}}\n", CASES[i][0]);
        take(&spec, text);
        CHECK_INT(spec_check(&spec, &err), ==, CASES[i][1] ? -EINVAL : 0);
        CHECK_STR(err.text, CASES[i][1] ? CASES[i][1] : "");
        spec_finish(&spec);
    }
}
