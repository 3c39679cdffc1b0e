/* SPDX-License-Identifier: MIT */
/* AMD GPUs behind agent/gpu.h, and the steps both vendors share. Only gpu.c and kfd.c include
 * this. */
#ifndef LAUNCH_AGENT_KFD_H
#define LAUNCH_AGENT_KFD_H

#include "gpu.h"

/* Adds the GPUs of the KFD topology that this process can open, in node order. */
MUST_CHECK int kfd_list(struct gpu_list *list, const char *sysroot, struct err *err);

/* -E2BIG when the list is full. */
MUST_CHECK int gpu_list_add(struct gpu_list *list, const struct gpu *gpu, struct err *err);

/* Whether the device node <prefix><minor> is there and permits reading and writing (a plain file
 * will do below a sysroot). What a device cgroup forbids is not seen: only opening would tell. */
bool gpu_node_usable(const char *sysroot, const char *prefix, long long minor);

/* -1: unknown. */
int gpu_numa_node(const char *sysroot, const char *pci);

#endif
