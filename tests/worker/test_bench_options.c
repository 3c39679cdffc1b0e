/* SPDX-License-Identifier: MIT */
/* The bench job's command line. */
#include "../harness.h"

#include "../../worker/bench.h"

#include <stdio.h>

static char why[160];

static int parse(struct bench_options *o, const char *line)
{
    static char text[300];
    char *argv[40], *save = NULL;
    int argc = 0;
    snprintf(text, sizeof text, "launch-bench %s", line);
    for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
        argv[argc++] = word;
    argv[argc] = NULL;
    return bench_options_parse(o, argc, argv, why, sizeof why);
}

TEST(every_option_is_taken)
{
    struct bench_options o;
    CHECK_INT(parse(&o, "reduce -b 8 -e 1024 -f 4 -n 5 -w 6 -c 7 -d half -o avg -r 3 -T 9 --pairs"),
              ==, 0);
    CHECK_INT(o.collective, ==, BENCH_REDUCE);
    CHECK_INT(o.min_bytes, ==, 8);
    CHECK_INT(o.max_bytes, ==, 1024);
    CHECK_INT(o.step_factor, ==, 4);
    CHECK_INT(o.step_bytes, ==, 0);
    CHECK_INT(o.iterations, ==, 5);
    CHECK_INT(o.warm_ups, ==, 6);
    CHECK_INT(o.checks, ==, 7);
    CHECK_INT(o.type, ==, BENCH_TYPE_HALF);
    CHECK_INT(o.op, ==, BENCH_OP_AVG);
    CHECK_INT(o.root, ==, 3);
    CHECK_INT(o.timeout_s, ==, 9);
    CHECK(o.pairs && !o.check);
    CHECK_INT(parse(&o, "alltoall -d all -o all -r all -i 64"), ==, 0);
    CHECK(o.type == -1 && o.op == -1 && o.root == -1);
    CHECK_INT(o.step_bytes, ==, 64);
    CHECK_INT(parse(&o, "check"), ==, 0);
    CHECK(o.check);
}

TEST(every_name_of_the_lists_is_known)
{
    struct bench_options o;
    char line[80];
    for (int i = 0; i < BENCH_COLLECTIVES_N; i++) {
        CHECK_INT(parse(&o, bench_collective_text((enum bench_collective)i)), ==, 0);
        CHECK_INT(o.collective, ==, i);
    }
    for (int i = 0; i < BENCH_TYPES_N; i++) {
        snprintf(line, sizeof line, "reduce -d %s", bench_type_text((enum bench_type)i));
        CHECK_INT(parse(&o, line), ==, 0);
        CHECK_INT(o.type, ==, i);
    }
    for (int i = 0; i < BENCH_OPS_N; i++) {
        snprintf(line, sizeof line, "reduce -o %s", bench_op_text(i));
        CHECK_INT(parse(&o, line), ==, 0);
        CHECK_INT(o.op, ==, i);
    }
}

TEST(what_makes_no_sense_is_refused_by_name)
{
    const struct {
        const char *line, *part;
    } rows[] = {
        {"", "a collective"},
        {"all_reducer", "'all_reducer'"},
        {"check -b 8", "'-b'"},
        {"reduce -b", "'-b'"},
        {"reduce -b x", "'-b'"},
        {"reduce -b -1", "'-b'"},
        {"reduce -b 1K", "'-b'"},
        {"reduce -b 281474976710657", "'-b'"},
        {"reduce -b 99999999999999999999999", "'-b'"},
        {"reduce -n 0", "'-n'"},
        {"reduce -n 1000000001", "'-n'"},
        {"reduce -f 1", "'-f'"},
        {"reduce -i 0", "'-i'"},
        {"reduce -d float16", "'-d'"},
        {"reduce -o average", "'-o'"},
        {"reduce -r -2", "'-r'"},
        {"reduce -x 1", "'-x'"},
        {"reduce stray", "'stray'"},
        {"reduce -b 9 -e 8", "-e is less than"},
        {"reduce -b 0 -f 2", "-f gets nowhere"},
    };
    struct bench_options o;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_INT(parse(&o, rows[i].line), ==, -1);
        CHECK_HAS(why, rows[i].part);
        CHECK(!strchr(why, '\n'));
    }
}
