/* SPDX-License-Identifier: MIT */
/* Counts the CPUs that the kernel will really give. Must never know what they are for: which
 * rank runs where is decided elsewhere. */
#include "cpus.h"

#include "sysfile.h"

#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Far above any kernel's NR_CPUS; ends the search for a mask that is large enough. */
#define CPUS_MASK_MAX (1 << 20)

unsigned cpus_affinity(void)
{
    for (int size = CPU_SETSIZE; size <= CPUS_MASK_MAX; size *= 2) {
        cpu_set_t *mask = CPU_ALLOC((size_t)size);
        if (!mask)
            break;
        size_t bytes = CPU_ALLOC_SIZE((size_t)size);
        int rc = sched_getaffinity(0, bytes, mask);
        int error = errno;
        int count = rc == 0 ? CPU_COUNT_S(bytes, mask) : 0;
        CPU_FREE(mask);
        if (count > 0)
            return (unsigned)count;
        if (rc == 0 || error != EINVAL)
            break;
    }
    return 1;
}

static unsigned whole_cpus(uint64_t quota_us, uint64_t period_us)
{
    uint64_t cpus = quota_us / period_us + (quota_us % period_us != 0);
    return cpus < 1 ? 1 : cpus < UINT_MAX ? (unsigned)cpus : UINT_MAX;
}

/* What one cgroup directory allows; either hierarchy's files, whichever are there. */
static unsigned quota_of(const char *sysroot, const char *mount, const char *group)
{
    char text[64];
    uint64_t quota, period;
    long long v1_quota, v1_period;
    if (sysfile_read(text, sizeof text, sysroot, "%s%s/cpu.max", mount, group) > 0 &&
        sscanf(text, "%19" SCNu64 " %19" SCNu64, &quota, &period) == 2 && period > 0)
        return whole_cpus(quota, period);
    if (sysfile_number(&v1_quota, sysroot, "%s%s/cpu.cfs_quota_us", mount, group) == 0 &&
        sysfile_number(&v1_period, sysroot, "%s%s/cpu.cfs_period_us", mount, group) == 0 &&
        v1_quota > 0 && v1_period > 0)
        return whole_cpus((uint64_t)v1_quota, (uint64_t)v1_period);
    return UINT_MAX;
}

/* From the group up to the mount point. In a container the group's path may be the host's and lead
 * nowhere below our mount: the levels that are missing do not bound, the mount point still does. */
static unsigned tightest(const char *sysroot, const char *mount, char *group)
{
    if (group[0] != '/' || !group[1] || strstr(group, "/.."))
        group[0] = '\0'; /* the mount point, or outside of our cgroup namespace */
    unsigned least = UINT_MAX;
    for (;;) {
        unsigned quota = quota_of(sysroot, mount, group);
        least = quota < least ? quota : least;
        char *slash = strrchr(group, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

static bool names_cpu(const char *controllers)
{
    for (const char *c = controllers; *c; c += *c == ',') {
        size_t n = strcspn(c, ",");
        if (n == 3 && memcmp(c, "cpu", 3) == 0)
            return true;
        c += n;
    }
    return false;
}

/* One line of /proc/self/cgroup, "id:controllers:/group"; v2 has no controllers. */
static unsigned quota_of_line(const char *sysroot, char *line)
{
    static const char *const mounts[2][2] = {
        {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"},
        {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"},
    };
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return UINT_MAX;
    *group++ = '\0';
    bool v2 = !*++controllers;
    if (!v2 && !names_cpu(controllers))
        return UINT_MAX;
    unsigned least = UINT_MAX;
    for (size_t i = 0; i < ARRAY_LEN(mounts[0]); i++) {
        char copy[PATH_MAX];
        int n = snprintf(copy, sizeof copy, "%s", group);
        if (n < 0 || (size_t)n >= sizeof copy)
            break;
        unsigned quota = tightest(sysroot, mounts[v2][i], copy);
        least = quota < least ? quota : least;
    }
    return least;
}

unsigned cpus_quota(const char *sysroot)
{
    char text[16384];
    if (sysfile_read(text, sizeof text, sysroot, "/proc/self/cgroup") < 0)
        return UINT_MAX;
    unsigned least = UINT_MAX;
    char *rest;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        unsigned quota = quota_of_line(sysroot, line);
        least = quota < least ? quota : least;
    }
    return least;
}

unsigned cpus_allowed(unsigned quota)
{
    unsigned affinity = cpus_affinity();
    return affinity < quota ? affinity : quota;
}
