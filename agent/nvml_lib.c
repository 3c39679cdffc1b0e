/* SPDX-License-Identifier: MIT */
/* See nvml_lib.h. */
#include "nvml_lib.h"

#include <dlfcn.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>

bool nvml_lib_open(struct nvml_lib *lib, const char *sysroot)
{
    char path[PATH_MAX];
    int n =
        snprintf(path, sizeof path, "%s%s%s", sysroot, *sysroot ? "/usr/lib/" : "", NVML_LIBRARY);
    if (n < 0 || (size_t)n >= sizeof path)
        return false;
    *lib = (struct nvml_lib){.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (!lib->handle)
        return false;
    *(void **)&lib->init = dlsym(lib->handle, "nvmlInit_v2");
    *(void **)&lib->by_pci = dlsym(lib->handle, "nvmlDeviceGetHandleByPciBusId_v2");
    *(void **)&lib->error = dlsym(lib->handle, "nvmlErrorString");
    *(void **)&lib->processes = dlsym(lib->handle, "nvmlDeviceGetComputeRunningProcesses_v3");
    if (!lib->processes) /* the same call under its name of driver 450 */
        *(void **)&lib->processes = dlsym(lib->handle, "nvmlDeviceGetComputeRunningProcesses_v2");
    *(void **)&lib->by_uuid = dlsym(lib->handle, "nvmlDeviceGetHandleByUUID");
    *(void **)&lib->gpu_of_mig = dlsym(lib->handle, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle");
    *(void **)&lib->pci = dlsym(lib->handle, "nvmlDeviceGetPciInfo_v3");
    return lib->init && lib->by_pci && lib->error && lib->processes;
}

void nvml_lib_address(const struct nvml_pci *pci, char ret[NVML_ADDRESS_BYTES])
{
    snprintf(ret, NVML_ADDRESS_BYTES, "%04x:%02x:%02x.0", pci->domain & 0xffffffu, pci->bus & 0xffu,
             pci->device & 0xffu);
}
