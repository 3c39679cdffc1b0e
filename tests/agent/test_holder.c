/* SPDX-License-Identifier: MIT */
#include "../../agent/holder.h"
#include "../harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int open_file(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/lock", test_dir());
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    CHECK(fd >= 0);
    return fd;
}

static struct holder person(const char *run)
{
    struct holder h = {.uid = 7, .pid = 42, .started = 1000, .wants = 3, .ticket = 9};
    snprintf(h.run, sizeof h.run, "%s", run);
    snprintf(h.program, sizeof h.program, "./train");
    snprintf(h.units, sizeof h.units, "gpu-a,gpu-b");
    return h;
}

TEST(one_holds_a_file_alone_or_several_share_it)
{
    int a = open_file(), b = open_file(), c = open_file();
    CHECK_INT(holder_state(a), ==, HOLDER_FREE);
    CHECK_INT(holder_lock(a, false), ==, 0);
    CHECK_INT(holder_lock(b, false), ==, 0);
    CHECK_INT(holder_state(c), ==, HOLDER_SHARED);
    CHECK_INT(holder_lock(c, true), ==, -EAGAIN);
    close(a);
    CHECK_INT(holder_lock(c, true), ==, -EAGAIN);
    close(b);
    CHECK_INT(holder_lock(c, true), ==, 0);
    a = open_file();
    CHECK_INT(holder_state(a), ==, HOLDER_EXCLUSIVE);
    CHECK_INT(holder_lock(a, false), ==, -EAGAIN);
    holder_unlock(c);
    CHECK_INT(holder_state(a), ==, HOLDER_FREE);
}

TEST(a_hold_lasts_until_the_last_process_that_has_it_is_gone)
{
    int fd = open_file(), other = open_file(), gate[2];
    CHECK_INT(holder_lock(fd, true), ==, 0);
    CHECK_INT(pipe(gate), ==, 0);
    pid_t child = fork();
    if (child == 0) {
        char c;
        close(gate[1]);
        _exit((int)read(gate[0], &c, 1));
    }
    close(fd);
    CHECK_INT(holder_state(other), ==, HOLDER_EXCLUSIVE);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK_INT(holder_state(other), ==, HOLDER_FREE);
}

TEST(a_page_is_seen_by_others_while_its_holder_lives)
{
    int a = open_file(), b = open_file(), c = open_file();
    struct holder seen, one = person("night"), two = person("day");
    unsigned page = 0;
    CHECK_INT(holder_sign(a, &one), ==, 0);
    CHECK_INT(holder_sign(b, &two), ==, 0);
    CHECK(holder_next(c, &page, &seen));
    CHECK(holder_same(&seen, &one));
    CHECK_STR(seen.program, "./train");
    CHECK_STR(seen.units, "gpu-a,gpu-b");
    CHECK_INT(seen.wants, ==, 3);
    CHECK_INT(seen.ticket, ==, 9);
    CHECK(holder_next(c, &page, &seen));
    CHECK(holder_same(&seen, &two));
    CHECK(!holder_next(c, &page, &seen));
    page = 0;
    CHECK(holder_next(a, &page, &seen)); /* not its own */
    CHECK(holder_same(&seen, &two));
    close(a);
    page = 0;
    CHECK(holder_next(c, &page, &seen));
    CHECK_STR(seen.run, "day");
    CHECK_INT(holder_sign(c, &one), ==, 0); /* on the page that has become free */
    page = 0;
    CHECK(holder_next(b, &page, &seen));
    CHECK_STR(seen.run, "night");
}

TEST(there_are_64_pages_and_then_no_more)
{
    struct holder one = person("x");
    for (unsigned i = 0; i < HOLDER_PAGES; i++)
        CHECK_INT(holder_sign(open_file(), &one), ==, 0);
    CHECK_INT(holder_sign(open_file(), &one), ==, -ENOSPC);
}

/* Anybody can write to the file. */
TEST(nonsense_on_a_page_is_read_without_harm)
{
    static const char *const TEXTS[] = {
        "",
        "run",
        "run ",
        "\n\n\n",
        "run \033[31mred\033[0m\npid -1\nuid 99999999999999999999\nwants 65\n",
        "run a\nrun b\npid 1x\nticket 18446744073709551615\nstarted -5\n",
        "units ,,,,,\nwants 4294967297\n"};
    int a = open_file(), b = open_file();
    struct holder one = person("x"), seen;
    CHECK_INT(holder_sign(a, &one), ==, 0);
    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        unsigned page = 0;
        CHECK_INT(ftruncate(a, 0), ==, 0);
        CHECK_INT(ftruncate(a, 2048), ==, 0);
        CHECK_INT(pwrite(a, TEXTS[i], strlen(TEXTS[i]), 0), ==, strlen(TEXTS[i]));
        CHECK(holder_next(b, &page, &seen));
        CHECK(!strchr(seen.run, '\033'));
        CHECK_INT(seen.pid, >=, 0);
        CHECK_INT(seen.wants, <=, HOLDER_PAGES);
        CHECK_INT(seen.ticket, <=, INT64_MAX);
        CHECK_INT(seen.started, >=, 0);
    }
    char full[4096];
    memset(full, 'u', sizeof full);
    memcpy(full, "units ", 6);
    CHECK_INT(pwrite(a, full, sizeof full, 0), ==, sizeof full);
    unsigned page = 0;
    CHECK(holder_next(b, &page, &seen));
    CHECK_INT(strlen(seen.units), ==, HOLDER_UNITS_BYTES - 1);
}

TEST(a_page_that_is_signed_over_names_the_new_process_and_no_other_page_changes)
{
    int a = open_file(), b = open_file(), watcher = open_file();
    struct holder one = person("one"), two = person("two"), now = one, seen;
    unsigned page = 0;
    CHECK_INT(holder_lock(a, false), ==, 0);
    CHECK_INT(holder_lock(b, false), ==, 0);
    CHECK_INT(holder_sign(b, &two), ==, 0);
    CHECK_INT(holder_sign(a, &one), ==, 0);
    now.pid = one.pid + 1;
    holder_sign_over(a, &one, &now);
    CHECK(holder_next(watcher, &page, &seen));
    CHECK(holder_same(&seen, &two));
    CHECK(holder_next(watcher, &page, &seen));
    CHECK(holder_same(&seen, &now));
    CHECK(!holder_next(watcher, &page, &seen));
}
