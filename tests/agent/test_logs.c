/* SPDX-License-Identifier: MIT */
/* The log directory of a run: who gets which file, prefix and place for an error. */
#include "../../agent/logs.h"
#include "../../config/fields.h"
#include "../harness.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

static uv_loop_t loop;
static struct job_spec spec;
static struct logs logs;
static struct err err;

static void set(const char *name, const char *text)
{
    const struct field *field = field_find(name, strlen(name));
    CHECK(field != NULL);
    if (field_set(field, &spec, text, name, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

static void new_spec(void)
{
    unsetenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
    CHECK_INT(spec_init(&spec), ==, 0);
    set("run-id", "run");
}

static void prepare(uint32_t world_size)
{
    if (logs_prepare(&logs, &spec, world_size, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

static void start(uint32_t world_size)
{
    prepare(world_size);
    uv_loop_init(&loop);
    CHECK_INT(logs_start(&logs, &loop, NULL, &err), ==, 0);
    logs_begin(&logs, 0);
}

static void teardown(void)
{
    logs_finish(&logs);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(&loop), ==, 0);
    spec_finish(&spec);
}

static bool exists(const char *name)
{
    return faccessat(logs.dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static const struct relay_route *route(uint32_t rank, enum relay_stream_kind kind)
{
    return logs_route(&logs, rank, kind);
}

static bool has_prefix(const struct relay_route *r, const char *text)
{
    return r->prefix.n == strlen(text) && memcmp(r->prefix.text, text, r->prefix.n) == 0;
}

TEST(without_any_setting_nothing_is_made_and_several_workers_have_plain_routes)
{
    CHECK_INT(setenv("TMPDIR", test_dir(), 1), ==, 0);
    new_spec();
    start(2);
    CHECK(logs_want_relay(&logs));
    CHECK(!logs.dir && !logs.writer && !logs.announce);
    CHECK_INT(logs_files_per_rank(&logs), ==, 0);
    for (enum relay_stream_kind kind = 0; kind < RELAY_KINDS_N; kind++) {
        CHECK(!route(1, kind)->hidden && !route(1, kind)->file && !route(1, kind)->prefix.n);
    }
    CHECK_INT(rmdir(test_dir()), ==, 0); /* it is empty */
    CHECK_INT(mkdir(test_dir(), 0700), ==, 0);
    teardown();
    new_spec();
    prepare(1);
    CHECK(!logs_want_relay(&logs));
    logs_finish(&logs);
    spec_finish(&spec);
}

TEST(names_and_layout_are_torchruns)
{
    new_spec();
    set("log-dir", test_dir());
    set("redirects", "0:1,1:2");
    set("tee", "11:3");
    set("duplicate-stderr-filters", "x");
    start(12);
    CHECK(strncmp(logs.dir, test_dir(), strlen(test_dir())) == 0);
    const char *run = logs.dir + strlen(test_dir());
    CHECK(strncmp(run, "/run_", 5) == 0);
    CHECK_INT(strlen(run), ==, 5 + 8);
    CHECK(exists("attempt_0/0/stdout.log") && !exists("attempt_0/0/stderr.log"));
    CHECK(!exists("attempt_0/1/stdout.log") && exists("attempt_0/1/stderr.log"));
    CHECK(exists("attempt_0/11/stdout.log") && exists("attempt_0/11/stderr.log"));
    CHECK(exists("attempt_0/5") && !exists("attempt_0/5/stdout.log"));
    CHECK(exists("attempt_0/filtered_stderr.log") && !exists("attempt_0/filtered_stdout.log"));
    CHECK(route(11, RELAY_STDERR)->matches && !route(11, RELAY_STDOUT)->matches);
    CHECK(!route(1, RELAY_STDERR)->matches); /* of streams with --tee only */
    CHECK_INT(logs_files_per_rank(&logs), ==, 2);
    logs_begin(&logs, 1);
    CHECK(exists("attempt_1/11/stderr.log") && exists("attempt_0/11/stderr.log"));
    CHECK_HAS(logs_error_file(&logs, 3), "/attempt_1/3/error.json");
    teardown();
}

TEST(redirects_hide_tee_shows_with_a_prefix_and_the_filter_decides_about_ranks)
{
    new_spec();
    set("log-dir", "/dev/null");
    set("role", "trainer");
    set("redirects", "1");
    set("tee", "0:2,2:1");
    set("local-ranks-filter", "0,1");
    start(3);
    CHECK(!logs.dir && !logs.writer);
    CHECK(route(0, RELAY_STDOUT)->hidden && !route(0, RELAY_STDERR)->hidden);
    CHECK(has_prefix(route(0, RELAY_STDERR), "[trainer0]:"));
    CHECK(has_prefix(route(0, RELAY_STDOUT), ""));
    CHECK(route(1, RELAY_STDOUT)->hidden && !route(1, RELAY_STDERR)->hidden);
    CHECK(has_prefix(route(1, RELAY_STDERR), ""));
    CHECK(route(2, RELAY_STDOUT)->hidden && route(2, RELAY_STDERR)->hidden);
    CHECK(has_prefix(route(2, RELAY_STDOUT), "[trainer2]:"));
    teardown();
}

TEST(one_worker_needs_the_relay_for_any_of_these)
{
    static const char *const CASES[][2] = {
        {"redirects", "2"}, {"tee", "0:1"}, {"local-ranks-filter", "1"}};
    static const char *const NO_CASES[][2] = {
        {"redirects", "1:3"}, {"tee", "0"}, {"local-ranks-filter", "0"}, {"stdin", "none"}};
    for (size_t i = 0; i < ARRAY_LEN(CASES) + ARRAY_LEN(NO_CASES); i++) {
        bool wanted = i < ARRAY_LEN(CASES);
        const char *const *c = wanted ? CASES[i] : NO_CASES[i - ARRAY_LEN(CASES)];
        new_spec();
        set("log-dir", "/dev/null");
        set(c[0], c[1]);
        prepare(1);
        CHECK_INT(logs_want_relay(&logs), ==, wanted);
        logs_finish(&logs);
        spec_finish(&spec);
    }
}

TEST(files_that_are_asked_for_without_a_directory_go_below_tmpdir)
{
    char path[PATH_MAX];
    CHECK_INT(setenv("TMPDIR", test_dir(), 1), ==, 0);
    new_spec();
    set("tee", "1");
    start(1);
    CHECK(logs.announce);
    snprintf(path, sizeof path, "%s/launch_", test_dir());
    CHECK(strncmp(logs.dir, path, strlen(path)) == 0);
    CHECK(exists("attempt_0/0/stdout.log"));
    struct stat st;
    CHECK_INT(stat(logs.dir, &st), ==, 0);
    CHECK_INT(st.st_mode & 07777, ==, 0700);
    teardown();
    setenv("TMPDIR", "/proc/nope", 1);
    new_spec();
    set("tee", "1");
    CHECK_INT(logs_prepare(&logs, &spec, 1, &err), ==, -ENOENT);
    CHECK_HAS(err.text, "/proc/nope");
    CHECK_HAS(err.text, "--log-dir");
    logs_finish(&logs);
    spec_finish(&spec);
}

TEST(what_is_wrong_is_told_before_anything_is_made)
{
    char dir[PATH_MAX];
    snprintf(dir, sizeof dir, "%s/sub", test_dir());
    new_spec();
    set("log-dir", dir);
    set("tee", "1");
    setenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "a\nb", 1);
    CHECK_INT(logs_prepare(&logs, &spec, 2, &err), ==, -EINVAL);
    CHECK_HAS(err.text, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
    CHECK_INT(access(dir, F_OK), <, 0);
    logs_finish(&logs);
    setenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "<${rank}> ", 1);
    prepare(2);
    CHECK(has_prefix(route(1, RELAY_STDOUT), "<1> "));
    logs_finish(&logs);
    spec_finish(&spec);
    new_spec();
    set("log-dir", "/dev/null/x");
    CHECK_INT(logs_prepare(&logs, &spec, 2, &err), ==, -ENOTDIR);
    CHECK_STR(err.text, "--log-dir: /dev/null/x: Not a directory");
    logs_finish(&logs);
    logs_finish(&(struct logs){0});
    spec_finish(&spec);
}

static void leave_error(uint32_t rank, const char *text)
{
    FILE *f = fopen(logs_error_file(&logs, rank), "w");
    CHECK(f != NULL);
    fputs(text, f);
    fclose(f);
}

/* With a directory or without, the worker's side is the same. */
static void error_files_work(void)
{
    char buf[32];
    for (uint32_t attempt = 0; attempt < 2; attempt++) {
        logs_begin(&logs, attempt + 1);
        CHECK_INT(logs_read_error(&logs, 1, buf, sizeof buf), ==, 0);
        leave_error(1, "a much longer text that the next one replaces");
        leave_error(1, "{\"message\": 1}");
        CHECK_INT(logs_read_error(&logs, 1, buf, sizeof buf), ==, 14);
        CHECK_STR(buf, "{\"message\": 1}");
        CHECK_INT(logs_read_error(&logs, 1, buf, 5), ==, 4);
        CHECK_STR(buf, "{\"me");
        CHECK_INT(logs_read_error(&logs, 0, buf, sizeof buf), ==, 0);
    }
}

TEST(a_workers_error_is_read_back_from_the_directory)
{
    new_spec();
    set("log-dir", test_dir());
    start(2);
    error_files_work();
    CHECK_HAS(logs_error_file(&logs, 0), "/attempt_2/0/error.json");
    CHECK_INT(logs_error_file(&logs, 0)[0], ==, '/');
    teardown();
}

TEST(a_workers_error_is_read_back_from_memory)
{
    char path[PATH_MAX];
    new_spec();
    start(2);
    error_files_work();
    snprintf(path, sizeof path, "/proc/%d/fd/", (int)getpid());
    CHECK(strncmp(logs_error_file(&logs, 0), path, strlen(path)) == 0);
    teardown();
}

TEST(an_error_file_that_is_no_file_is_not_read)
{
    char buf[8], path[PATH_MAX];
    new_spec();
    set("log-dir", test_dir());
    start(3);
    CHECK_INT(mkfifo(logs_error_file(&logs, 0), 0600), ==, 0);
    CHECK_INT(logs_read_error(&logs, 0, buf, sizeof buf), ==, -EINVAL);
    CHECK_INT(symlink("/etc/passwd", logs_error_file(&logs, 1)), ==, 0);
    CHECK_INT(logs_read_error(&logs, 1, buf, sizeof buf), ==, -ELOOP);
    snprintf(path, sizeof path, "%s", logs_error_file(&logs, 2));
    CHECK_INT(mkdir(path, 0700), ==, 0);
    CHECK_INT(logs_read_error(&logs, 2, buf, sizeof buf), ==, -EINVAL);
    teardown();
}

TEST(a_directory_that_vanishes_costs_files_and_not_the_next_attempt)
{
    new_spec();
    set("log-dir", test_dir());
    set("tee", "3");
    start(2);
    CHECK(route(0, RELAY_STDOUT)->file);
    for (int rank = 0; rank < 2; rank++) {
        for (int kind = 0; kind < 2; kind++) {
            char name[64];
            snprintf(name, sizeof name, "attempt_0/%d/%s.log", rank, kind ? "stderr" : "stdout");
            CHECK_INT(unlinkat(logs.dir_fd, name, 0), ==, 0);
        }
        char name[64];
        snprintf(name, sizeof name, "attempt_0/%d", rank);
        CHECK_INT(unlinkat(logs.dir_fd, name, AT_REMOVEDIR), ==, 0);
    }
    CHECK_INT(unlinkat(logs.dir_fd, "attempt_0", AT_REMOVEDIR), ==, 0);
    CHECK_INT(rmdir(logs.dir), ==, 0);
    logs_begin(&logs, 1);
    CHECK(!route(0, RELAY_STDOUT)->file && !route(1, RELAY_STDERR)->matches);
    CHECK_HAS(logs_error_file(&logs, 0), "/proc/"); /* in memory then */
    teardown();
}

TEST(few_descriptors_are_left_to_pipes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 40;
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    new_spec();
    start(8);
    CHECK_STR(logs_error_file(&logs, 0), "");
    char buf[8];
    CHECK_INT(logs_read_error(&logs, 0, buf, sizeof buf), ==, 0);
    teardown();
}

TEST(a_new_process_goes_on_in_the_files_and_finds_no_error_of_the_old_one)
{
    char buf[64], path[PATH_MAX];
    for (int with_directory = 0; with_directory < 2; with_directory++) {
        new_spec();
        if (with_directory) {
            set("log-dir", test_dir());
            set("redirects", "3");
        }
        start(2);
        leave_error(1, "{}");
        leave_error(0, "{}");
        logs_renew(&logs, 1, "a line\n");
        CHECK_INT(logs_read_error(&logs, 1, buf, sizeof buf), ==, 0);
        CHECK_INT(logs_read_error(&logs, 0, buf, sizeof buf), ==, 2);
        leave_error(1, "[1]");
        CHECK_INT(logs_read_error(&logs, 1, buf, sizeof buf), ==, 3);
        if (with_directory) {
            logs_flush(&logs, 5000);
            snprintf(path, sizeof path, "%s/attempt_0/1/stderr.log", logs.dir);
            FILE *f = fopen(path, "r");
            CHECK(f && fgets(buf, sizeof buf, f));
            CHECK_STR(buf, "a line\n");
            fclose(f);
        }
        teardown();
    }
}
