/* SPDX-License-Identifier: MIT */
/* One run of the command line's parser, for the tests of agent/opts.c. The environment is whatever the test has set. */
#ifndef LAUNCH_TESTS_AGENT_OPTS_RIG_H
#define LAUNCH_TESTS_AGENT_OPTS_RIG_H

#include "../../agent/opts.h"

#include "../harness.h"

#include <stdlib.h>

#define MAX_WORDS 24
#define NO_ACTION ((enum opts_action)77) /* the parser has not said what to do */

struct run {
    char *argv[MAX_WORDS];
    int argc;
    struct job_spec spec;
    struct err err;
    enum opts_action action;
    int r;
};

/* Parses words[0..], which end with NULL, as "launch words..."; the caller finishes run->spec. */
static inline void parse(struct run *run, const char *const *words)
{
    *run = (struct run){.argv = {(char *)"launch"}, .argc = 1, .action = NO_ACTION};
    for (; words[run->argc - 1]; run->argc++)
        run->argv[run->argc] = (char *)words[run->argc - 1];
    CHECK_INT(spec_init(&run->spec), ==, 0);
    run->r = opts_parse(&run->spec, run->argc, run->argv, &run->action, &run->err);
}

#define PARSE(run, ...) parse(run, (const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

#define CHECK_RUNS(run)                                                                            \
    do {                                                                                           \
        if ((run)->r < 0)                                                                          \
            test_fail(__FILE__, __LINE__, "refused: %s", (run)->err.text);                         \
        CHECK_INT((run)->action, ==, OPTS_RUN);                                                    \
    } while (0)

static inline void clear_environment(void)
{
    CHECK_INT(clearenv(), ==, 0);
}

#endif
