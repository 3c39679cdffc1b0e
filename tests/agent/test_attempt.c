/* SPDX-License-Identifier: MIT */
/* agent/attempt.c: all or nobody runs, and what an attempt holds is given back. */
#include "../../agent/attempt.h"
#include "../../agent/logs.h"
#include "../../agent/group.h"
#include "procs.h"

#include <sys/socket.h>

#define N 4

static uv_loop_t loop;
static struct job_spec spec;
static struct gpu_list gpus;
static struct gpu_set gpu_set;
static struct environ environ_;
static struct group group;
static struct attempt attempt;
static struct attempt_config config;
static struct err err;

static void on_exit_(void *user, struct rank *rank)
{
    (void)user, (void)rank;
}

static struct logs logs;

static void on_stage(void *user, uint32_t rank, enum stage stage)
{
    (void)user, (void)rank, (void)stage;
}

static void prepare(const char *script)
{
    static struct program program;
    struct spawn_request *request = shell(script);
    uv_loop_init(&loop);
    CHECK_INT(spec_init(&spec), ==, 0);
    CHECK_INT(environ_init(&environ_, N, environ, &err), ==, 0);
    CHECK_INT(group_init(&group, N, 0, on_exit_, NULL, NULL), ==, 0);
    group_begin(&group, false);
    spec.run_id = strdup("r");
    CHECK_INT(logs_prepare(&logs, &spec, N, &err), ==, 0);
    program = (struct program){.file = request->file, .argv = (char **)request->argv};
    close(request->stdio[1]);
    config = (struct attempt_config){
        .loop = &loop,
        .program = &program,
        .inherited = request->inherited,
        .environ = &environ_,
        .job = {.spec = &spec,
                .gpus = &gpus,
                .gpu_set = &gpu_set,
                .run_id = "r",
                .world_size = N,
                .generation = 1,
                .cpus = 2},
        .ranks = group.ranks,
        .logs = &logs,
        .on_stage = on_stage,
    };
}

static void await_all(void)
{
    while (group_alive(&group))
        uv_run(&loop, UV_RUN_ONCE);
}

static void finish(void)
{
    attempt_finish(&attempt);
    attempt_finish(&attempt);
    environ_finish(&environ_);
    group_finish(&group);
    logs_finish(&logs);
    spec_finish(&spec);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(&loop), ==, 0);
}

static int next_fd(void)
{
    int fd = dup(0);
    close(fd);
    return fd;
}

TEST(every_rank_runs_with_its_number_the_port_and_the_board)
{
    prepare("[ $WORLD_SIZE = 4 ] && [ -e /proc/$$/fd/$LAUNCH_BOARD_FD ] && "
            "[ -e /proc/$$/fd/$LAUNCH_BELL_FD ] && [ $MASTER_PORT -gt 0 ] && exit $((10 + RANK))");
    CHECK_INT(attempt_start(&attempt, &config, &err), ==, 0);
    CHECK(attempt.port != 0 && attempt.port_fd >= 0);
    await_all();
    for (int i = 0; i < N; i++)
        CHECK_INT(group.ranks[i].code, ==, 10 + i);
    finish();
}

TEST(two_attempts_have_nothing_in_common)
{
    struct attempt second;
    prepare("exit 0");
    int before = next_fd();
    CHECK_INT(attempt_start(&attempt, &config, &err), ==, 0);
    await_all();
    group_begin(&group, false);
    config.job.generation = 2;
    CHECK_INT(attempt_start(&second, &config, &err), ==, 0);
    await_all();
    CHECK(attempt.port != second.port);
    CHECK_INT(attempt.board.board.head->generation, ==, 1);
    CHECK_INT(second.board.board.head->generation, ==, 2);
    attempt_finish(&second);
    attempt_finish(&attempt);
    CHECK_INT(next_fd(), ==, before);
    finish();
}

/* Every number of descriptors from none: either all run, or nobody has run anything, the text says which rank could
 * not, and everything is given back. */
TEST(an_attempt_that_can_not_be_started_whole_has_run_nobody)
{
    struct rlimit was, few;
    bool started = false;
    unsigned failures = 0;
    prepare("echo ran >>ran");
    CHECK_INT(chdir(test_dir()), ==, 0);
    int before = next_fd();
    getrlimit(RLIMIT_NOFILE, &was);
    for (int spare = 0; !started; spare++) {
        few = (struct rlimit){.rlim_cur = (rlim_t)(before + spare), .rlim_max = was.rlim_max};
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &few), ==, 0);
        int rc = attempt_start(&attempt, &config, &err);
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &was), ==, 0);
        await_all();
        for (int i = 0; rc < 0 && i < N; i++)
            CHECK(!group.ranks[i].ended ||
                  (group.ranks[i].reason == REASON_NONE && group.ranks[i].code == 0));
        started = rc == 0;
        if (!started) {
            CHECK_INT(rc, ==, -EMFILE);
            failures++;
            CHECK_INT(access("ran", F_OK), ==, -1);
            if (attempt.group)
                CHECK_HAS(err.text, "can't be started: ");
        }
        attempt_finish(&attempt);
        CHECK_INT(next_fd(), ==, before);
        group_begin(&group, false);
    }
    CHECK_INT(failures, >=,
              4 + N - 1); /* port, board, its spare number, bell, all ranks but the first */
    CHECK_INT(access("ran", F_OK), ==, 0);
    finish();
}

TEST(a_port_that_is_taken_is_told_before_anything_is_made)
{
    prepare("exit 0");
    int before = next_fd();
    CHECK_INT(attempt_start(&attempt, &config, &err), ==, 0);
    await_all();
    struct attempt other;
    CHECK_INT(listen(attempt.port_fd, 1), ==, 0);
    spec.master_port = attempt.port;
    CHECK_INT(attempt_start(&other, &config, &err), ==, -EADDRINUSE);
    CHECK(!other.group);
    attempt_finish(&other);
    attempt_finish(&attempt);
    CHECK_INT(next_fd(), ==, before);
    finish();
}
