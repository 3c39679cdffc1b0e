/* SPDX-License-Identifier: MIT */
#include "../../agent/lockdir.h"
#include "../harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static struct lockdir dir;
static struct err err;

static const char *below(const char *name)
{
    static char path[4][600];
    static unsigned turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", test_dir(), name);
    return p;
}

static void make_dir(const char *name, mode_t mode)
{
    CHECK_INT(mkdir(below(name), 0700), ==, 0);
    CHECK_INT(chmod(below(name), mode), ==, 0);
}

static void refused(const char *chosen, int code, const char *why)
{
    CHECK_INT(lockdir_open(&dir, chosen, "", &err), ==, code);
    CHECK_HAS(err.text, why);
    CHECK_INT(dir.fd, ==, -1);
}

static void file_refused(const char *name, int code, const char *why)
{
    int fd = -1;
    CHECK_INT(lockdir_file(&dir, name, &fd, &err), ==, code);
    CHECK_HAS(err.text, name);
    CHECK_HAS(err.text, why);
    CHECK_INT(fd, ==, -1);
}

static void open_own(void)
{
    make_dir("locks", 01777);
    CHECK_INT(lockdir_open(&dir, below("locks"), "", &err), ==, 0);
}

TEST(a_directory_in_which_others_could_replace_a_lock_is_refused)
{
    make_dir("open", 0777);
    refused(below("open"), -EPERM, "sticky bit");
    make_dir("group", 0775);
    refused(below("group"), -EPERM, "sticky bit");
    refused(below("missing"), -ENOENT, "missing");
    test_write("file", "");
    refused(below("file"), -ENOTDIR, "file");
    if (geteuid() != 0)
        test_skip("only root can give a directory away");
    make_dir("foreign", 0755);
    CHECK_INT(chown(below("foreign"), 65534, 65534), ==, 0);
    refused(below("foreign"), -EPERM, "belongs to another user");
}

TEST(the_first_place_that_is_there_is_taken)
{
    char root[600];
    snprintf(root, sizeof root, "%s", below("m"));
    make_dir("m", 0755);
    CHECK_INT(lockdir_open(&dir, NULL, root, &err), ==, 0); /* a described machine gets one */
    CHECK_HAS(dir.path, "m/tmp");
    lockdir_close(&dir);
    make_dir("m/run", 0755);
    make_dir("m/run/lock", 01777);
    CHECK_INT(lockdir_open(&dir, NULL, root, &err), ==, 0);
    CHECK_HAS(dir.path, "m/run/lock");
    lockdir_close(&dir);
    make_dir("m/run/launch", 0777); /* not safe: the next one will do */
    CHECK_INT(lockdir_open(&dir, NULL, root, &err), ==, 0);
    CHECK_HAS(dir.path, "m/run/lock");
    lockdir_close(&dir);
    CHECK_INT(chmod(below("m/run/launch"), 01777), ==, 0);
    CHECK_INT(lockdir_open(&dir, NULL, root, &err), ==, 0);
    CHECK_HAS(dir.path, "m/run/launch");
    lockdir_close(&dir);
    lockdir_close(&dir);
}

TEST(a_lock_file_is_made_for_everybody_whatever_the_umask)
{
    int fd = -1, again = -1;
    struct stat st;
    open_own();
    umask(077);
    CHECK_INT(lockdir_file(&dir, "gpu", &fd, &err), ==, 0);
    CHECK_INT(umask(077), ==, 077);
    CHECK_INT(fstat(fd, &st), ==, 0);
    CHECK_INT(st.st_mode & 07777, ==, 0666);
    CHECK_INT(lockdir_file(&dir, "gpu", &again, &err), ==, 0);
    CHECK(lockdir_is_current(&dir, "gpu", fd));
    CHECK_INT(fcntl(fd, F_GETFD), ==, FD_CLOEXEC);
    CHECK_INT(unlink(below("locks/gpu")), ==, 0);
    CHECK(!lockdir_is_current(&dir, "gpu", fd));
    int other = -1;
    CHECK_INT(lockdir_file(&dir, "gpu", &other, &err), ==, 0);
    CHECK(!lockdir_is_current(&dir, "gpu", fd));
}

TEST(what_somebody_put_in_the_place_of_a_lock_file_is_left_alone)
{
    open_own();
    test_write("victim", "precious");
    CHECK_INT(symlink(below("victim"), below("locks/symlink")), ==, 0);
    file_refused("symlink", -EPERM, "symbolic link");
    CHECK_INT(symlink(below("nowhere"), below("locks/dangling")), ==, 0);
    file_refused("dangling", -EPERM, "symbolic link");
    CHECK_INT(access(below("nowhere"), F_OK), ==, -1);
    CHECK_INT(link(below("victim"), below("locks/hardlink")), ==, 0);
    CHECK_INT(chmod(below("victim"), 0666), ==, 0);
    file_refused("hardlink", -EPERM, "second name");
    CHECK_INT(mkfifo(below("locks/fifo"), 0666), ==, 0);
    file_refused("fifo", -EPERM, "no plain file");
    CHECK_INT(mkdir(below("locks/directory"), 0777), ==, 0);
    file_refused("directory", -EISDIR, "directory");
    test_write("locks/private", "");
    CHECK_INT(chmod(below("locks/private"), 0644), ==, 0);
    file_refused("private", -EPERM, "0666");
    CHECK_INT(chmod(below("locks/private"), 04666), ==, 0);
    file_refused("private", -EPERM, "0666");
}

TEST(a_directory_that_can_not_be_written_says_so)
{
    bool root = geteuid() == 0;
    if (root)
        CHECK_INT(seteuid(65534), ==, 0);
    CHECK_INT(lockdir_open(&dir, "/", "", &err), ==, 0);
    file_refused("launch-gpu", -EACCES, "Permission denied");
    if (root)
        CHECK_INT(seteuid(0), ==, 0); /* for sanitizers, which look at this process at its end */
}
