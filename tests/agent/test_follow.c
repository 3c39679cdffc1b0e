/* SPDX-License-Identifier: MIT */
#include "../../agent/follow.h"
#include "../harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int out[2];

/* stdout becomes a pipe that taken() reads. */
static void capture(void)
{
    CHECK_INT(pipe2(out, O_NONBLOCK), ==, 0);
    CHECK_INT(dup2(out[1], STDOUT_FILENO), ==, STDOUT_FILENO);
}

static const char *taken(void)
{
    static char text[8192];
    ssize_t n = read(out[0], text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static const char *path_of(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", test_dir(), name);
    return path;
}

static void append(const char *name, const char *text)
{
    int fd = open(path_of(name), O_WRONLY | O_APPEND | O_CREAT, 0600);
    CHECK_INT(write(fd, text, strlen(text)), ==, (ssize_t)strlen(text));
    close(fd);
}

TEST(files_are_copied_under_their_titles)
{
    struct follow f;
    struct err err;
    capture();
    test_write("a", "one\n");
    test_write("b", "two\n");
    CHECK_INT(follow_init(&f, false, &err), ==, 0);
    CHECK_INT(follow_add(&f, path_of("a"), "rank 0", -1), ==, 0);
    CHECK_INT(follow_add(&f, path_of("b"), "rank 1", -1), ==, 0);
    CHECK_INT(follow_add(&f, path_of("c"), "rank 2", -1), ==, -ENOENT);
    CHECK(follow_copy(&f));
    CHECK_STR(taken(), "==> rank 0 <==\none\n\n==> rank 1 <==\ntwo\n");
    follow_finish(&f);
}

TEST(following_begins_with_whole_lines_of_the_end)
{
    struct follow f;
    struct err err;
    capture();
    test_write("a", "first line\nsecond\nthird\n");
    CHECK_INT(follow_init(&f, true, &err), ==, 0);
    CHECK_INT(follow_add(&f, path_of("a"), NULL, 9), ==, 0);
    CHECK(follow_copy(&f));
    CHECK_STR(taken(), "third\n");
    follow_finish(&f);
}

TEST(what_is_added_wakes_and_is_copied_once)
{
    struct follow f;
    struct err err;
    int end[2];
    capture();
    CHECK_INT(pipe(end), ==, 0);
    test_write("a", "one\n");
    CHECK_INT(follow_init(&f, true, &err), ==, 0);
    CHECK_INT(follow_add(&f, path_of("a"), "a", -1), ==, 0);
    CHECK(follow_copy(&f));
    append("a", "two\n");
    CHECK(!follow_wait(&f, end[0]));
    CHECK(follow_copy(&f));
    CHECK_STR(taken(), "==> a <==\none\ntwo\n");
    close(end[1]);
    CHECK(follow_wait(&f, end[0]));
    follow_finish(&f);
}

TEST(a_file_that_was_rotated_is_read_to_its_end_and_then_the_new_one)
{
    struct follow f;
    struct err err;
    capture();
    test_write("a", "one\n");
    CHECK_INT(follow_init(&f, true, &err), ==, 0);
    CHECK_INT(follow_add(&f, path_of("a"), NULL, -1), ==, 0);
    CHECK(follow_copy(&f));
    append("a", "two\n");
    char old[4096];
    snprintf(old, sizeof old, "%s", path_of("a.1"));
    CHECK_INT(rename(path_of("a"), old), ==, 0);
    test_write("a", "three\n");
    CHECK(follow_copy(&f));
    CHECK_STR(taken(), "one\ntwo\nthree\n");
    follow_finish(&f);
}

TEST(a_new_directory_wakes)
{
    struct follow f;
    struct err err;
    int end[2];
    CHECK_INT(pipe(end), ==, 0);
    CHECK_INT(follow_init(&f, true, &err), ==, 0);
    follow_directory(&f, test_dir());
    test_write("attempt_1/0/stdout.log", "");
    CHECK(!follow_wait(&f, end[0]));
    follow_finish(&f);
}

/* Files of ours in the part of another user's: those that he has linked to, and those of his own. */
TEST(of_another_user_only_plain_files_of_his_own_are_read)
{
    struct follow f;
    struct err err;
    char link[4096];
    capture();
    test_write("his", "\x1b[2Jone\n");
    CHECK_INT(follow_init(&f, false, &err), ==, 0);
    follow_distrust(&f, getuid() + 1);
    CHECK_INT(follow_add(&f, path_of("his"), NULL, -1), ==, -EPERM);
    snprintf(link, sizeof link, "%s", path_of("link"));
    CHECK_INT(symlink(path_of("his"), link), ==, 0);
    CHECK_INT(follow_add(&f, link, NULL, -1), ==, -EPERM);
    follow_distrust(&f, getuid());
    CHECK_INT(follow_add(&f, "/dev/null", NULL, -1), ==, -EPERM);
    CHECK_INT(mkfifo(path_of("fifo"), 0600), ==, 0);
    CHECK_INT(follow_add(&f, path_of("fifo"), NULL, -1), ==, -EPERM);
    CHECK_INT(follow_add(&f, path_of("nothing"), NULL, -1), ==, -ENOENT);
    CHECK_INT(follow_add(&f, path_of("his"), NULL, -1), ==, 0);
    CHECK(follow_copy(&f));
    CHECK_STR(taken(), "?[2Jone\n");
    follow_finish(&f);
}
