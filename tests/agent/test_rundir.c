/* SPDX-License-Identifier: MIT */
/* agent/rundir.[ch]: whose directories are used, and that nothing stays in them. */
#include "../../agent/rundir.h"
#include "../harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path_of(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", test_dir(), name);
    return path;
}

/* A machine of our own with /dev/shm and /tmp, and no session. */
static const char *machine(void)
{
    unsetenv("XDG_RUNTIME_DIR");
    test_write("dev/shm/.keep", "");
    test_write("tmp/.keep", "");
    return test_dir();
}

static struct rundir_place choose(const char *sysroot, bool outlives)
{
    struct rundir_place place;
    rundir_choose(&place, sysroot, "night", outlives);
    return place;
}

static int bind_there(const struct rundir_place *place)
{
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), directory;
    CHECK_INT(rundir_address(place, &address, &directory), ==, 0);
    CHECK_INT(bind(fd, (struct sockaddr *)&address, sizeof address), ==, 0);
    close_fd(&directory);
    return fd;
}

static unsigned found;

static void count(void *user, const struct rundir_place *place)
{
    const struct rundir_place *wanted = user;
    CHECK_STR(place->dir, wanted->dir);
    CHECK_STR(place->name, wanted->name);
    CHECK_INT(place->owner, ==, geteuid());
    found++;
}

TEST(a_session_has_a_place_of_its_own_and_what_outlives_it_another)
{
    const char *root = machine();
    mkdir(path_of("session"), 0700);
    setenv("XDG_RUNTIME_DIR", path_of("session"), 1);
    CHECK_STR(choose(root, false).dir, path_of("session/launch"));
    CHECK_HAS(choose(root, true).dir, "/tmp/launch-");
    setenv("XDG_RUNTIME_DIR", "session", 1); /* relative */
    CHECK_HAS(choose(root, false).dir, "/dev/shm/launch-");
    setenv("XDG_RUNTIME_DIR", path_of("gone"), 1);
    CHECK_HAS(choose(root, false).dir, "/dev/shm/launch-");
    CHECK(strncmp(choose(root, false).name, "night.", 6) == 0);
}

TEST(a_session_of_somebody_else_is_not_used)
{
    if (getuid() != 0)
        test_skip("needs root to make it somebody else's");
    const char *root = machine();
    mkdir(path_of("session"), 0700);
    CHECK_INT(chown(path_of("session"), 4242, 4242), ==, 0);
    setenv("XDG_RUNTIME_DIR", path_of("session"), 1);
    CHECK_HAS(choose(root, false).dir, "/dev/shm/launch-");
}

TEST(a_socket_is_found_and_removed_with_its_directory)
{
    struct err err;
    struct rundir_place place = choose(machine(), false);
    CHECK_INT(rundir_make(&place, &err), ==, 0);
    int fd = bind_there(&place);
    CHECK_INT(rundir_walk(test_dir(), count, &place, &err), ==, 0);
    CHECK_INT(found, ==, 1);
    rundir_remove(&place);
    CHECK_INT(access(place.dir, F_OK), ==, -1);
    rundir_remove(&place); /* once more does no harm */
    close(fd);
}

TEST(a_directory_in_which_no_socket_was_made_goes_as_well)
{
    struct err err;
    struct rundir_place place = choose(machine(), false);
    CHECK_INT(rundir_make(&place, &err), ==, 0);
    CHECK_INT(access(place.dir, F_OK), ==, 0);
    rundir_remove(&place);
    CHECK_INT(access(place.dir, F_OK), ==, -1);
    mkdir(place.dir, 0700);
    chmod(place.dir, 0777); /* one that is not used */
    rundir_remove(&place);
    CHECK_INT(access(place.dir, F_OK), ==, 0);
}

TEST(the_directory_stays_while_another_socket_is_in_it)
{
    struct err err;
    struct rundir_place a = choose(machine(), false), b = choose(test_dir(), false);
    CHECK(strcmp(a.name, b.name) != 0); /* the same run id twice */
    CHECK_INT(rundir_make(&a, &err), ==, 0);
    CHECK_INT(rundir_make(&b, &err), ==, 0);
    bind_there(&a);
    bind_there(&b);
    rundir_remove(&a);
    CHECK_INT(access(b.dir, F_OK), ==, 0);
}

TEST(a_path_too_long_for_an_address_goes_through_the_directory)
{
    struct err err;
    char name[100];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    unsetenv("XDG_RUNTIME_DIR");
    char deep[200];
    snprintf(deep, sizeof deep, "%s/dev/shm/.keep", name);
    test_write(deep, "");
    struct rundir_place place = choose(path_of(name), false);
    CHECK_INT(rundir_make(&place, &err), ==, 0);
    bind_there(&place);
    char file[PATH_MAX + 100];
    snprintf(file, sizeof file, "%s/%s", place.dir, place.name);
    CHECK_INT(access(file, F_OK), ==, 0);
}

/* What rundir_make() says of the directory as `prepare` left it. */
static void refused(const struct rundir_place *place, const char *why)
{
    struct err err = {0};
    CHECK_INT(rundir_make(place, &err), ==, -EPERM);
    CHECK_HAS(err.text, why);
    CHECK_INT(rundir_walk(test_dir(), count, NULL, &err), ==, -EPERM);
    CHECK_HAS(err.text, why);
    CHECK_HAS(err.text, place->dir);
}

TEST(a_link_in_the_place_of_the_directory_is_refused)
{
    struct rundir_place place = choose(machine(), false);
    mkdir(path_of("trap"), 0700);
    CHECK_INT(symlink(path_of("trap"), place.dir), ==, 0);
    refused(&place, "is no directory");
}

TEST(a_directory_that_others_may_enter_is_refused)
{
    struct rundir_place place = choose(machine(), false);
    CHECK_INT(mkdir(place.dir, 0700), ==, 0);
    CHECK_INT(chmod(place.dir, 0701), ==, 0);
    refused(&place, "chmod 700");
}

TEST(a_directory_of_somebody_else_is_refused)
{
    if (getuid() != 0)
        test_skip("needs root to make it somebody else's");
    struct rundir_place place = choose(machine(), false);
    CHECK_INT(mkdir(place.dir, 0700), ==, 0);
    CHECK_INT(chown(place.dir, 4242, 4242), ==, 0);
    refused(&place, "belongs to uid 4242");
}

TEST(only_sockets_that_are_not_young_are_swept)
{
    struct err err;
    struct rundir_place place = choose(machine(), false);
    CHECK_INT(rundir_make(&place, &err), ==, 0);
    bind_there(&place);
    char file[PATH_MAX + 100];
    snprintf(file, sizeof file, "%s/%s", place.dir, place.name);
    rundir_sweep(&place);
    CHECK_INT(access(file, F_OK), ==, 0);
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    CHECK_INT(utimensat(AT_FDCWD, file, old, 0), ==, 0);
    rundir_sweep(&place);
    CHECK_INT(access(file, F_OK), ==, -1);
    struct rundir_place other = place;
    snprintf(other.name, sizeof other.name, "notes");
    CHECK_INT(rundir_make(&place, &err), ==, 0);
    snprintf(file, sizeof file, "%s/notes", place.dir);
    close(open(file, O_CREAT | O_WRONLY, 0600));
    CHECK_INT(utimensat(AT_FDCWD, file, old, 0), ==, 0);
    rundir_sweep(&other);
    CHECK_INT(access(file, F_OK), ==, 0);
}

/* The owner of a directory can put a link in its place between two of our looks. */
TEST(who_replaces_his_directory_by_a_link_can_not_have_others_files_removed_or_asked)
{
    struct err err;
    struct rundir_place place = choose(machine(), false), theirs = place;
    snprintf(theirs.dir, sizeof theirs.dir, "%s", path_of("theirs"));
    CHECK_INT(rundir_make(&theirs, &err), ==, 0);
    bind_there(&theirs);
    char file[PATH_MAX + 100];
    snprintf(file, sizeof file, "%s/%s", theirs.dir, theirs.name);
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    CHECK_INT(utimensat(AT_FDCWD, file, old, 0), ==, 0);
    CHECK_INT(symlink(theirs.dir, place.dir), ==, 0);
    rundir_sweep(&place);
    CHECK_INT(access(file, F_OK), ==, 0);
    struct sockaddr_un address;
    int directory;
    place.owner = geteuid() + 1; /* as root sees it */
    CHECK_INT(rundir_address(&place, &address, &directory), ==, -EPERM);
}
