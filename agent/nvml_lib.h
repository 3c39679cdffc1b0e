/* SPDX-License-Identifier: MIT */
/* The airlock of NVML: the library, loaded at run time, and what of its stable ABI we use. NVML takes 12 ms to begin, may
 * hang in the driver, and may crash: only helper processes call it (nvml.c, nvml_facts.c). */
#ifndef LAUNCH_AGENT_NVML_LIB_H
#define LAUNCH_AGENT_NVML_LIB_H

#include <stdbool.h>

#define NVML_LIBRARY "libnvidia-ml.so.1"
#define NVML_SUCCESS 0

typedef struct nvml_device_st *nvml_device;

struct nvml_process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
};

struct nvml_pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem_id;
    char address[32];
};

struct nvml_field {
    unsigned id, scope;
    long long at, latency;
    unsigned type;
    int result;
    union {
        unsigned u32;
        unsigned long long u64;
    } value;
};

struct nvml_lib {
    void *handle; /* of dlopen; kept for good */
    int (*init)(void);
    int (*by_pci)(const char *pci, nvml_device *device);
    int (*processes)(nvml_device device, unsigned *n, struct nvml_process *list);
    const char *(*error)(int result);
    /* Older libraries lack these, or one that knows no MIG: */
    int (*by_uuid)(const char *uuid, nvml_device *device);
    int (*gpu_of_mig)(nvml_device instance, nvml_device *device);
    int (*pci)(nvml_device device, struct nvml_pci *pci);
};

/* The library of the machine below sysroot: in "" the one that the loader finds, in any other <sysroot>/usr/lib's and none
 * else, so that a driver never tells about another machine. False: there is none, or one without the first four. */
bool nvml_lib_open(struct nvml_lib *lib, const char *sysroot);

/* As struct gpu has it: "0000:18:00.0". */
#define NVML_ADDRESS_BYTES 16
void nvml_lib_address(const struct nvml_pci *pci, char ret[NVML_ADDRESS_BYTES]);

#endif
