/* SPDX-License-Identifier: MIT */
/* NUMA nodes and packages for the picture of the server, and lists of CPUs ("0-3,8"). */
#ifndef LAUNCH_AGENT_NUMA_H
#define LAUNCH_AGENT_NUMA_H

#include "topology.h"

/* Fills node, nodes_n, packages_n and cpus_n. A kernel without NUMA is one node with all CPUs. */
void numa_read(struct topology *t, const char *sysroot);

/* The next range of a list: advances *at. False: no more, or nonsense. */
bool numa_next_range(const char **at, unsigned *ret_first, unsigned *ret_last);

/* A mask as a list. A mask of zeroes leaves the text alone. */
void numa_list_of_mask(char *text, size_t bytes, const unsigned long *mask, unsigned words);

#endif
