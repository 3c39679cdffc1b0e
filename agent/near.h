/* SPDX-License-Identifier: MIT */
/* How far GPUs are from one another, as far as /sys tells: over the same PCIe switch, the same root complex, the same
 * memory node, or farther. Knows no NVLink, which NVML alone could tell. */
#ifndef LAUNCH_AGENT_NEAR_H
#define LAUNCH_AGENT_NEAR_H

#include "gpu.h"

enum near { NEAR_SELF, NEAR_SWITCH, NEAR_ROOT, NEAR_NODE, NEAR_SYSTEM };

struct distances {
    unsigned n;
    uint8_t at[GPU_MAX][GPU_MAX]; /* enum near */
};

/* Between all GPUs of the list. What /sys does not tell is NEAR_SYSTEM. */
void near_read(struct distances *d, const char *sysroot, const struct gpu_list *list);

#endif
