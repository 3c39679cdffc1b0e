/* SPDX-License-Identifier: MIT */
/* agent/notify.[ch]: what is understood, and who is listened to. Children of the test are its workers. */
#include "../../agent/notify.h"
#include "../harness.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static uv_loop_t loop;
static struct notify notify;

static void open_ranks(uint32_t n)
{
    struct err err;
    CHECK_INT(uv_loop_init(&loop), ==, 0);
    if (notify_open(&notify, &loop, n, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

static struct notify_rank *parse(const char *text, size_t n)
{
    static struct notify_rank rank;
    rank = (struct notify_rank){.fd = -1};
    notify_parse(&rank, text, n);
    return &rank;
}

TEST(the_words_of_sd_notify_are_understood)
{
    static const char all[] = "READY=1\nSTATUS=epoch 3\nWATCHDOG=1\nSTOPPING=1\n";
    struct notify_rank *r = parse(all, sizeof all - 1);
    CHECK(r->ready && r->stopping);
    CHECK_STR(r->status, "epoch 3");
    CHECK_INT(r->watchdogs, ==, 1);
    CHECK_INT(r->messages, ==, 3);
    CHECK_INT(parse("WATCHDOG=1", 10)->watchdogs, ==, 1);
    CHECK_INT(parse("WATCHDOG=1\nWATCHDOG=1", 21)->watchdogs, ==, 2);
}

TEST(of_a_process_that_was_replaced_only_the_counts_stay)
{
    static const char text[] = "READY=1\nSTATUS=epoch 3\nSTOPPING=1\n";
    struct notify_rank *r = parse(text, sizeof text - 1);
    notify_forget(r);
    CHECK(!r->ready && !r->stopping);
    CHECK_STR(r->status, "");
    CHECK_INT(r->messages, ==, 3); /* compared, and not read */
}

TEST(other_words_are_no_sign)
{
    static const char *const texts[] = {"",         "\n\n\n",         "WATCHDOG=0",  "WATCHDOG=10",
                                        "WATCHDOG", "watchdog=1",     " WATCHDOG=1", "READY=0",
                                        "STATUS",   "MAINPID=1",      "BARRIER=1",   "XSTATUS=a",
                                        "=",        "WATCHDOG_USEC=1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct notify_rank *r = parse(texts[i], strlen(texts[i]));
        CHECK_INT(r->watchdogs + r->messages, ==, 0);
    }
    CHECK_INT(parse("WATCHDOG=1\0", 11)->watchdogs, ==, 0);
}

TEST(a_status_is_cut_and_made_printable)
{
    char text[1000] = "STATUS=\x1b[31m";
    memset(text + 12, 0xff, sizeof text - 12);
    struct notify_rank *r = parse(text, sizeof text);
    CHECK_INT(strlen(r->status), ==, sizeof r->status - 1);
    for (const char *c = r->status; *c; c++)
        CHECK(*c >= ' ' && *c <= '~');
}

TEST(every_rank_has_a_name_of_its_own_that_is_no_file)
{
    open_ranks(8);
    for (uint32_t i = 0; i < 8; i++) {
        CHECK_INT(notify_address(&notify, i)[0], ==, '@');
        CHECK(strlen(notify_address(&notify, i)) >= 33);
        for (uint32_t j = 0; j < i; j++)
            CHECK(strcmp(notify_address(&notify, i), notify_address(&notify, j)) != 0);
    }
    notify_close(&notify);
    notify_close(&notify);
}

/* As sd_notify() does it. */
static int send_to(const char *address, const char *text)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t n = strlen(address);
    memcpy(at.sun_path + 1, address + 1, n - 1);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ssize_t sent = sendto(fd, text, strlen(text), 0, (struct sockaddr *)&at,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
    close(fd);
    return sent == (ssize_t)strlen(text) ? 0 : 1;
}

static void wait_for(pid_t pid)
{
    int status;
    CHECK_INT(waitpid(pid, &status, 0), ==, pid);
    CHECK_INT(status, ==, 0);
}

/* A child, or a process `depth` levels below it, sends; returns when it has. */
static pid_t sender(const char *address, const char *text, unsigned depth)
{
    int said[2];
    CHECK_INT(pipe(said), ==, 0);
    pid_t pid = fork();
    if (pid == 0) {
        for (unsigned i = 0; i < depth; i++) {
            pid_t below = fork();
            if (below) {
                close(said[0]), close(said[1]);
                int status;
                waitpid(below, &status, 0);
                _exit(status != 0);
            }
        }
        int rc = send_to(address, text);
        if (write(said[1], &rc, sizeof rc) < 0)
            _exit(1);
        _exit(rc);
    }
    int rc = 1;
    close(said[1]);
    CHECK_INT(read(said[0], &rc, sizeof rc), ==, (long long)sizeof rc);
    CHECK_INT(rc, ==, 0);
    close(said[0]);
    return pid;
}

TEST(workers_and_what_is_below_them_are_heard_each_on_their_own_rank)
{
    open_ranks(2);
    for (unsigned depth = 0; depth < 3; depth++) {
        pid_t pid = sender(notify_address(&notify, 1), "WATCHDOG=1", depth);
        uv_run(&loop, UV_RUN_ONCE);
        CHECK_INT(notify.ranks[1].watchdogs, ==, depth + 1);
        CHECK_INT(notify.ranks[0].watchdogs, ==, 0);
        CHECK_INT(notify.ranks[1].refused, ==, 0);
        wait_for(pid);
    }
    notify_close(&notify);
}

TEST(a_command_that_has_ended_already_is_heard)
{
    open_ranks(1);
    wait_for(sender(notify_address(&notify, 0), "WATCHDOG=1", 0));
    uv_run(&loop, UV_RUN_ONCE);
    CHECK_INT(notify.ranks[0].watchdogs, ==, 1);
    notify_close(&notify);
}

/* The test's parent is no worker: a child plays the agent, and the test itself the stranger. */
TEST(a_process_that_is_not_below_the_agent_is_refused)
{
    int name[2], go[2];
    CHECK_INT(pipe(name), ==, 0);
    CHECK_INT(pipe(go), ==, 0);
    pid_t agent = fork();
    if (agent == 0) {
        open_ranks(1);
        const char *address = notify_address(&notify, 0);
        if (write(name[1], address, strlen(address)) < 0)
            _exit(1);
        uv_run(&loop, UV_RUN_ONCE);
        _exit(notify.ranks[0].refused == 1 && notify.ranks[0].watchdogs == 0 ? 0 : 2);
    }
    char address[NOTIFY_ADDRESS_BYTES] = "";
    CHECK(read(name[0], address, sizeof address - 1) > 0);
    CHECK_INT(send_to(address, "WATCHDOG=1"), ==, 0);
    wait_for(agent);
}

TEST(another_user_is_refused)
{
    if (geteuid() != 0)
        test_skip("needs root, to be somebody else for a moment");
    open_ranks(1);
    pid_t pid = fork();
    if (pid == 0)
        _exit(setuid(65534) < 0 || send_to(notify_address(&notify, 0), "WATCHDOG=1"));
    uv_run(&loop, UV_RUN_ONCE);
    CHECK_INT(notify.ranks[0].refused, ==, 1);
    CHECK_INT(notify.ranks[0].watchdogs, ==, 0);
    wait_for(pid);
    notify_close(&notify);
}
