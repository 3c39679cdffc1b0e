/* SPDX-License-Identifier: MIT */
#include "../../agent/quarantine.h"
#include "../../agent/holder.h"
#include "../harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOOT "proc/sys/kernel/random/boot_id"
#define AT (HOLDER_PAGES * HOLDER_PAGE_BYTES)

static const struct gpu gpu = {.pci = "0000:18:00.0"};
static const struct quarantine bad = {
    .since = 1795000000, .run = "night", .reason = "Xid 79 (the GPU has fallen off the bus)"};
static struct quarantine found;
static struct err err;

static const char *locks(void)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/locks", test_dir());
    if (access(path, F_OK) < 0 && (mkdir(path, 0700) < 0 || chmod(path, 01777) < 0))
        test_fail(__FILE__, __LINE__, "%s can't be made", path);
    return path;
}

static int lock_file(void)
{
    char path[700];
    snprintf(path, sizeof path, "%s/launch-gpu-0000:18:00.0", locks());
    int fd = open(path, O_RDWR | O_CREAT, 0666);
    CHECK_INT(fd, >=, 0);
    CHECK_INT(fchmod(fd, 0666), ==, 0);
    return fd;
}

static bool holds(void)
{
    found = (struct quarantine){0};
    return quarantine_holds(locks(), test_dir(), &gpu, &found);
}

static void put(void)
{
    CHECK_INT(quarantine_put(locks(), test_dir(), &gpu, &bad, &err), ==, 0);
}

static void write_text(const char *text, size_t n)
{
    int fd = lock_file();
    CHECK_INT(pwrite(fd, text, n, AT), ==, (long long)n);
    close(fd);
}

TEST(what_is_written_down_of_a_gpu_holds_with_its_reason_until_it_is_erased)
{
    CHECK(!holds());
    put();
    CHECK(holds());
    CHECK_INT(found.since, ==, bad.since);
    CHECK_STR(found.run, "night");
    CHECK_STR(found.reason, bad.reason);
    int fd = lock_file();
    CHECK(quarantine_read(fd, test_dir(), &found));
    CHECK_INT(quarantine_erase(fd), ==, 0);
    close(fd);
    CHECK(!holds());
    put();
    CHECK(holds());
}

TEST(another_gpu_is_not_meant)
{
    struct gpu other = {.pci = "0000:19:00.0"};
    put();
    CHECK(!quarantine_holds(locks(), test_dir(), &other, &found));
}

TEST(a_boot_ends_it)
{
    test_write(BOOT, "11111111-2222-3333-4444-555555555555\n");
    put();
    CHECK(holds());
    test_write(BOOT, "99999999-2222-3333-4444-555555555555\n");
    CHECK(!holds());
}

TEST(holders_of_the_same_file_and_it_leave_one_another_alone)
{
    struct holder me = {.run = "day", .program = "p", .pid = 7}, who;
    int fd = lock_file();
    CHECK_INT(holder_lock(fd, true), ==, 0);
    CHECK_INT(holder_sign(fd, &me), ==, 0);
    put();
    int other = lock_file();
    unsigned page = 0;
    CHECK_INT(holder_state(other), ==, HOLDER_EXCLUSIVE);
    CHECK(holder_next(other, &page, &who));
    CHECK_STR(who.run, "day");
    CHECK(!holder_next(other, &page, &who));
    CHECK(holds());
    close(other);
    close(fd);
}

TEST(noise_half_a_record_and_a_foreign_boot_are_none)
{
    static const char *const texts[] = {
        "",
        "launch",
        "launch quarantine",
        "launch quarantine\n",
        "launch quarantine\nreason x\n",
        "launch quarantine\nboot 1\nreason x\n",
        "Launch quarantine\nboot ?\nreason x\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CHECK_INT(quarantine_erase(lock_file()), ==, 0);
        write_text(texts[i], strlen(texts[i]));
        CHECK(!holds());
    }
    char noise[4096];
    for (unsigned seed = 1; seed <= 200; seed++) {
        for (size_t i = 0; i < sizeof noise; i++)
            noise[i] = (char)(seed * 2654435761u >> (i % 24)) ^ (char)i;
        write_text(noise, sizeof noise);
        CHECK(!holds());
    }
}

TEST(texts_of_a_record_are_cut_and_can_not_steer_a_terminal)
{
    char text[6000] = "launch quarantine\nboot ?\nsince -5x\nrun \x1b[2J\nreason ";
    size_t n = strlen(text);
    memset(text + n, 'A', sizeof text - n);
    write_text(text, sizeof text);
    CHECK(holds());
    CHECK_INT(found.since, ==, 0);
    CHECK_STR(found.run, "?[2J");
    CHECK_INT(strlen(found.reason), ==, sizeof found.reason - 1);
}

TEST(a_link_or_a_directory_in_the_place_of_the_file_is_refused_and_left_alone)
{
    char path[700], victim[700];
    snprintf(path, sizeof path, "%s/launch-gpu-0000:18:00.0", locks());
    snprintf(victim, sizeof victim, "%s/victim", test_dir());
    test_write("victim", "precious");
    CHECK_INT(chmod(victim, 0666), ==, 0);
    CHECK_INT(symlink(victim, path), ==, 0);
    CHECK(!holds());
    CHECK_INT(quarantine_put(locks(), test_dir(), &gpu, &bad, &err), ==, -EPERM);
    CHECK_HAS(err.text, "symbolic link");
    CHECK_INT(unlink(path), ==, 0);
    CHECK_INT(mkdir(path, 0700), ==, 0);
    CHECK(!holds());
    CHECK_INT(quarantine_put(locks(), test_dir(), &gpu, &bad, &err), <, 0);
    struct stat st;
    CHECK_INT(stat(victim, &st), ==, 0);
    CHECK_INT(st.st_size, ==, 8);
}

TEST(who_watches_is_told_of_what_is_written)
{
    char events[4096];
    put();
    int fd = quarantine_watch(locks(), test_dir());
    CHECK_INT(fd, >=, 0);
    CHECK_INT(read(fd, events, sizeof events), ==, -1);
    int file = lock_file();
    CHECK_INT(quarantine_erase(file), ==, 0);
    close(file);
    CHECK_INT(read(fd, events, sizeof events), >, 0);
    close(fd);
    CHECK_INT(quarantine_watch("/no/such/dir", ""), <, 0);
}
