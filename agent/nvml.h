/* SPDX-License-Identifier: MIT */
/* Which processes use which GPU, again and again, and what is wrong with GPUs, from helper processes that talk through a
 * pipe; see gpu_wait.c and gpu_watch.c for the other ends. */
#ifndef LAUNCH_AGENT_NVML_H
#define LAUNCH_AGENT_NVML_H

#include <stdint.h>

#define NVML_PAUSE_MS 20 /* between two lists */

/* In the helper process; never returns to the caller. Writes to fd, again and again until it is killed or nobody reads,
 *     "use <index> <pid> <bytes>\n"   for every compute process on the GPU at pci[index]
 *     "end\n"                         after each list
 * or "fail <text>\n", and exits. */
_Noreturn void nvml_helper(int fd, const char *sysroot, const char *const *pci, unsigned n);

/* Likewise, once:
 *     "mig <index> <PCI address>\n"  for every name ("MIG-<uuid>") that is an instance of the GPU there
 *     "end\n" */
_Noreturn void nvml_mig_helper(int fd, const char *sysroot, const char *const *name, unsigned n);

/* nvml_events.c. What is wrong with a GPU, as soon as NVML tells; read as it is, in whole ones. */
struct nvml_news {
    uint32_t gpu;          /* index of pci */
    uint32_t source, code; /* struct gpu_fault */
};

/* Likewise: a struct nvml_news for every event, and for every recovery action but none that a GPU has now. Exits if NVML can't
 * be used. */
_Noreturn void nvml_event_helper(int fd, const char *sysroot, const char *const *pci, unsigned n);

#endif
