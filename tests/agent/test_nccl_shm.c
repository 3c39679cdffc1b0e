/* SPDX-License-Identifier: MIT */
/* NCCL's files that nobody has any more, in a directory of the test's own on /dev/shm. */
#include "../../agent/nccl_shm.h"
#include "../../proto/base.h"
#include "../harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/dev/shm/nccl-test-XXXXXX";

/* "ROOT/dev/shm/NAME" */
static const char *at(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/dev/shm/%s", root, name);
    return path;
}

static void remove_all(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (system(command) != 0)
        perror(command);
}

static int make(const char *name, mode_t mode)
{
    int fd = open(at(name), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    CHECK_INT(fd, >=, 0);
    CHECK_INT(ftruncate(fd, 4096), ==, 0);
    return fd;
}

static void leave(const char *name, mode_t mode)
{
    close(make(name, mode));
}

static bool is_there(const char *name)
{
    struct stat st;
    return lstat(at(name), &st) == 0;
}

static bool can_lease(void)
{
    int fd = make("probe", 0600);
    close(fd);
    fd = open(at("probe"), O_RDONLY | O_CLOEXEC);
    bool can = fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
    close(fd);
    unlink(at("probe"));
    return can;
}

static void begin(void)
{
    char dev[64];
    if (!mkdtemp(root))
        test_skip("no /dev/shm to write to");
    atexit(remove_all);
    snprintf(dev, sizeof dev, "%s/dev", root);
    CHECK_INT(mkdir(dev, 0700), ==, 0);
    CHECK_INT(mkdir(at(""), 0700), ==, 0);
    if (!can_lease())
        test_skip("no leases on /dev/shm");
}

static const struct timespec EVER = {0};

TEST(a_file_of_nccl_that_nobody_has_goes_and_one_that_is_open_or_mapped_stays)
{
    begin();
    leave("nccl-Left00", 0600);
    int open_fd = make("nccl-Open00", 0600), mapped_fd = make("nccl-Mapd00", 0600);
    void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, mapped_fd, 0);
    CHECK(map != MAP_FAILED);
    close(mapped_fd);
    CHECK_INT(nccl_shm_sweep(root, &EVER), ==, 1);
    CHECK(!is_there("nccl-Left00") && is_there("nccl-Open00") && is_there("nccl-Mapd00"));
    close(open_fd);
    munmap(map, 4096);
    CHECK_INT(nccl_shm_sweep(root, &EVER), ==, 2);
    CHECK(!is_there("nccl-Open00") && !is_there("nccl-Mapd00"));
}

TEST(what_only_looks_like_a_file_of_nccl_stays)
{
    static const char *const names[] = {"nccl-Left0", "nccl-Left000", "nccl-Lef.00", "nccl_Left00",
                                        "xccl-Left00"};
    begin();
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        leave(names[i], 0600);
    leave("nccl-Mode00", 0640);
    leave("nccl-Link00", 0600);
    char linked[128];
    snprintf(linked, sizeof linked, "%s", at("nccl-Link00"));
    CHECK_INT(link(linked, at("other")), ==, 0);
    CHECK_INT(symlink("nccl-Mode00", at("nccl-Symb00")), ==, 0);
    CHECK_INT(mkdir(at("nccl-Dir000"), 0600), ==, 0);
    if (geteuid() == 0) {
        leave("nccl-User00", 0600);
        CHECK_INT(chown(at("nccl-User00"), 54321, 54321), ==, 0);
    }
    CHECK_INT(nccl_shm_sweep(root, &EVER), ==, 0);
    CHECK(is_there(names[0]) && is_there("nccl-Link00") && is_there("nccl-Symb00"));
}

TEST(a_file_that_was_there_before_the_job_stays)
{
    begin();
    struct stat st;
    leave("nccl-Left00", 0600);
    CHECK_INT(stat(at("nccl-Left00"), &st), ==, 0);
    struct timespec since = {st.st_ctim.tv_sec, st.st_ctim.tv_nsec + 1};
    CHECK_INT(nccl_shm_sweep(root, &since), ==, 0);
    CHECK_INT(nccl_shm_sweep(root, &st.st_ctim), ==, 1);
}

TEST(without_the_directory_there_is_nothing_to_do)
{
    CHECK_INT(nccl_shm_sweep("/nowhere", &EVER), ==, 0);
}
