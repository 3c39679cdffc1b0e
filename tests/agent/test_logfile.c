/* SPDX-License-Identifier: MIT */
/* Log files: every byte once and in order, rotation, disks that take nothing, and a loop that is never held up. */
#include "../../agent/logfile.h"
#include "../harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define LIMIT_MS 10000

static uv_loop_t loop;
static struct writer *writer;
static int dir_fd;
static unsigned rooms, troubles;
static char last_path[512];
static int last_error;

static void on_room(void *user)
{
    (void)user;
    rooms++;
}

static void on_trouble(void *user, const char *path, int error)
{
    (void)user;
    troubles++;
    last_error = error;
    snprintf(last_path, sizeof last_path, "%s", path);
}

static void setup(void)
{
    static const struct writer_callbacks callbacks = {on_room, on_trouble, NULL};
    struct err err;
    uv_loop_init(&loop);
    CHECK_INT(writer_create(&writer, &loop, &callbacks, &err), ==, 0);
    dir_fd = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void teardown(void)
{
    CHECK(writer_flush(writer, LIMIT_MS));
    writer_destroy(writer);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(&loop), ==, 0);
    close_fd(&dir_fd);
}

static struct logfile *file(const char *name, uint64_t rotate_bytes, unsigned keep)
{
    struct logfile *f = logfile_create(writer, dir_fd, test_dir(), name, rotate_bytes, keep);
    CHECK(f != NULL);
    return f;
}

static void say(struct logfile *f, const char *text)
{
    logfile_write(f, text, strlen(text));
}

/* One write to the disk for what was said so far: where files are cut depends on it. */
static void until_written(void)
{
    CHECK(writer_flush(writer, LIMIT_MS));
}

static const char *content(const char *name)
{
    static char text[65536];
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return "(none)";
    ssize_t n = read(fd, text, sizeof text - 1);
    CHECK_INT(n, >=, 0);
    close(fd);
    text[n] = '\0';
    return text;
}

TEST(bytes_reach_the_file_in_order_and_once)
{
    static char got[2000000];
    setup();
    struct logfile *f = file("log", 0, 0);
    size_t n = 0;
    char line[64];
    for (int i = 0; i < 50000; i++) {
        int length = snprintf(line, sizeof line, "line %d\n", i);
        logfile_write(f, line, (size_t)length);
        n += (size_t)length;
    }
    logfile_close(f);
    teardown();
    char path[600];
    snprintf(path, sizeof path, "%s/log", test_dir());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK_INT(read(fd, got, sizeof got), ==, n);
    struct stat st;
    CHECK_INT(fstat(fd, &st), ==, 0);
    CHECK_INT(st.st_mode & 07777, ==, 0600);
    const char *at = got;
    for (int i = 0; i < 50000; i++) {
        int length = snprintf(line, sizeof line, "line %d\n", i);
        CHECK(memcmp(at, line, (size_t)length) == 0);
        at += length;
    }
    CHECK_INT(troubles, ==, 0);
}

TEST(a_name_that_exists_is_refused_link_or_not)
{
    setup();
    test_write("there", "x");
    CHECK_INT(symlinkat("elsewhere", dir_fd, "link"), ==, 0);
    CHECK(!logfile_create(writer, dir_fd, test_dir(), "there", 0, 0));
    CHECK_INT(errno, ==, EEXIST);
    CHECK(!logfile_create(writer, dir_fd, test_dir(), "link", 0, 0));
    CHECK_INT(errno, ==, EEXIST);
    CHECK(!logfile_create(writer, dir_fd, test_dir(), "no/such", 0, 0));
    CHECK_INT(errno, ==, ENOENT);
    CHECK_STR(content("there"), "x");
    CHECK_STR(content("elsewhere"), "(none)");
    teardown();
}

TEST(rotation_cuts_between_lines_and_keeps_a_number_of_files)
{
    setup();
    struct logfile *f = file("log", 8, 2);
    static const char *const SAID[] = {"1234567\n", "abc\n", "def\n", "gh\nij\nkl\n", "m\n"};
    for (size_t i = 0; i < ARRAY_LEN(SAID); i++) {
        say(f, SAID[i]);
        until_written();
    }
    CHECK_STR(content("log"), "kl\nm\n");
    CHECK_STR(content("log.1"), "gh\nij\n");
    CHECK_STR(content("log.2"), "abc\ndef\n");
    CHECK_STR(content("log.3"), "(none)");
    logfile_close(f);
    teardown();
    CHECK_INT(troubles, ==, 0);
}

TEST(a_line_that_is_larger_than_a_file_is_cut_where_the_file_is_full)
{
    setup();
    struct logfile *f = file("log", 8, 9);
    say(f, "a\n");
    say(f, "0123456789");
    say(f, "abcdefghij\n");
    say(f, "z\n");
    until_written();
    say(f, "y");
    until_written();
    say(f, "0123456789\n"); /* goes on in the middle of a line */
    until_written();
    CHECK_STR(content("log.5"), "a\n");
    CHECK_STR(content("log.4"), "01234567");
    CHECK_STR(content("log.3"), "89abcdef");
    CHECK_STR(content("log.2"), "ghij\nz\ny");
    CHECK_STR(content("log.1"), "01234567");
    CHECK_STR(content("log"), "89\n");
    logfile_close(f);
    teardown();
}

TEST(any_mix_of_sizes_is_rotated_without_losing_or_doubling_a_byte)
{
    static char said[40000], got[sizeof said + 1];
    unsigned seed = 5;
    for (unsigned limit = 1; limit < 300; limit = limit * 3 + 1) {
        char name[32], part[48];
        setup();
        snprintf(name, sizeof name, "log-%u", limit);
        size_t total = limit < 5 ? 200 : limit * 40;
        unsigned keep = (unsigned)total + 1;
        struct logfile *f = file(name, limit, keep);
        for (size_t i = 0; i < total; i++)
            said[i] = rand_r(&seed) % 20 ? (char)('a' + i % 26) : '\n';
        for (size_t at = 0, n; at < total; at += n) {
            n = 1 + (size_t)rand_r(&seed) % 200;
            n = n < total - at ? n : total - at;
            logfile_write(f, said + at, n);
            if (rand_r(&seed) % 2)
                until_written();
        }
        until_written();
        size_t n_got = 0;
        for (unsigned i = keep + 1; i-- > 0;) {
            snprintf(part, sizeof part, i ? "%s.%u" : "%s", name, i);
            const char *text = content(part);
            if (strcmp(text, "(none)") == 0)
                continue;
            CHECK_INT(strlen(text), <=, limit);
            memcpy(got + n_got, text, strlen(text));
            n_got += strlen(text);
        }
        CHECK_INT(n_got, ==, total);
        CHECK(memcmp(got, said, total) == 0);
        logfile_close(f);
        teardown();
    }
}

TEST(a_rotation_that_can_not_be_done_goes_on_in_the_same_file)
{
    setup();
    CHECK_INT(mkdirat(dir_fd, "log.1", 0700), ==, 0); /* rename() of a file onto it fails */
    struct logfile *f = file("log", 4, 1);
    say(f, "abc\n");
    until_written();
    say(f, "def\nghi\n");
    until_written();
    CHECK_STR(content("log"), "abc\ndef\nghi\n");
    CHECK_INT(troubles, ==, 1);
    CHECK_INT(last_error, ==, -EISDIR);
    CHECK_INT(writer_lost(writer), ==, 0);
    logfile_close(f);
    teardown();
}

/* RLIMIT_FSIZE stands for a disk: EFBIG is what a full one is treated as. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
}

TEST(a_full_disk_loses_bytes_is_told_once_and_tried_again)
{
    signal(SIGXFSZ, SIG_IGN);
    setup();
    struct logfile *f = file("log", 0, 0);
    limit_files(6);
    say(f, "abcd\n");
    until_written();
    say(f, "efgh\n");
    until_written();
    say(f, "ijkl\n");
    until_written();
    CHECK_INT(troubles, ==, 1);
    CHECK_INT(last_error, ==, -EFBIG);
    CHECK_HAS(last_path, "/log");
    CHECK_HAS(last_path, test_dir());
    CHECK_INT(writer_lost(writer), ==, 4 + 5);
    limit_files(RLIM_INFINITY);
    say(f, "\nback\n");
    until_written();
    CHECK_STR(content("log"), "abcd\ne\nback\n");
    CHECK_INT(troubles, ==, 1);
    logfile_close(f);
    teardown();
}

TEST(a_file_that_nobody_can_find_any_more_takes_no_bytes)
{
    setup();
    struct logfile *f = file("log", 0, 0), *other = file("other", 0, 0);
    say(f, "abc\n");
    until_written();
    CHECK_INT(unlinkat(dir_fd, "log", 0), ==, 0);
    say(f, "def\n");
    until_written();
    say(f, "ghi\n");
    say(other, "fine\n");
    until_written();
    CHECK_INT(troubles, ==, 1);
    CHECK_INT(last_error, ==, -ENOENT);
    CHECK_INT(writer_lost(writer), ==, 8);
    CHECK_STR(content("other"), "fine\n");
    logfile_close(f);
    logfile_close(other);
    teardown();
}

/* A pipe under the name of a file would block the thread for ever; here it is opened for both ends. */
TEST(a_disk_that_hangs_fills_the_queue_and_nothing_else)
{
    static char block[65536];
    char path[600];
    memset(block, 'x', sizeof block);
    setup();
    struct logfile *f = file("log", 0, 0);
    snprintf(path, sizeof path, "%s/log", test_dir());
    /* The thread's descriptor is made one of a pipe that nobody reads: the next write hangs. */
    int ends[2], target = -1;
    CHECK_INT(pipe2(ends, O_CLOEXEC), ==, 0);
    for (int fd = 3; fd < 64 && target < 0; fd++) {
        char link[64], name[600] = "";
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (readlink(link, name, sizeof name - 1) > 0 && strcmp(name, path) == 0)
            target = fd;
    }
    CHECK_INT(target, >=, 0);
    CHECK_INT(dup3(ends[1], target, O_CLOEXEC), ==, target);
    size_t total = 0;
    CHECK(!writer_full(writer));
    while (!writer_full(writer)) {
        logfile_write(f, block, sizeof block);
        total += sizeof block;
    }
    CHECK_INT(total, >=, WRITER_MAX_BYTES);
    CHECK(logfile_full(f));
    CHECK(!writer_flush(writer, 1));
    CHECK_INT(rooms, ==, 0);
    /* It comes back: everything is written, and that there is room is told once. */
    uint64_t got = 0;
    while (got < total) {
        ssize_t n = read(ends[0], block, sizeof block);
        CHECK_INT(n, >, 0);
        got += (uint64_t)n;
    }
    until_written();
    uv_run(&loop, UV_RUN_NOWAIT);
    CHECK_INT(rooms, ==, 1);
    CHECK(!writer_full(writer));
    CHECK_INT(troubles, ==, 0);
    logfile_close(f);
    teardown();
    close(ends[0]);
    close(ends[1]);
}

TEST(an_idle_writer_keeps_no_loop_alive)
{
    setup();
    CHECK(!uv_loop_alive(&loop));
    CHECK_INT(uv_run(&loop, UV_RUN_DEFAULT), ==, 0);
    logfile_close(logfile_ref(NULL));
    teardown();
    writer_destroy(NULL);
}
