/* SPDX-License-Identifier: MIT */
/* agent/roof.c: jobs get ready in turn, all or none are let go, and the first failure is the result. */
#include "../../agent/roof.h"
#include "procs.h"

/* Shared with the jobs. */
static struct seen {
    unsigned ready_n, ran_n;
    char ready[8]; /* first letters of their names, in the order in which they got ready */
} * seen;

static struct job_spec jobs[3];
static struct job_spec file = {.jobs = jobs, .jobs_n = 3};

static void setup(void)
{
    static const char *const NAMES[] = {"a", "b", "c"};
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(seen != MAP_FAILED);
    for (unsigned i = 0; i < ARRAY_LEN(jobs); i++)
        jobs[i] = (struct job_spec){.name = (char *)NAMES[i]};
}

/* max_restarts and stdin_rank stand for what happens before and after the gate: the exit code. */
static int job(struct job_spec *spec, int gate)
{
    if (spec->max_restarts)
        return (int)spec->max_restarts;
    seen->ready[seen->ready_n++] = spec->name[0];
    if (!roof_pass(gate))
        return 99;
    __atomic_add_fetch(&seen->ran_n, 1, __ATOMIC_SEQ_CST);
    return (int)spec->stdin_rank;
}

static int under_a_roof(void)
{
    struct err err;
    int code = roof_run(&file, job, &err);
    if (code < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return code;
}

TEST(jobs_that_name_their_gpus_get_ready_before_those_that_count_and_those_that_share)
{
    setup();
    jobs[1].gpus_mode = GPUS_COUNT;
    jobs[2].gpus_mode = GPUS_LIST;
    CHECK_INT(under_a_roof(), ==, 0);
    CHECK_STR(seen->ready, "cba");
    CHECK_INT(seen->ran_n, ==, 3);
}

TEST(a_job_that_fails_leaves_the_others_alone_and_is_the_result)
{
    setup();
    jobs[1].stdin_rank = 7;
    CHECK_INT(under_a_roof(), ==, 7);
    CHECK_STR(seen->ready, "abc");
    CHECK_INT(seen->ran_n, ==, 3);
}

TEST(where_one_can_not_start_none_does_and_its_code_is_the_result)
{
    for (unsigned i = 0; i < ARRAY_LEN(jobs); i++) {
        setup();
        jobs[i].max_restarts = 75;
        CHECK_INT(under_a_roof(), ==, 75);
        CHECK_INT(seen->ready_n, ==, i);
        CHECK_INT(seen->ran_n, ==, 0);
    }
}

TEST(without_a_roof_there_is_nothing_to_wait_for)
{
    CHECK(roof_pass(-1));
}

static int is_killed(struct job_spec *spec, int gate)
{
    if (roof_pass(gate) && spec->name[0] == 'b')
        raise(SIGKILL);
    return 0;
}

TEST(a_launcher_that_is_killed_is_a_failure_of_its_job)
{
    struct err err;
    setup();
    CHECK_INT(roof_run(&file, is_killed, &err), ==, 128 + SIGKILL);
}
