/* SPDX-License-Identifier: MIT */
/* Which GPUs this server has and which of them the job may use, without NVML or CUDA: both cost
 * milliseconds to initialise, /proc and /dev know. LAUNCH_SYSROOT comes before every path. */
#ifndef LAUNCH_AGENT_GPU_H
#define LAUNCH_AGENT_GPU_H

#include "../proto/err.h"

#include <stdbool.h>
#include <stdint.h>

#define GPU_MAX 64
#define GPU_NAME_BYTES 80 /* an entry of CUDA_VISIBLE_DEVICES; the longest is a MIG name */

enum gpu_vendor { GPU_NONE, GPU_NVIDIA, GPU_AMD };

struct gpu {
    char pci[16];  /* "0000:18:00.0", lower case */
    char uuid[48]; /* "GPU-..."; empty when the driver does not say (device never opened) */
    int minor;     /* N of /dev/nvidiaN, or of /dev/dri/renderDN */
    int numa_node; /* -1: unknown */
};

/* The GPUs of the server this process can open: NVIDIA in PCI order; AMD in the order of the KFD
 * nodes, which is the one that HIP numbers. Read from what the driver says, untrusted: an entry
 * that makes no sense is left out. */
struct gpu_list {
    enum gpu_vendor vendor;
    unsigned n;
    struct gpu gpu[GPU_MAX];
};

/* Reads them. `sysroot`: "" for the real machine. Without a driver the list is empty and that is
 * no error. NVIDIA: /proc/driver/nvidia/gpus/<pci>/information whose /dev/nvidia<minor> exists;
 * AMD: the nodes of /sys/class/kfd/kfd/topology/nodes with a gpu_id, when there is no NVIDIA
 * GPU. A device that the driver excluded, or whose node this process has no permission for, is
 * left out. Errors: -E2BIG more than GPU_MAX; -errno of reading a directory. `list` is untouched
 * then. */
MUST_CHECK int gpu_list_read(struct gpu_list *list, const char *sysroot, struct err *err);

/* The GPUs a job may use: the list narrowed by CUDA_VISIBLE_DEVICES (or HIP_/ROCR_VISIBLE_DEVICES),
 * in the user's order and notation. */
struct gpu_set {
    unsigned n;
    /* What to write for one GPU: "3", "GPU-8f...", "MIG-...". */
    char entry[GPU_MAX][GPU_NAME_BYTES];
    int index[GPU_MAX];              /* in the gpu_list, -1: not known (MIG, UUID not told) */
    bool given;                      /* a variable bounded the choice: its notation is the user's */
    bool chosen;                     /* not what the variable says: the workers must be told */
    char stopped_at[GPU_NAME_BYTES]; /* entry at which CUDA would stop reading; empty: none */
};

/* `visible`: the variable's value, NULL if unset (then all of the list, by index). Every form
 * that CUDA accepts: indices, UUIDs and their prefixes, MIG names (MIG-<uuid>,
 * MIG-GPU-<uuid>/gi/ci), empty; blanks around an entry and a comma at the end are fine. Reading
 * stops, as in CUDA, at -1, at the words with which people say "no GPU" (none, void, NoDevFiles)
 * and at the first entry that names no device; that entry is in stopped_at. `variable`: its
 * name, for messages. Errors, -EINVAL: an entry named twice; an entry that has none of the forms
 * (junk, or nothing before a comma). -E2BIG: more than GPU_MAX. `set` is untouched then. */
MUST_CHECK int gpu_set_choose(struct gpu_set *set, const struct gpu_list *list,
                              const char *variable, const char *visible, struct err *err);

/* The variable that narrows the GPUs of that vendor ("CUDA_VISIBLE_DEVICES",
 * "HIP_VISIBLE_DEVICES"). */
const char *gpu_visible_variable(enum gpu_vendor vendor);

/* What moves data between them, for messages: "RCCL" for AMD, else "NCCL". */
const char *gpu_collectives(enum gpu_vendor vendor);

#endif
