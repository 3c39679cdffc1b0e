/* SPDX-License-Identifier: MIT */
/* The network device that is nearest to a PCI device. Knows no rank. */
#ifndef LAUNCH_AGENT_NIC_H
#define LAUNCH_AGENT_NIC_H

#include <stdbool.h>

#define NIC_NAME_BYTES 64

/* Below the most of the same bridges as the PCI device ("0000:18:00.0"), then on the same NUMA node, then first by name. RDMA
 * devices (mlx5_0), or, where there is none, network interfaces with hardware behind them (eth0). False: none. */
bool nic_nearest(const char *sysroot, const char *pci, char ret_name[NIC_NAME_BYTES]);

#endif
