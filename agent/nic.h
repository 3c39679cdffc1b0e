/* SPDX-License-Identifier: MIT */
/* The network cards for the picture of the server. */
#ifndef LAUNCH_AGENT_NIC_H
#define LAUNCH_AGENT_NIC_H

#include "topology.h"

/* Fills nic, nics_n and rdma_n: every RDMA device, then every network device of a PCI card without RDMA. At most
 * TOPOLOGY_NICS_MAX. */
void nic_read_all(struct topology *t, const char *sysroot);

#endif
