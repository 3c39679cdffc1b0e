/* SPDX-License-Identifier: MIT */
#include "nvml.h"

#include "../proto/base.h"

#include <dlfcn.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libnvidia-ml.so.1"
#define PROCESSES_MAX 1024 /* of one GPU */
#define NVML_SUCCESS 0

/* Of NVML's stable ABI. */
typedef struct nvml_device_st *nvml_device;

struct nvml_process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
};

struct nvml {
    int (*init)(void);
    int (*by_pci)(const char *pci, nvml_device *device);
    int (*processes)(nvml_device device, unsigned *n, struct nvml_process *list);
    const char *(*error)(int result);
};

static bool open_library(struct nvml *nvml)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    *(void **)&nvml->init = dlsym(library, "nvmlInit_v2");
    *(void **)&nvml->by_pci = dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
    *(void **)&nvml->error = dlsym(library, "nvmlErrorString");
    *(void **)&nvml->processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
    if (!nvml->processes) /* the same call under its name of driver 450 */
        *(void **)&nvml->processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v2");
    return nvml->init && nvml->by_pci && nvml->error && nvml->processes;
}

static _Noreturn void fail(int fd, const char *what, const char *why)
{
    dprintf(fd, "fail %s: %s\n", what, why);
    _exit(1);
}

static void list(const struct nvml *nvml, int fd, unsigned index, nvml_device device)
{
    static struct nvml_process found[PROCESSES_MAX];
    unsigned n = PROCESSES_MAX;
    int rc = nvml->processes(device, &n, found);
    if (rc != NVML_SUCCESS)
        fail(fd, "processes", nvml->error(rc));
    for (unsigned i = 0; i < n && i < PROCESSES_MAX; i++)
        dprintf(fd, "use %u %u %llu\n", index, found[i].pid, found[i].bytes);
}

_Noreturn void nvml_helper(int fd, const char *const *pci, unsigned n)
{
    struct nvml nvml = {0};
    if (!open_library(&nvml))
        fail(fd, LIBRARY, "can't be used");
    int rc = nvml.init();
    if (rc != NVML_SUCCESS)
        fail(fd, "nvmlInit", nvml.error(rc));
    for (;;) {
        for (unsigned i = 0; i < n; i++) {
            nvml_device device;
            rc = nvml.by_pci(pci[i], &device);
            if (rc != NVML_SUCCESS)
                fail(fd, pci[i], nvml.error(rc));
            list(&nvml, fd, i, device);
        }
        if (dprintf(fd, "end\n") < 0)
            _exit(0);
        poll(NULL, 0, NVML_PAUSE_MS);
    }
}
