/* SPDX-License-Identifier: MIT */
/* NUMA nodes and packages for the picture of the server. */
#ifndef LAUNCH_AGENT_NUMA_H
#define LAUNCH_AGENT_NUMA_H

#include "topology.h"

/* Fills node, nodes_n, packages_n and cpus_n. A kernel without NUMA is one node with all CPUs. */
void numa_read(struct topology *t, const char *sysroot);

#endif
