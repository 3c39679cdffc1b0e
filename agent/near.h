/* SPDX-License-Identifier: MIT */
/* How far GPUs are from one another, as far as /sys tells: enum pci_near. Knows no NVLink, which NVML alone could tell. */
#ifndef LAUNCH_AGENT_NEAR_H
#define LAUNCH_AGENT_NEAR_H

#include "gpu.h"
#include "pci.h"

struct distances {
    unsigned n;
    uint8_t at[GPU_MAX][GPU_MAX]; /* enum pci_near */
};

/* Between all GPUs of the list. What /sys does not tell is PCI_SYS. */
void near_read(struct distances *d, const char *sysroot, const struct gpu_list *list);

#endif
