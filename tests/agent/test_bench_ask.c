/* SPDX-License-Identifier: MIT */
/* The command line of launch bench. */
#include "../../agent/bench/ask.h"
#include "../harness.h"

#include <stdio.h>
#include <stdlib.h>

static struct bench_ask ask;
static struct err err;

/* Parses words that blanks separate. */
static int parse(const char *line)
{
    static char text[512], *argv[64];
    int argc = 1;
    ask_finish(&ask);
    snprintf(text, sizeof text, "%s", line);
    argv[0] = (char *)"bench";
    for (char *save, *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
        argv[argc++] = word;
    argv[argc] = NULL;
    return ask_parse(&ask, argc, argv, &err);
}

static int settle(const char *line, bool gpus, unsigned ranks)
{
    int rc = parse(line);
    return rc < 0 ? rc : ask_settle(&ask, gpus, ranks, &err);
}

static const char *arguments(void)
{
    static char all[ASK_TEXT_BYTES];
    char *words[ASK_ARGUMENTS_MAX], text[ASK_TEXT_BYTES];
    size_t n = 0;
    ask_job_arguments(&ask, words, text);
    for (size_t i = 0; words[i]; i++)
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i ? " " : "", words[i]);
    return all;
}

TEST(without_flags_it_is_a_sweep_of_all_reduce)
{
    CHECK_INT(settle("", true, 8), ==, 0);
    CHECK_STR(arguments(),
              "all_reduce -b 8 -e 1073741824 -f 2 -n 20 -w 1 -c 1 -T 0 -d float -o sum -r 0");
    CHECK_INT(ask_sizes(&ask), ==, 28);
    CHECK_INT(settle("", false, 8), ==, 0);
    CHECK_INT(ask.max_bytes, ==, 64 << 20);
}

TEST(flags_are_those_of_nccl_tests)
{
    CHECK_INT(settle("reduce_perf -b8 --maxbytes=1.5k -i 0.5K -n 5 -w 0 -c0 -d all -oall -rall -T "
                     "9 -g 4 -t 1 -z 0",
                     true, 4),
              ==, 0);
    CHECK_STR(arguments(), "reduce -b 8 -e 1536 -i 512 -n 5 -w 0 -c 0 -T 9 -d all -o all -r all");
    CHECK_INT(ask.ranks, ==, 4);
    CHECK_INT(ask_sizes(&ask), ==, 3);
    CHECK_INT(settle("--min-bytes 3 --warmup-iters=2", true, 4), ==, -EINVAL);
    CHECK_HAS(err.text, "did you mean --minbytes?");
    CHECK_INT(settle("all-gather -b 1G -f 2", true, 4), ==, 0);
    CHECK_STR(
        arguments(),
        "all_gather -b 1073741824 -e 1073741824 -f 2 -n 20 -w 1 -c 1 -T 0 -d float -o sum -r 0");
    CHECK_INT(settle("-b 1G -e 1G -f 1", true, 4), ==, 0); /* its default, as scripts give it */
    CHECK_STR(arguments(), "all_reduce -b 1073741824 -e 1073741824 -i 1048576 -n 20 -w 1 -c 1 -T 0 "
                           "-d float -o sum -r 0");
    CHECK_INT(settle("-b 1M -e 3M -f 0 -i 1M", true, 4), ==, 0);
    CHECK_INT(ask_sizes(&ask), ==, 3);
    CHECK_INT(settle("-e 4M", true, 4), ==, 0);
    CHECK_STR(arguments(),
              "all_reduce -b 8 -e 4194304 -i 1048576 -n 20 -w 1 -c 1 -T 0 -d float -o sum -r 0");
    CHECK_INT(settle("--pairs", true, 4), ==, 0);
    CHECK_STR(arguments(), "sendrecv -b 67108864 -e 67108864 -i 1048576 -n 20 -w 1 -c 1 -T 0 -d "
                           "float -o sum -r 0 --pairs");
}

TEST(sizes_have_units_in_many_spellings)
{
    static const struct {
        const char *flag;
        uint64_t bytes;
    } CASES[] = {{"-b 0", 0},
                 {"-b 8", 8},
                 {"-b 1.9", 1},
                 {"-b 32M", 32 << 20},
                 {"-b 1g", 1 << 30},
                 {"-b 2MiB", 2 << 20},
                 {"-b 3KB", 3 << 10},
                 {"-b 0.5T", 1ull << 39},
                 {"-b 1024T", 1ull << 50}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        CHECK_INT(parse(CASES[i].flag), ==, 0);
        CHECK_INT(ask.min_bytes, ==, CASES[i].bytes);
    }
    static const char *const BAD[] = {"x",   "1X", "-1",  "0x10",  "1e400", "nan", "inf", "1MM",
                                      "1Mi", "1B", "1 K", "1025T", ".5",    "+5",  "K",   "1KiBs"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        char line[32];
        snprintf(line, sizeof line, "--minbytes=%s", BAD[i]);
        CHECK_INT(parse(line), ==, -EINVAL);
    }
    CHECK_INT(parse("-i 0"), ==, -EINVAL);
    CHECK_HAS(err.text, "-i: must be a size from 1 to 1024T");
}

TEST(options_of_launch_are_for_the_job)
{
    setenv("LAUNCH_DETACH", "1", 1);
    setenv("PET_MAX_RESTARTS", "3", 1);
    CHECK_INT(parse("--gpus 4-7 -n 3 --share-gpus --nproc_per_node=2 --wait"), ==, 0);
    CHECK_INT(ask.words_n, ==, 4);
    CHECK_STR(ask.words[0], "--gpus=4-7");
    CHECK_STR(ask.words[1], "--share-gpus");
    CHECK_STR(ask.words[2], "--nproc-per-node=2");
    CHECK_STR(ask.words[3], "--wait");
    CHECK(!ask.words[4]);
    CHECK_INT(ask.iterations, ==, 3);
    CHECK(!getenv("LAUNCH_DETACH") && !getenv("PET_MAX_RESTARTS"));
    ask_finish(&ask);
}

TEST(what_is_wrong_is_told_with_what_would_be_right)
{
    static const char *const CASES[][2] = {
        {"alreduce", "the collective: there is no 'alreduce'; did you mean all_reduce?"},
        {"all_reduce broadcast", "'broadcast': one collective at a time"},
        {"-d flaot", "-d: there is no 'flaot'; did you mean float?"},
        {"-d quad", "f8e5m2 or all, not 'quad'"},
        {"-o summ", "did you mean sum?"},
        {"-f 2000000", "-f: must be a number from 0 to 1048576"},
        {"-g 0", "-g: must be a number from 1 to 4096"},
        {"-r 4", "-r: there is no rank 4, the ranks are 0 to 3"},
        {"-r one", "-r: must be a rank, or all"},
        {"-b 2K -e 1K", "-b: 2048 bytes are more than the 1024 of -e"},
        {"-b 0 -e 8 -f 2", "-f: any multiple of -b 0 is 0"},
        {"-b 8 -e 1G -i 1", "at most 100000 are made"},
        {"-b 0 -e 32T", "at most 100000 are made"},
        {"-t 2", "-t: launch bench does not have this flag of nccl-tests: there is one process"},
        {"--cudagraph=1", "--cudagraph: launch bench does not have"},
        {"-q", "-q: unknown option; launch bench --help"},
        {"-n", "-n: needs a value: N"},
        {"-n -w", "-n: needs a value: N"},
        {"--detach", "--detach: launch bench decides this itself"},
        {"--config=x", "--config: launch bench decides this itself"},
        {"--pairs=1", "--pairs: takes no value"},
        {"--pairs -d all", "-d all: --pairs measures one type"},
        {"--pairs broadcast", "--pairs: measures sendrecv; leave broadcast out"},
        {"--format=xml", "--format: must be one of text, json, csv"},
        {"-J=", "-J: must be the name of a file"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        CHECK_INT(settle(CASES[i][0], true, 4), ==, -EINVAL);
        CHECK_HAS(err.text, CASES[i][1]);
    }
    CHECK_INT(settle("--pairs", true, 1), ==, -EINVAL);
    CHECK_HAS(err.text, "-g 2 makes a pair");
    ask_finish(&ask);
}

TEST(host_memory_has_what_liblaunch_has)
{
    CHECK_INT(settle("broadcast -d all -o avg", false, 4), ==, 0);
    CHECK_INT(settle("-o all -d double", false, 4), ==, 0);
    static const char *const CASES[][2] = {
        {"--pairs", "--pairs: there is no GPU"},
        {"gather", "gather: there is no GPU"},
        {"-d half", "-d half: without a GPU it is int32"},
        {"-o avg", "-o avg: without a GPU it is sum"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        CHECK_INT(settle(CASES[i][0], true, 4), ==, 0);
        CHECK_INT(settle(CASES[i][0], false, 4), ==, -EINVAL);
        CHECK_HAS(err.text, CASES[i][1]);
    }
    ask_finish(&ask);
}

TEST(help_fits_a_terminal)
{
    char *help = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&help, &n);
    ask_print_help(out);
    fclose(out);
    for (char *line = help; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        size_t width = strcspn(line, "\n");
        if (width > 80)
            test_fail(__FILE__, __LINE__, "%zu columns: %.*s", width, (int)width, line);
    }
    CHECK_HAS(help, "--pairs");
    CHECK_HAS(help, "--format=text|json|csv|svg\n                            what stdout gets");
    free(help);
}
