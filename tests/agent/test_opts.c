/* SPDX-License-Identifier: MIT */
/* The command line and the environment; torchrun's whole list is in test_opts_torchrun.c. */
#include "../../config/fields.h"
#include "../../config/foreign.h"
#include "../../proto/env.h"
#include "opts_rig.h"

#include <stdio.h>

/* The words are refused with exactly that line. */
#define CHECK_REFUSED(line, ...)                                                                   \
    do {                                                                                           \
        struct run refused_;                                                                       \
        PARSE(&refused_, __VA_ARGS__);                                                             \
        CHECK_INT(refused_.r, ==, -EINVAL);                                                        \
        CHECK_STR(refused_.err.text, line);                                                        \
        CHECK_INT(refused_.action, ==, NO_ACTION);                                                 \
        spec_finish(&refused_.spec);                                                               \
    } while (0)

TEST(words_behind_the_program_are_the_jobs_own)
{
    clear_environment();
    struct run run;
    PARSE(&run, "--nproc-per-node", "1", "./args.sh", "--r=16", "--log", "x", "--max", "3", "-m",
          "foo", "--nproc-per-node", "9", "-h", "--version", "--");
    CHECK_RUNS(&run);
    CHECK_INT(run.spec.nproc, ==, 1);
    CHECK(run.spec.argv == run.argv + 3);
    CHECK_STR(run.spec.argv[0], "./args.sh");
    CHECK_STR(run.spec.argv[12], "--");
    CHECK(run.spec.argv[13] == NULL);
    spec_finish(&run.spec);
}

TEST(a_double_dash_before_the_program_is_swallowed)
{
    clear_environment();
    struct run run;
    PARSE(&run, "-n", "2", "--", "--odd-name", "--", "x");
    CHECK_RUNS(&run);
    CHECK_STR(run.spec.argv[0], "--odd-name");
    CHECK_STR(run.spec.argv[1], "--");
    spec_finish(&run.spec);

    PARSE(&run, "--", "-h");
    CHECK_RUNS(&run);
    CHECK_STR(run.spec.argv[0], "-h");
    spec_finish(&run.spec);
}

TEST(all_spellings_of_an_option_mean_the_same)
{
    static const char *const ONE[] = {"--nproc-per-node=4",
                                      "--nproc_per_node=4",
                                      "--nproc_per-node=4",
                                      "--np=4",
                                      "-np=4",
                                      "-n=4",
                                      "-n4",
                                      "-n04",
                                      "-nproc-per-node=4"};
    static const char *const TWO[] = {"--nproc-per-node", "--nproc_per_node", "--np", "-np", "-n"};
    clear_environment();
    struct run run;
    for (size_t i = 0; i < ARRAY_LEN(ONE); i++) {
        PARSE(&run, ONE[i], "p");
        CHECK_RUNS(&run);
        CHECK_INT(run.spec.nproc, ==, 4);
        spec_finish(&run.spec);
    }
    for (size_t i = 0; i < ARRAY_LEN(TWO); i++) {
        PARSE(&run, TWO[i], "4", "p");
        CHECK_RUNS(&run);
        CHECK_INT(run.spec.nproc, ==, 4);
        CHECK_STR(run.spec.argv[0], "p");
        spec_finish(&run.spec);
    }
}

TEST(a_usual_torchrun_command_line_is_taken)
{
    clear_environment();
    struct run run;
    PARSE(&run, "--standalone", "--nnodes=1:1", "--nproc_per_node", "gpu", "--rdzv-backend=c10d",
          "--rdzv-endpoint=localhost:0", "--rdzv_id", "job-7", "--max-restarts", "3",
          "--monitor-interval=0.1", "--start-method", "fork", "--no-python", "--use-env",
          "--node-rank=0", "--virtual-local-rank", "./train", "--lr=1");
    CHECK_RUNS(&run);
    CHECK_INT(run.spec.nproc_mode, ==, NPROC_GPU);
    CHECK_STR(run.spec.run_id, "job-7");
    CHECK_INT(run.spec.max_restarts, ==, 3);
    CHECK_INT(run.spec.gpu_visibility, ==, GPU_VISIBILITY_RANK);
    CHECK_STR(run.spec.argv[0], "./train");
    spec_finish(&run.spec);
}

TEST(the_last_of_repeated_options_counts)
{
    clear_environment();
    struct run run;
    PARSE(&run, "-n2", "--np=3", "--virtual-local-rank", "--gpu-visibility=job", "--share-gpus",
          "--share-gpus=no", "p");
    CHECK_RUNS(&run);
    CHECK_INT(run.spec.nproc, ==, 3);
    CHECK_INT(run.spec.gpu_visibility, ==, GPU_VISIBILITY_JOB);
    CHECK_INT(run.spec.share_gpus, ==, 0);
    spec_finish(&run.spec);
}

TEST(a_switch_never_takes_the_next_word)
{
    clear_environment();
    struct run run;
    PARSE(&run, "--share-gpus", "0", "x");
    CHECK_RUNS(&run);
    CHECK_INT(run.spec.share_gpus, ==, 1);
    CHECK_INT(run.spec.gpu_visibility, ==, GPU_VISIBILITY_RANK);
    CHECK_STR(run.spec.argv[0], "0");
    spec_finish(&run.spec);
    CHECK_REFUSED("--share-gpus: must be 1, 0, true, false, yes, no, on or off, not ''",
                  "--share-gpus=", "p");
}

TEST(help_and_version_count_before_what_follows)
{
    static const struct {
        const char *word;
        enum opts_action action;
    } ROWS[] = {{"-h", OPTS_HELP},
                {"--help", OPTS_HELP},
                {"-V", OPTS_VERSION},
                {"--version", OPTS_VERSION}};
    clear_environment();
    setenv("PET_NPROC_PER_NODE", "junk", 1);
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct run run;
        PARSE(&run, "-n2", ROWS[i].word, "--nonsense");
        CHECK_INT(run.r, ==, 0);
        CHECK_INT(run.action, ==, ROWS[i].action);
        spec_finish(&run.spec);
    }
}

TEST(wrong_words_are_refused_with_one_helpful_line)
{
    clear_environment();
#define RIGHT "must be a number from 1 to 4096, 'gpu', 'auto' or 'cpu'"
    CHECK_REFUSED("--nproc-per-node: " RIGHT ", not '4.0'", "--nproc_per_node=4.0", "p");
    CHECK_REFUSED("--nproc-per-node: " RIGHT ", not ''", "-n=", "p");
    CHECK_REFUSED("--nproc-per-node: " RIGHT ", not '-5'", "-n", "-5", "p");
#undef RIGHT
    CHECK_REFUSED("--nproc-per-nod: unknown option; did you mean --nproc-per-node?",
                  "--nproc-per-nod=4", "p");
    CHECK_REFUSED("--nproc: unknown option; did you mean --nproc-per-node?", "--nproc", "4", "p");
    CHECK_REFUSED("--zebra: unknown option; --help lists them all", "--zebra", "p");
    CHECK_REFUSED("-z: unknown option; --help lists them all", "-z", "p");
    CHECK_REFUSED("---: unknown option; --help lists them all", "---", "p");
    CHECK_REFUSED("--: unknown option; --help lists them all", "--=4", "p");
    CHECK_REFUSED("-: unknown option; --help lists them all", "-=4", "p");
    CHECK_REFUSED("--help: takes no value", "--help=4", "p");
    CHECK_REFUSED("--max-restarts: needs a value: --max-restarts=N", "--max-restarts");
    CHECK_REFUSED("--role: needs a value: --role=NAME", "--role", "--standalone", "p");
    CHECK_REFUSED("--role: needs a value: --role=NAME", "--role", "--", "p");
    CHECK_REFUSED(
        "no program given; usage: launch [options] program [arguments]; launch --help has the rest",
        NULL);
    CHECK_REFUSED(
        "no program given; usage: launch [options] program [arguments]; launch --help has the rest",
        "-n4", "--");
    CHECK_REFUSED("the program's name is empty; usage: launch [options] program [arguments]; "
                  "launch --help has the rest",
                  "", "x");
}

TEST(an_error_names_the_option_as_it_was_written)
{
    clear_environment();
    CHECK_REFUSED(
        "--rdzv-id: must be 1 to 63 of A-Z a-z 0-9 . _ -, a letter or digit first, not 'a/b'",
        "--rdzv_id=a/b", "p");
    CHECK_REFUSED("--numa-binding: needs a value: "
                  "--numa-binding=none|node|socket|exclusive|core-complex|cores",
                  "--numa-binding", "--", "p");
    CHECK_REFUSED("--max-restarts: must be a number from 0 to 1000000, not 'x'", "--max_restarts",
                  "x", "p");
    CHECK_REFUSED("--tee: needs a value: --tee=MAP", "-t");
}

TEST(a_mistyped_help_is_known_again)
{
    clear_environment();
    CHECK_REFUSED("--hepl: unknown option; did you mean --help?", "--hepl");
    CHECK_REFUSED("--verison: unknown option; did you mean --version?", "--verison", "p");
}

TEST(an_empty_argument_vector_is_refused)
{
    clear_environment();
    struct job_spec spec;
    char *argv[] = {NULL};
    enum opts_action action;
    CHECK_INT(spec_init(&spec), ==, 0);
    CHECK_INT(opts_parse(&spec, 0, argv, &action, NULL), ==, -EINVAL);
    spec_finish(&spec);
}

TEST(an_abbreviation_of_any_option_is_unknown)
{
    clear_environment();
    for (size_t i = 0; i < FIELDS_N; i++) {
        for (size_t n = 2; n < strlen(FIELDS[i].name); n++) {
            char word[80];
            struct run run;
            snprintf(word, sizeof word, "--%.*s", (int)n, FIELDS[i].name);
            if (field_find(word + 2, n))
                continue;
            PARSE(&run, word, "1", "p");
            CHECK_INT(run.r, ==, -EINVAL);
            const char *known = foreign_find(FOREIGN_OPTION, word + 2, n);
            CHECK_HAS(run.err.text, ": unknown option; ");
            CHECK_HAS(run.err.text, known ? known : "did you mean --");
            spec_finish(&run.spec);
        }
    }
}

static void check_one_printable_line(const struct err *err)
{
    CHECK(err->text[0] != '\0');
    for (const char *c = err->text; *c; c++)
        CHECK(*c >= 0x20 && *c < 0x7f);
}

TEST(no_byte_of_the_command_line_reaches_the_terminal_raw)
{
    clear_environment();
    for (int c = 1; c < 256; c++) {
        char value[] = {'=', (char)c, '\0'}, word[300], unknown[300];
        for (size_t i = 0; i < FIELDS_N; i++) {
            struct run run;
            snprintf(word, sizeof word, "--%s%s", FIELDS[i].name, value);
            PARSE(&run, word, "p");
            if (run.r < 0)
                check_one_printable_line(&run.err);
            spec_finish(&run.spec);
        }
        struct run run;
        memset(unknown, c, sizeof unknown);
        memcpy(unknown, "--z", 3);
        unknown[sizeof unknown - 1] = '\0';
        PARSE(&run, unknown, "p");
        CHECK_INT(run.r, ==, -EINVAL);
        check_one_printable_line(&run.err);
        CHECK(strlen(run.err.text) < 130);
        spec_finish(&run.spec);
    }
}

/* Some value of the row that is not the default. */
static const char *other_value(const struct field *field)
{
    if (!field->arg)
        return "1";
    if (field->choices)
        return field->choices[field->choices[1] ? 1 : 0];
    if (strstr(field->name, "signals"))
        return "USR1";
    if (strcmp(field->name, "restart-limits") == 0)
        return "hang:7";
    if (strcmp(field->name, "rdzv-conf") == 0)
        return "timeout=2";
    return field->group == GROUP_TORCHRUN ? (field->def ? field->def : "2") : "7";
}

/* But for argv. spec_init() zeroes the padding. */
static void check_same(const struct job_spec *a, const struct job_spec *b)
{
    CHECK(memcmp(a, b, offsetof(struct job_spec, master_addr)) == 0);
    for (size_t i = 0; i < FIELDS_N; i++)
        CHECK_INT(field_given(&FIELDS[i], a), ==, field_given(&FIELDS[i], b));
    CHECK_STR(a->master_addr, b->master_addr);
    CHECK_STR(a->role, b->role);
    const char *const left[] = {a->run_id, a->log_dir, a->stdout_filters, a->stderr_filters};
    const char *const right[] = {b->run_id, b->log_dir, b->stdout_filters, b->stderr_filters};
    for (size_t i = 0; i < ARRAY_LEN(left); i++) {
        CHECK(!left[i] == !right[i]);
        CHECK(!left[i] || strcmp(left[i], right[i]) == 0);
    }
}

TEST(every_setting_can_come_from_its_variables)
{
    for (size_t i = 0; i < FIELDS_N; i++) {
        if (FIELDS[i].group == GROUP_FILE)
            continue;
        char ours[FIELD_ENV_BYTES];
        const char *const names[] = {field_env(&FIELDS[i], ours), FIELDS[i].pet};
        for (size_t n = 0; n < ARRAY_LEN(names) && names[n]; n++) {
            struct run run, by_option;
            char option[128];
            snprintf(option, sizeof option, "--%s=%s", FIELDS[i].name, other_value(&FIELDS[i]));
            clear_environment();
            PARSE(&by_option, option, "p");
            setenv(names[n], other_value(&FIELDS[i]), 1);
            PARSE(&run, "p");
            CHECK_RUNS(&by_option);
            CHECK_RUNS(&run);
            check_same(&run.spec, &by_option.spec);
            CHECK_INT(run.spec.origin[i].source, ==, n ? SOURCE_PET : SOURCE_LAUNCH);
            spec_finish(&by_option.spec);
            spec_finish(&run.spec);
        }
    }
}

TEST(variables_reach_the_spec)
{
    clear_environment();
    setenv("PET_NPROC_PER_NODE", "7", 1);
    setenv("LAUNCH_MAX_RESTARTS", "8", 1);
    setenv("PET_MASTER_PORT", "29500", 1);
    setenv("LAUNCH_RUN_ID", "night", 1);
    setenv("LAUNCH_RENDEZVOUS_TIMEOUT", "1.5m", 1);
    struct run run;
    PARSE(&run, "p");
    CHECK_RUNS(&run);
    CHECK_INT(run.spec.nproc, ==, 7);
    CHECK_INT(run.spec.max_restarts, ==, 8);
    CHECK_INT(run.spec.master_port, ==, 29500);
    CHECK_STR(run.spec.run_id, "night");
    CHECK_INT(run.spec.rendezvous_timeout_ms, ==, 90000);
    spec_finish(&run.spec);
}

TEST(the_command_line_beats_our_variable_and_that_beats_torchruns)
{
    clear_environment();
    setenv("PET_NPROC_PER_NODE", "junk", 1);
    setenv("LAUNCH_NPROC_PER_NODE", "3", 1);
    setenv("PET_VIRTUAL_LOCAL_RANK", "1", 1);
    struct run run;
    PARSE(&run, "--gpu-visibility=job", "p");
    CHECK_RUNS(&run);
    CHECK_INT(run.spec.nproc, ==, 3);
    CHECK_INT(run.spec.gpu_visibility, ==, GPU_VISIBILITY_JOB);
    spec_finish(&run.spec);

    setenv("LAUNCH_NPROC_PER_NODE", "junk", 1);
    PARSE(&run, "-n2", "p");
    CHECK_RUNS(&run);
    CHECK_INT(run.spec.nproc, ==, 2);
    CHECK_INT(run.spec.gpu_visibility, ==, GPU_VISIBILITY_RANK);
    spec_finish(&run.spec);
}

TEST(an_empty_variable_counts_as_unset)
{
    clear_environment();
    setenv("LAUNCH_NPROC_PER_NODE", "", 1);
    setenv("PET_NPROC_PER_NODE", "5", 1);
    setenv("PET_MAX_RESTARTS", "", 1);
    struct run run;
    PARSE(&run, "p");
    CHECK_RUNS(&run);
    CHECK_INT(run.spec.nproc, ==, 5);
    CHECK_INT(run.spec.max_restarts, ==, 0);
    spec_finish(&run.spec);
}

TEST(a_bad_variable_is_named_in_the_error)
{
    clear_environment();
    setenv("PET_NNODES", "2", 1);
    CHECK_REFUSED("PET_NNODES: must be 1 or 1:1, as a job can't have several servers yet "
                  "(--nnodes=1 --nproc-per-node=gpu takes all GPUs of this one), not '2'",
                  "p");
    clear_environment();
    setenv("LAUNCH_MAX_RESTARTS", "-1\x1b[31m", 1);
    CHECK_REFUSED("LAUNCH_MAX_RESTARTS: must be a number from 0 to 1000000, not '-1\\x1b[31m'",
                  "p");
}

TEST(variables_of_an_outer_job_change_nothing)
{
    static const char *const OUTER[] = {ENV_BOARD_FD,      ENV_BELL_FD,
                                        ENV_SLOT,          ENV_GENERATION,
                                        ENV_SHARE_GPUS,    ENV_SYSROOT,
                                        ENV_RANK,          ENV_LOCAL_RANK,
                                        ENV_WORLD_SIZE,    ENV_LOCAL_WORLD_SIZE,
                                        ENV_GROUP_RANK,    ENV_ROLE_NAME,
                                        ENV_MASTER_ADDR,   ENV_MASTER_PORT,
                                        ENV_RESTART_COUNT, ENV_MAX_RESTARTS,
                                        ENV_RUN_ID,        ENV_OMP,
                                        "SLURM_NTASKS",    "OMPI_COMM_WORLD_SIZE",
                                        "PMI_RANK",        "LAUNCH_NO_SUCH_SETTING"};
    struct run run, plain;
    clear_environment();
    PARSE(&plain, "p");
    for (size_t i = 0; i < ARRAY_LEN(OUTER); i++) {
        for (size_t f = 0; f < FIELDS_N; f++) {
            char ours[FIELD_ENV_BYTES];
            CHECK(strcmp(OUTER[i], field_env(&FIELDS[f], ours)) != 0);
            CHECK(!FIELDS[f].pet || strcmp(OUTER[i], FIELDS[f].pet) != 0);
        }
        setenv(OUTER[i], "1", 1);
    }
    PARSE(&run, "p");
    CHECK_RUNS(&run);
    check_same(&run.spec, &plain.spec);
    spec_finish(&run.spec);
    spec_finish(&plain.spec);
}

TEST(a_contradiction_is_found_wherever_its_halves_come_from)
{
    clear_environment();
    setenv("LAUNCH_SHARE_GPUS", "1", 1);
    struct run run;
    PARSE(&run, "--gpu-visibility=job", "p");
    CHECK_INT(run.r, ==, -EINVAL);
    CHECK_HAS(run.err.text, "--share-gpus contradicts --gpu-visibility=job");
    spec_finish(&run.spec);
    PARSE(&run, "--gpu-visibility=rank", "p");
    CHECK_RUNS(&run);
    spec_finish(&run.spec);
}
