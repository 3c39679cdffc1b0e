/* SPDX-License-Identifier: MIT */
/* Pure: what a fault that the driver tells of a GPU means for a job. One table; tests walk it. */
#ifndef LAUNCH_AGENT_GPU_FAULT_H
#define LAUNCH_AGENT_GPU_FAULT_H

#include <stddef.h>
#include <stdint.h>

enum gpu_fault_source {
    GPU_FAULT_XID,      /* the driver's error number, from the kernel's log or from NVML */
    GPU_FAULT_EVENT,    /* another event of NVML: its bit (nvmlEventType...) */
    GPU_FAULT_RECOVERY, /* what the driver wants done (nvmlDeviceGpuRecoveryAction_t) */
    GPU_FAULT_SOURCES_N
};

#define GPU_FAULT_UNREACHABLE 0x4000u /* the GPU_FAULT_EVENT of a GPU that can't be reached */

/* The worst last. */
enum gpu_fault_class {
    GPU_FAULT_TRANSIENT, /* over, or of no consequence for who comes next: the rank is started again */
    GPU_FAULT_APPLICATION, /* the program's own: likewise */
    GPU_FAULT_GPU,         /* nobody shall use the GPU before it has been reset or replaced */
    GPU_FAULT_NODE,        /* ... before the server has been booted again */
    GPU_FAULT_CLASSES_N
};

struct gpu_fault {
    enum gpu_fault_source source;
    uint32_t code;
};

/* An Xid or event that is not in the table is transient, an action fatal: something is to be done, whatever it is. */
enum gpu_fault_class gpu_fault_class(struct gpu_fault fault);

/* A phrase: "access to GPU memory that is not mapped". NULL: not in the table. */
const char *gpu_fault_meaning(struct gpu_fault fault);

/* "Xid 79 (the GPU has fallen off the bus)". Returns text. */
#define GPU_FAULT_TEXT_BYTES 120
const char *gpu_fault_text(struct gpu_fault fault, char text[GPU_FAULT_TEXT_BYTES]);

#endif
