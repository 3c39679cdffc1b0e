/* SPDX-License-Identifier: MIT */
/* How many CPUs the job may really use: the affinity mask, further bounded by the cgroup's
 * quota. */
#ifndef LAUNCH_AGENT_CPUS_H
#define LAUNCH_AGENT_CPUS_H

/* CPUs in the affinity mask of this thread, any size of mask; 1 if it can't be read. */
unsigned cpus_affinity(void);

/* The tightest CPU quota on the way from this process' cgroup to the root, v2 (cpu.max) or v1
 * (cpu.cfs_quota_us over cpu.cfs_period_us), rounded up to whole CPUs. UINT_MAX: none. `sysroot`
 * comes before /proc and /sys; whatever can't be read does not bound. */
unsigned cpus_quota(const char *sysroot);

/* At least 1: the smaller of affinity and quota. */
unsigned cpus_allowed(unsigned quota);

#endif
