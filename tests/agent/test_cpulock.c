/* SPDX-License-Identifier: MIT */
/* agent/cpulock.c: locks of several jobs on the CPUs of one server. */
#include "../../agent/cpulock.h"
#include "../harness.h"

#include <fcntl.h>

static int opened(void)
{
    int fd = -1;
    struct err err;
    if (cpulock_open(NULL, test_dir(), &fd, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK_INT(fcntl(fd, F_GETFD), ==, FD_CLOEXEC);
    return fd;
}

static struct bitset list(const char *text)
{
    struct bitset set;
    CHECK(bitset_parse(&set, text));
    return set;
}

static const char *taken(int fd)
{
    static char text[64];
    struct bitset among = list("0-8191"), found;
    cpulock_taken(fd, &among, &found);
    return bitset_text(&found, text, sizeof text);
}

TEST(what_one_job_has_another_sees_and_can_not_have)
{
    int a = opened(), b = opened();
    struct bitset mine = list("0-3,64,8191"), other = list("4-7,64"), free = list("4-7");
    CHECK(cpulock_take(a, &mine));
    CHECK_STR(taken(a), "");
    CHECK_STR(taken(b), "0-3,64,8191");
    CHECK(!cpulock_take(b, &other));
    CHECK_STR(taken(a), ""); /* all or none */
    CHECK(cpulock_take(b, &free));
    CHECK_STR(taken(a), "4-7");
    close(a);
    CHECK_STR(taken(b), "");
    CHECK(cpulock_take(b, &mine));
    close(b);
}
