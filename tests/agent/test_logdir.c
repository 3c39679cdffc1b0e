/* SPDX-License-Identifier: MIT */
/* Directories for log files: made when they are not there, refused with path and reason when they can't be. */
#include "../../agent/logdir.h"
#include "../harness.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

static struct err err;

static char *below(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", test_dir(), name);
    return path;
}

static void opens(const char *path, const char *absolute)
{
    AUTO_FREE char *got = NULL;
    AUTO_FD fd = -1;
    struct stat a, b;
    if (logdir_open(path, &got, &fd, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK_STR(got, absolute);
    CHECK_INT(fstat(fd, &a), ==, 0);
    CHECK_INT(stat(absolute, &b), ==, 0);
    CHECK_INT(a.st_ino, ==, b.st_ino);
    CHECK_INT(fcntl(fd, F_GETFD), ==, FD_CLOEXEC);
}

static void refused(const char *path, int error, const char *part)
{
    char *got = NULL;
    int fd = -1;
    CHECK_INT(logdir_open(path, &got, &fd, &err), ==, error);
    CHECK(!got && fd == -1);
    CHECK_HAS(err.text, part);
    CHECK(!strchr(err.text, '\n'));
}

TEST(a_directory_is_made_with_its_parents)
{
    opens(test_dir(), test_dir());
    opens(below("a/b/c"), below("a/b/c"));
    opens(below("a/b/c"), below("a/b/c"));
    opens(below("x//y/"), below("x//y/"));
}

TEST(a_relative_path_counts_from_the_working_directory)
{
    char here[PATH_MAX];
    CHECK_INT(chdir(test_dir()), ==, 0);
    CHECK(getcwd(here, sizeof here));
    char want[PATH_MAX + 32];
    snprintf(want, sizeof want, "%s/d/e", here);
    opens("d/e", want);
    snprintf(want, sizeof want, "%s/../%s", here, strrchr(here, '/') + 1);
    opens(want + strlen(here) + 1, want);
}

TEST(a_link_to_a_directory_is_followed)
{
    CHECK_INT(mkdir(below("real"), 0700), ==, 0);
    CHECK_INT(symlink("real", below("link")), ==, 0);
    opens(below("link"), below("link"));
    opens(below("link/in"), below("link/in"));
    CHECK_INT(access(below("real/in"), F_OK), ==, 0);
}

TEST(what_can_be_no_directory_is_refused_with_path_and_reason)
{
    test_write("file", "x");
    CHECK_INT(symlink("nowhere", below("dangling")), ==, 0);
    CHECK_INT(symlink("loop", below("loop")), ==, 0);
    refused(below("file"), -ENOTDIR, "/file: Not a directory");
    refused(below("file/sub"), -ENOTDIR, "/file/sub");
    refused(below("dangling"), -ENOENT, "a link to something that is not there");
    refused(below("dangling/sub"), -ENOENT, "/dangling/sub");
    refused(below("loop"), -ELOOP, "/loop");
    refused("/dev/null/x", -ENOTDIR, "/dev/null/x");
    refused("/proc/nope/x", -ENOENT, "/proc/nope/x");
    char longest[PATH_MAX + 100];
    memset(longest, 'x', sizeof longest - 1);
    longest[0] = '/';
    longest[sizeof longest - 1] = '\0';
    refused(longest, -ENAMETOOLONG, "/xxx");
    refused("/dev/null/a\nb", -ENOTDIR, "/dev/null/a?b");
}

TEST(a_new_directory_has_a_random_name_and_is_the_owners_only)
{
    AUTO_FREE char *path = NULL, *first = NULL, *second = NULL;
    AUTO_FD parent = -1;
    AUTO_FD a = -1;
    AUTO_FD b = -1;
    struct stat st;
    umask(0);
    CHECK_INT(logdir_open(below("logs"), &path, &parent, &err), ==, 0);
    CHECK_INT(logdir_create(parent, path, "run.7", &first, &a, &err), ==, 0);
    CHECK_INT(logdir_create(parent, path, "run.7", &second, &b, &err), ==, 0);
    CHECK(strcmp(first, second) != 0);
    CHECK(strncmp(first, "run.7_", 6) == 0);
    CHECK_INT(strlen(first), ==, 6 + LOGDIR_RANDOM_CHARS);
    CHECK_INT(strspn(first + 6, "abcdefghijklmnopqrstuvwxyz0123456789"), ==, LOGDIR_RANDOM_CHARS);
    CHECK_INT(fstat(a, &st), ==, 0);
    CHECK_INT(st.st_mode & 07777, ==, 0700);
    CHECK_INT(fcntl(a, F_GETFD), ==, FD_CLOEXEC);
}

TEST(a_directory_that_takes_nothing_is_refused_by_name)
{
    AUTO_FREE char *name = NULL;
    AUTO_FD parent = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = -1;
    CHECK_INT(logdir_create(parent, "/proc", "x", &name, &fd, &err), <, 0);
    CHECK_HAS(err.text, "/proc");
    CHECK(!name && fd == -1);
}
