/* SPDX-License-Identifier: MIT */
/* The server as one picture: GPUs, NICs, the PCIe trees they hang in, NUMA nodes, links between GPUs. What /sys knows is
 * read here, links and health come from NVML or KFD; all is joined by PCI address, never by index. */
#ifndef LAUNCH_AGENT_TOPOLOGY_H
#define LAUNCH_AGENT_TOPOLOGY_H

#include "../proto/err.h"
#include "gpu.h"
#include "nvml_facts.h"
#include "pci.h"

#define TOPOLOGY_NICS_MAX 64
#define TOPOLOGY_NODES_MAX 128

struct topology_node {
    int id;      /* the kernel's number */
    int package; /* of its first CPU; -1: it has none */
    unsigned cpus_n;
    char cpus[PCI_CPUS_BYTES]; /* "0-55,112-167"; empty: a node of memory only */
    uint64_t memory_bytes;
};

struct topology_gpu {
    struct pci_device pci;
    char name[96];
    struct pci_link now, most;            /* most: from the driver where it tells, else from /sys */
    char cpus[PCI_CPUS_BYTES], nodes[64]; /* affinity, as nvidia-smi tells it; empty: not told */
};

struct topology_nic {
    struct pci_device pci;
    char name[32];   /* "mlx5_0", or "eth0" of a NIC without RDMA */
    char netdev[32]; /* its network device; empty: none */
    bool rdma, down; /* down: the port has no link */
    unsigned mbits;  /* 0: not told */
};

struct topology {
    const char *sysroot;  /* borrowed */
    struct gpu_list list; /* what is asked for; gpu[i] below is list.gpu[i] */
    struct topology_gpu gpu[GPU_MAX];
    struct nvml_facts *nvml; /* owned; NULL: no NVIDIA GPU, or it was not asked at all */
    struct topology_nic nic[TOPOLOGY_NICS_MAX]; /* those with RDMA first, each kind by name */
    unsigned nics_n, rdma_n;
    struct topology_node node[TOPOLOGY_NODES_MAX];
    unsigned nodes_n, packages_n, cpus_n;
    char cpu_vendor[32], cpu_name[96];
    unsigned cpu_family, cpu_model;
    char driver[32]; /* version of the NVIDIA driver; empty: not told */
    /* Links between GPUs i and j: NVLinks, or 1 for xGMI; MB/s of one of them (0: not told). */
    uint8_t links[GPU_MAX][GPU_MAX];
    unsigned link_mbps[GPU_MAX][GPU_MAX];
};

/* Reads it below sysroot, which must outlive it. Of NVML only what is wanted (NVML_ALL or a part), and nothing at all
 * where /sys knows as much; `nvml_limit_ms`: how long it may take. Errors: those of gpu_list_read(); -ENOMEM. */
MUST_CHECK int topology_read(struct topology **ret, const char *sysroot, unsigned want,
                             unsigned nvml_limit_ms, struct err *err);

/* NULL is fine. */
void topology_free(struct topology *t);

/* What NVML tells of GPU i; NULL: nothing. */
const struct nvml_gpu *topology_nvml(const struct topology *t, unsigned i);

/* Whether a GPU's name has one of the parts ("A100|H200"), with no letter or digit around it: "B200" is not in "GB200". */
bool topology_is_model(const char *name, const char *parts);

/* Reads a bridge of the PCI tree: for those few who show it. */
void topology_bridge(const struct topology *t, struct pci_device *bridge, const char *address);

/* How far two GPUs are from each other over PCIe: as NVML has it, else from the PCI tree. */
enum pci_near topology_near(const struct topology *t, unsigned i, unsigned j);

/* A cell of the matrix: "X", "NV18", "XGMI", "PIX", ... Devices are numbered GPUs first, then the NICs with RDMA. */
void topology_cell(const struct topology *t, unsigned a, unsigned b, char ret[8]);

/* The RDMA NIC nearest to GPU i whose port is up (of several, one for each GPU as far as they go); -1: there is none. */
int topology_nearest_nic(const struct topology *t, unsigned i);

#endif
