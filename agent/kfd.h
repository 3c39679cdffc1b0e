/* SPDX-License-Identifier: MIT */
/* AMD GPUs behind agent/gpu.h and agent/topology.h, and the steps both vendors share. Only gpu.c,
 * kfd.c and topology.c include this. */
#ifndef LAUNCH_AGENT_KFD_H
#define LAUNCH_AGENT_KFD_H

#include "gpu.h"

/* Adds the GPUs of the KFD topology that this process can open, in node order. */
MUST_CHECK int kfd_list(struct gpu_list *list, const char *sysroot, struct err *err);

/* xGMI between the GPUs of the list: 1 in links[i][j], and MB/s of the link. What can't be read is
 * no link. */
void kfd_links(const struct gpu_list *list, const char *sysroot, uint8_t links[GPU_MAX][GPU_MAX],
               unsigned mbps[GPU_MAX][GPU_MAX]);

/* What people call the GPU: the board's name, else its architecture ("AMD GPU gfx942"). */
void kfd_name(char *name, size_t bytes, const char *sysroot, const char *pci);

/* -E2BIG when the list is full. */
MUST_CHECK int gpu_list_add(struct gpu_list *list, const struct gpu *gpu, struct err *err);

/* Whether the device node <prefix><minor> is there and permits reading and writing (a plain file
 * will do below a sysroot). What a device cgroup forbids is not seen: only opening would tell. */
bool gpu_node_usable(const char *sysroot, const char *prefix, long long minor);

#endif
