/* SPDX-License-Identifier: MIT */
/* A PCI device as /sys tells it, and how far two of them are from each other. Knows no GPU and no NIC. */
#ifndef LAUNCH_AGENT_PCI_H
#define LAUNCH_AGENT_PCI_H

#include "../proto/base.h"

#include <stdbool.h>
#include <stdint.h>

#define PCI_PATH_BYTES 256
#define PCI_CPUS_BYTES 256
#define PCI_ADDRESS_BYTES 16

/* The place of a link in its history: PCIe generation (0: not told) and lanes (0: not told). */
struct pci_link {
    unsigned gen, width;
};

struct pci_device {
    char address[PCI_ADDRESS_BYTES]; /* "0000:18:00.0", lower case */
    char path[PCI_PATH_BYTES]; /* "pci0000:15/0000:15:01.0/.../0000:18:00.0"; empty: not told */
    char cpus[PCI_CPUS_BYTES]; /* "0-55,112-167"; empty: not told */
    int numa_node;             /* -1: not told */
    struct pci_link now, most;
    unsigned class_code, vendor, device, subsystem_vendor, subsystem_device;
};

/* nvidia-smi's levels, near first. */
enum pci_near { PCI_SELF, PCI_PIX, PCI_PXB, PCI_PHB, PCI_NODE, PCI_SYS, PCI_NEAR_N };

/* The NUMA node of a device; -1: not told. */
int pci_numa_node(const char *sysroot, const char *address);

/* Only where it hangs: address and path. */
void pci_read_place(struct pci_device *device, const char *sysroot, const char *address);

/* Reads what there is below /sys/bus/pci/devices/<address>. What is not told stays 0, empty or -1. */
void pci_read(struct pci_device *device, const char *sysroot, const char *address);

/* The last PCI address in a path of /sys ("…/0000:00:03.0/virtio0"), and what is behind it. False: there is none. */
bool pci_address_in(const char *path, char ret_address[PCI_ADDRESS_BYTES], const char **ret_rest);

/* How far a is from b. A node that is not told is no node of the other's. */
enum pci_near pci_near(const struct pci_device *a, const struct pci_device *b);

/* The bridges on the way down, the host bridge first and the device last. Returns how many; at most max are given. */
unsigned pci_steps(const struct pci_device *device, const char *step[], size_t bytes[],
                   unsigned max);

/* MB/s each way that such a link carries at best; 0: not known. */
unsigned pci_mbps(struct pci_link link);

const char *pci_near_name(enum pci_near near);

#endif
