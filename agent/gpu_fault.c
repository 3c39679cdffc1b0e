/* SPDX-License-Identifier: MIT */
#include "gpu_fault.h"

#include "../proto/base.h"

#include <stdio.h>

/* NVIDIA's public catalogue of Xid errors, read for this: does the next program on that GPU have to fear it? Of 63 and 94
 * the driver has put the bad memory out of use, so that who is started again is safe; after 48, 64, 95 and 140 it may be
 * handed out again. 74, 119, 120: nothing on that GPU works as it should before a reset. */
static const struct {
    struct gpu_fault fault;
    enum gpu_fault_class class;
    const char *meaning;
} TABLE[] = {
    {{GPU_FAULT_XID, 13},
     GPU_FAULT_APPLICATION,
     "an exception in a kernel: out-of-range access or illegal instruction"},
    {{GPU_FAULT_XID, 31}, GPU_FAULT_APPLICATION, "access to GPU memory that is not mapped"},
    {{GPU_FAULT_XID, 32}, GPU_FAULT_APPLICATION, "commands to the GPU that make no sense"},
    {{GPU_FAULT_XID, 43}, GPU_FAULT_APPLICATION, "the GPU stopped working on this program"},
    {{GPU_FAULT_XID, 45}, GPU_FAULT_APPLICATION, "clean-up after another error"},
    {{GPU_FAULT_XID, 48}, GPU_FAULT_GPU, "an uncorrectable memory error"},
    {{GPU_FAULT_XID, 62}, GPU_FAULT_GPU, "the GPU's power controller has stopped"},
    {{GPU_FAULT_XID, 63}, GPU_FAULT_TRANSIENT, "memory pages or rows are being retired"},
    {{GPU_FAULT_XID, 64}, GPU_FAULT_GPU, "memory pages or rows could not be retired"},
    {{GPU_FAULT_XID, 69}, GPU_FAULT_APPLICATION, "a command that the GPU's engine does not take"},
    {{GPU_FAULT_XID, 74}, GPU_FAULT_GPU, "an NVLink error"},
    {{GPU_FAULT_XID, 79}, GPU_FAULT_NODE, "the GPU has fallen off the bus"},
    {{GPU_FAULT_XID, 92}, GPU_FAULT_TRANSIENT, "many correctable memory errors"},
    {{GPU_FAULT_XID, 94}, GPU_FAULT_TRANSIENT, "a contained memory error"},
    {{GPU_FAULT_XID, 95}, GPU_FAULT_GPU, "an uncontained memory error"},
    {{GPU_FAULT_XID, 119}, GPU_FAULT_GPU, "the GPU's system processor does not answer"},
    {{GPU_FAULT_XID, 120}, GPU_FAULT_GPU, "an error of the GPU's system processor"},
    {{GPU_FAULT_XID, 140}, GPU_FAULT_GPU, "a memory error that was not recovered from"},
    {{GPU_FAULT_XID, 145}, GPU_FAULT_TRANSIENT, "an NVLink error"},
    {{GPU_FAULT_XID, 149}, GPU_FAULT_TRANSIENT, "an NVLink error"},
    {{GPU_FAULT_EVENT, 0x2}, GPU_FAULT_GPU, "a double-bit memory error"},
    {{GPU_FAULT_EVENT, 0x400}, GPU_FAULT_TRANSIENT, "memory pages or rows are being retired"},
    {{GPU_FAULT_EVENT, 0x800}, GPU_FAULT_GPU, "memory pages or rows could not be retired"},
    {{GPU_FAULT_EVENT, 0x1000}, GPU_FAULT_TRANSIENT, "a contained memory error"},
    {{GPU_FAULT_EVENT, 0x2000}, GPU_FAULT_GPU, "an uncontained memory error"},
    {{GPU_FAULT_EVENT, GPU_FAULT_UNREACHABLE}, GPU_FAULT_NODE, "the GPU can't be reached"},
    {{GPU_FAULT_RECOVERY, 0}, GPU_FAULT_TRANSIENT, "nothing is to be done"},
    {{GPU_FAULT_RECOVERY, 1}, GPU_FAULT_GPU, "the GPU is to be reset"},
    {{GPU_FAULT_RECOVERY, 2}, GPU_FAULT_NODE, "the server is to be booted again"},
    {{GPU_FAULT_RECOVERY, 3}, GPU_FAULT_GPU, "no traffic to its neighbours is to go on"},
    {{GPU_FAULT_RECOVERY, 4}, GPU_FAULT_GPU, "the GPU is to be emptied and reset"},
    {{GPU_FAULT_RECOVERY, 5}, GPU_FAULT_NODE, "its IMEX domain is to be recovered"},
    {{GPU_FAULT_RECOVERY, 6}, GPU_FAULT_GPU, "its PCIe bus is to be reset"},
    {{GPU_FAULT_RECOVERY, 7}, GPU_FAULT_NODE, "the server is to be booted again"},
};

static size_t find(struct gpu_fault fault)
{
    size_t i = 0;
    while (i < ARRAY_LEN(TABLE) &&
           (TABLE[i].fault.source != fault.source || TABLE[i].fault.code != fault.code))
        i++;
    return i;
}

enum gpu_fault_class gpu_fault_class(struct gpu_fault fault)
{
    size_t i = find(fault);
    if (i < ARRAY_LEN(TABLE))
        return TABLE[i].class;
    return fault.source == GPU_FAULT_RECOVERY ? GPU_FAULT_GPU : GPU_FAULT_TRANSIENT;
}

const char *gpu_fault_meaning(struct gpu_fault fault)
{
    size_t i = find(fault);
    return i < ARRAY_LEN(TABLE) ? TABLE[i].meaning : NULL;
}

const char *gpu_fault_text(struct gpu_fault fault, char text[GPU_FAULT_TEXT_BYTES])
{
    static const char *const named[GPU_FAULT_SOURCES_N] = {
        [GPU_FAULT_XID] = "Xid %u",
        [GPU_FAULT_EVENT] = "NVML event 0x%x",
        [GPU_FAULT_RECOVERY] = "recovery action %u",
    };
    const char *meaning = gpu_fault_meaning(fault);
    int n = snprintf(text, GPU_FAULT_TEXT_BYTES, named[fault.source], fault.code);
    if (meaning && n > 0)
        snprintf(text + n, GPU_FAULT_TEXT_BYTES - (size_t)n, " (%s)", meaning);
    return text;
}
