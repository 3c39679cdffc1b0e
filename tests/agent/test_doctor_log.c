/* SPDX-License-Identifier: MIT */
#include "../../agent/doctor/log.h"
#include "../harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[4200];

static const char *at(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", test_dir(), name);
    return path;
}

/* Heap: what is told of a log. */
static char *told(const char *log, bool json, int want)
{
    char *text = NULL;
    size_t n;
    struct err err = {0};
    FILE *out = open_memstream(&text, &n);
    int rc = doctor_log(out, log, json, &err);
    fclose(out);
    if (rc != want)
        test_fail(__FILE__, __LINE__, "%s: %d, not %d: %s", log, rc, want, err.text);
    return text;
}

TEST(a_log_names_its_failures_once_with_line_and_count)
{
    test_write("job.log",
               "step 1\nRuntimeError: CUDA out of memory.\n"
               "ncclSystemError: x\nagain: CUDA out of memory\nbind: Address already in use");
    char *text = told(at("job.log"), false, 1);
    CHECK_HAS(text, "job.log:2: gpu-memory, 2 times\n  | RuntimeError: CUDA out of memory.\n");
    CHECK_HAS(text, "job.log:5: store-port\n  | bind: Address already in use\n");
    CHECK_HAS(text, "see: NVIDIA/nccl#1235");
    CHECK_HAS(text, "3 known failures in 1 file, 5 lines\n");
    /* A consequence comes last. */
    CHECK(strstr(text, ": nccl-error") > strstr(text, ": store-port"));
    free(text);
}

TEST(a_log_without_known_failures_says_so)
{
    test_write("job.log", "step 1\n");
    char *text = told(at("job.log"), false, 0);
    CHECK_STR(text, "0 known failures in 1 file, 1 lines\n");
    free(text);
}

TEST(the_logs_of_a_run_are_walked)
{
    test_write("runs/night_abcd1234/attempt_0/0/stdout.log", "NCCL WARN Bootstrap : no socket "
                                                             "interface found\n");
    test_write("runs/night_abcd1234/attempt_0/1/stderr.log.1", "x\nToo many open files\n");
    test_write("runs/night_abcd1234/attempt_10/1/stderr.log", "Stale file handle\n");
    test_write("runs/night_abcd1234/attempt_0/filtered_stderr.log", "std::bad_alloc\n");
    test_write("runs/night_abcd1234/failure.json", "std::bad_alloc\n");
    char *text = told(at("runs"), false, 1);
    CHECK_HAS(text, "/attempt_0/0/stdout.log:1: no-interface\n");
    CHECK_HAS(text, "/attempt_0/1/stderr.log.1:2: open-files\n");
    CHECK_HAS(text, "/attempt_10/1/stderr.log:1: nfs\n");
    CHECK_HAS(text, "3 known failures in 3 files, 4 lines\n");
    free(text);
    free(told(at("runs/night_abcd1234"), false, 1));
}

TEST(what_a_log_holds_does_not_reach_the_terminal_raw)
{
    test_write("job.log", "\x1b[2J\x1b]0;evil\x07 CUDA out of memory \xc2\x9b \xff\n");
    char *text = told(at("job.log"), false, 1);
    CHECK(!strchr(text, '\x1b') && !strchr(text, '\x07') && !strchr(text, '\xff'));
    CHECK_HAS(text, "| ?[2J?]0;evil? CUDA out of memory");
    free(text);
    text = told(at("job.log"), true, 1);
    CHECK(!strchr(text, '\x1b'));
    CHECK_HAS(text, "\"name\": \"gpu-memory\"");
    CHECK_HAS(text, "\"line\": 1");
    free(text);
}

/* Longer than the buffer, without a newline, then a short one; through a pipe, as a shell passes it. */
static void *feed(void *arg)
{
    int fd = *(int *)arg;
    static char wide[100000];
    memset(wide, 'y', sizeof wide);
    for (int i = 0; i < 20; i++)
        if (write(fd, wide, sizeof wide) < 0)
            break;
    dprintf(fd, "\nlast: Address already in use");
    close(fd);
    return NULL;
}

TEST(lines_of_any_length_come_through_a_pipe)
{
    int ends[2];
    char name[64];
    pthread_t thread;
    CHECK_INT(pipe(ends), ==, 0);
    CHECK_INT(pthread_create(&thread, NULL, feed, &ends[1]), ==, 0);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    char *text = told(name, false, 1);
    CHECK_HAS(text, ":2: store-port\n");
    CHECK_HAS(text, "1 known failure in 1 file, 2 lines\n");
    free(text);
    pthread_join(thread, NULL);
}

TEST(a_log_that_cannot_be_read_is_one_line)
{
    struct err err;
    CHECK_INT(doctor_log(stdout, at("nowhere"), false, &err), ==, -ENOENT);
    CHECK_HAS(err.text, "/nowhere: No such file");
    CHECK_INT(doctor_log(stdout, "/dev/zero", false, &err), ==, -EINVAL);
    test_write("empty/x", "");
    CHECK_INT(doctor_log(stdout, at("empty"), false, &err), ==, -ENOENT);
    CHECK_HAS(err.text, "--log-dir");
    /* A link in a directory is not followed, not even in a circle. */
    test_write("round/a.log", "Bus error\n");
    CHECK_INT(symlink(".", at("round/again")), ==, 0);
    char *text = told(at("round"), false, 1);
    CHECK_HAS(text, "in 1 file, 1 lines");
    free(text);
}
