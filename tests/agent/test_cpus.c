/* SPDX-License-Identifier: MIT */
/* Affinity of this process and quotas from made-up cgroup trees. */
#include "../../agent/cpus.h"
#include "../harness.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>

static unsigned quota(void)
{
    return cpus_quota(test_dir());
}

TEST(without_cgroups_there_is_no_quota)
{
    CHECK_INT(quota(), ==, UINT_MAX);
    test_write("proc/self/cgroup", "");
    CHECK_INT(quota(), ==, UINT_MAX);
    test_write("proc/self/cgroup", "0::/a\n");
    CHECK_INT(quota(), ==, UINT_MAX);
}

TEST(a_quota_is_rounded_up_to_whole_cpus)
{
    static const struct {
        const char *text;
        unsigned cpus;
    } cases[] = {
        {"max 100000\n", UINT_MAX},
        {"100000 100000\n", 1},
        {"150000 100000\n", 2},
        {"800000 100000\n", 8},
        {"1000 100000\n", 1},
        {"100001 100000\n", 2},
        {"0 100000\n", 1},
        {"100000 0\n", UINT_MAX},
        {"100000\n", UINT_MAX},
        {"", UINT_MAX},
        {"junk\n", UINT_MAX},
        {"\xff\xfe\n", UINT_MAX},
        {"18446744073709551615 1\n", UINT_MAX},
    };
    test_write("proc/self/cgroup", "0::/a\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_write("sys/fs/cgroup/a/cpu.max", cases[i].text);
        CHECK_INT(quota(), ==, cases[i].cpus);
    }
}

TEST(the_tightest_level_on_the_way_to_the_root_counts)
{
    test_write("proc/self/cgroup", "0::/a/b/c\n");
    test_write("sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
    test_write("sys/fs/cgroup/a/b/cpu.max", "700000 100000\n");
    test_write("sys/fs/cgroup/a/cpu.max", "500000 100000\n");
    test_write("sys/fs/cgroup/other/cpu.max", "100000 100000\n");
    CHECK_INT(quota(), ==, 5);
    test_write("sys/fs/cgroup/cpu.max", "300000 100000\n");
    CHECK_INT(quota(), ==, 3);
}

TEST(a_group_that_is_not_below_our_mount_leaves_the_mount_itself)
{
    test_write("sys/fs/cgroup/cpu.max", "400000 100000\n");
    test_write("sys/fs/cpu.max", "100000 100000\n");
    test_write("proc/self/cgroup", "0::/docker/8f3a\n");
    CHECK_INT(quota(), ==, 4);
    test_write("proc/self/cgroup", "0::/../..\n");
    CHECK_INT(quota(), ==, 4);
    test_write("proc/self/cgroup", "0::not-a-path\n");
    CHECK_INT(quota(), ==, 4);
}

TEST(version_one_and_hybrid_quotas_count_too)
{
    test_write("proc/self/cgroup", "5:cpuset:/a\n4:cpu,cpuacct:/a\n1:name=systemd:/x\n0::/u\n");
    test_write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
    test_write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
    CHECK_INT(quota(), ==, UINT_MAX);
    test_write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n");
    test_write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    CHECK_INT(quota(), ==, 3);
    test_write("sys/fs/cgroup/unified/u/cpu.max", "200000 100000\n");
    CHECK_INT(quota(), ==, 2);
    test_write("sys/fs/cgroup/cpuset/a/cpu.cfs_quota_us", "100000\n");
    CHECK_INT(quota(), ==, 2);
}

TEST(what_the_affinity_mask_leaves_is_counted)
{
    cpu_set_t all, one;
    CHECK_INT(sched_getaffinity(0, sizeof all, &all), ==, 0);
    CHECK_INT(cpus_affinity(), ==, CPU_COUNT(&all));
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    CHECK_INT(sched_setaffinity(0, sizeof one, &one), ==, 0);
    CHECK_INT(cpus_affinity(), ==, 1);
    CHECK_INT(cpus_allowed(quota()), ==, 1);
}

TEST(the_smaller_of_affinity_and_quota_is_allowed)
{
    unsigned affinity = cpus_affinity();
    char text[64];
    test_write("proc/self/cgroup", "0::/\n");
    test_write("sys/fs/cgroup/cpu.max", "100000 100000\n");
    CHECK_INT(cpus_allowed(quota()), ==, 1);
    snprintf(text, sizeof text, "%u 1000\n", affinity * 2000);
    test_write("sys/fs/cgroup/cpu.max", text);
    CHECK_INT(cpus_allowed(quota()), ==, affinity);
}
