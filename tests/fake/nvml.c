/* SPDX-License-Identifier: MIT */
/* The few NVML calls a GPU list needs, for machines without a driver. Handles are index + 1.
 *
 *   FAKE_GPUS=N         number of devices, 8 if unset, whatever CUDA_VISIBLE_DEVICES says
 *   FAKE_GPU_NAME=text  model name of all of them
 *   FAKE_NVML_FAIL=N    nvmlInit fails with that code (9: driver not loaded)
 *   FAKE_NVML_HANG=1    nvmlInit never comes back
 *   FAKE_NVML_CRASH=1   nvmlInit kills the process
 *   FAKE_NVML_USE=file  compute processes, read at every call: lines "device pid bytes"
 *   FAKE_NVML_LOST=N    device N has fallen off the bus
 *   FAKE_NVML_MIG="N MIG-uuid"  device N has that MIG instance
 *   FAKE_NVML_MACHINE=file  the devices of a described machine, with their "process" lines (nvml_machine.c) */
#include "nvml_machine.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIG_FIRST 1000 /* handles of instances */
#define BUS_FIRST 0x10 /* bus number of device 0, as in the fake CUDA runtime */

/* NVML's numbers and layout. */
enum nvml_return {
    NVML_SUCCESS = 0,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_GPU_IS_LOST = 15
};

typedef void *nvml_device;

struct nvml_pci_info {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};

struct nvml_process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int result);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *device);
int nvmlDeviceGetName(nvml_device device, char *name, unsigned size);
int nvmlDeviceGetUUID(nvml_device device, char *uuid, unsigned size);
int nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci_info *pci);
int nvmlDeviceGetMinorNumber(nvml_device device, unsigned *minor);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, nvml_device *device);
int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *n,
                                            struct nvml_process *list);
int nvmlDeviceGetHandleByUUID(const char *uuid, nvml_device *device);
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvml_device mig, nvml_device *device);

static unsigned count_devices(void)
{
    const char *gpus = getenv("FAKE_GPUS");
    unsigned n;

    if (fake_machine(&n))
        return n;
    return gpus ? (unsigned)atoi(gpus) : 8;
}

static unsigned index_of(nvml_device device)
{
    return (unsigned)((uintptr_t)device - 1);
}

/* NULL: no machine is described. */
static struct fake_gpu *described(nvml_device device)
{
    unsigned n;
    struct fake_gpu *gpus = fake_machine(&n);
    return gpus && index_of(device) < n ? &gpus[index_of(device)] : NULL;
}

int nvmlInit_v2(void)
{
    const char *code = getenv("FAKE_NVML_FAIL");

    while (getenv("FAKE_NVML_HANG"))
        pause();
    if (getenv("FAKE_NVML_CRASH"))
        abort();
    return code ? atoi(code) : NVML_SUCCESS;
}

int nvmlShutdown(void)
{
    return NVML_SUCCESS;
}

const char *nvmlErrorString(int result)
{
    return result == NVML_SUCCESS                   ? "Success"
           : result == NVML_ERROR_INVALID_ARGUMENT  ? "Invalid Argument"
           : result == NVML_ERROR_DRIVER_NOT_LOADED ? "Driver Not Loaded"
           : result == NVML_ERROR_GPU_IS_LOST       ? "GPU is lost"
                                                    : "Unknown Error";
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = count_devices();
    return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *device)
{
    if (index >= count_devices())
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = (nvml_device)(uintptr_t)(index + 1);
    return NVML_SUCCESS;
}

int nvmlDeviceGetName(nvml_device device, char *name, unsigned size)
{
    const char *text = getenv("FAKE_GPU_NAME");

    if (described(device))
        text = described(device)->name;
    snprintf(name, size, "%s", text ? text : "Fake GPU");
    return NVML_SUCCESS;
}

int nvmlDeviceGetUUID(nvml_device device, char *uuid, unsigned size)
{
    if (described(device)) {
        snprintf(uuid, size, "%s", described(device)->uuid);
        return NVML_SUCCESS;
    }
    snprintf(uuid, size, "GPU-fa4e0000-0000-4000-8000-%012x", index_of(device));
    return NVML_SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci_info *pci)
{
    *pci = (struct nvml_pci_info){.bus = BUS_FIRST + index_of(device)};
    if (described(device)) {
        sscanf(described(device)->bus, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
        snprintf(pci->bus_id, sizeof(pci->bus_id), "%08X:%02X:%02X.0", pci->domain, pci->bus,
                 pci->device);
        return NVML_SUCCESS;
    }
    snprintf(pci->bus_id_legacy, sizeof(pci->bus_id_legacy), "0000:%02X:00.0", pci->bus);
    snprintf(pci->bus_id, sizeof(pci->bus_id), "00000000:%02X:00.0", pci->bus);
    return NVML_SUCCESS;
}

int nvmlDeviceGetMinorNumber(nvml_device device, unsigned *minor)
{
    *minor = described(device) ? described(device)->minor : index_of(device);
    return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, nvml_device *device)
{
    const char *lost = getenv("FAKE_NVML_LOST");
    unsigned domain, bus, n;
    struct fake_gpu *gpus = fake_machine(&n);

    for (unsigned i = 0; gpus && i < n; i++)
        if (strcmp(gpus[i].bus, pci) == 0)
            return lost && (unsigned)atoi(lost) == i ? NVML_ERROR_GPU_IS_LOST
                                                     : nvmlDeviceGetHandleByIndex_v2(i, device);
    if (gpus)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (sscanf(pci, "%x:%x:", &domain, &bus) != 2 || bus < BUS_FIRST)
        return NVML_ERROR_INVALID_ARGUMENT;
    return nvmlDeviceGetHandleByIndex_v2(bus - BUS_FIRST, device);
}

int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *n,
                                            struct nvml_process *list)
{
    const char *name = getenv("FAKE_NVML_USE"), *machine = getenv("FAKE_NVML_MACHINE");
    FILE *file = name ? fopen(name, "r") : machine ? fopen(machine, "r") : NULL;
    unsigned room = *n, index, pid;
    unsigned long long bytes;
    char line[2048];

    *n = 0;
    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "process %u %u %llu", &index, &pid, &bytes) != 3 &&
            sscanf(line, "%u %u %llu", &index, &pid, &bytes) != 3)
            continue;
        if (index != index_of(device))
            continue;
        if (*n < room)
            list[*n] = (struct nvml_process){.pid = pid, .bytes = bytes};
        ++*n;
    }
    if (file)
        fclose(file);
    return *n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, nvml_device *device)
{
    const char *mig = getenv("FAKE_NVML_MIG");
    unsigned index;
    char name[96];

    if (!mig || sscanf(mig, "%u %95s", &index, name) != 2 || strcmp(name, uuid) != 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = (nvml_device)(uintptr_t)(MIG_FIRST + index);
    return NVML_SUCCESS;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvml_device mig, nvml_device *device)
{
    if ((uintptr_t)mig < MIG_FIRST)
        return NVML_ERROR_INVALID_ARGUMENT;
    return nvmlDeviceGetHandleByIndex_v2((unsigned)((uintptr_t)mig - MIG_FIRST), device);
}
