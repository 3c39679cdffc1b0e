/* SPDX-License-Identifier: MIT */
#include "nvml.h"

#include "nvml_lib.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define PROCESSES_MAX 1024 /* of one GPU */

static _Noreturn void fail(int fd, const char *what, const char *why)
{
    dprintf(fd, "fail %s: %s\n", what, why);
    _exit(1);
}

static void list(const struct nvml_lib *nvml, int fd, unsigned index, nvml_device device)
{
    static struct nvml_process found[PROCESSES_MAX];
    unsigned n = PROCESSES_MAX;
    int rc = nvml->processes(device, &n, found);
    if (rc != NVML_SUCCESS)
        fail(fd, "processes", nvml->error(rc));
    for (unsigned i = 0; i < n && i < PROCESSES_MAX; i++)
        dprintf(fd, "use %u %u %llu\n", index, found[i].pid, found[i].bytes);
}

static void begin(struct nvml_lib *nvml, const char *sysroot, int fd)
{
    if (!nvml_lib_open(nvml, sysroot))
        fail(fd, NVML_LIBRARY, "can't be used");
    int rc = nvml->init();
    if (rc != NVML_SUCCESS)
        fail(fd, "nvmlInit", nvml->error(rc));
}

_Noreturn void nvml_helper(int fd, const char *sysroot, const char *const *pci, unsigned n)
{
    struct nvml_lib nvml;
    begin(&nvml, sysroot, fd);
    for (;;) {
        for (unsigned i = 0; i < n; i++) {
            nvml_device device;
            int rc = nvml.by_pci(pci[i], &device);
            if (rc != NVML_SUCCESS)
                fail(fd, pci[i], nvml.error(rc));
            list(&nvml, fd, i, device);
        }
        if (dprintf(fd, "end\n") < 0)
            _exit(0);
        poll(NULL, 0, NVML_PAUSE_MS);
    }
}

_Noreturn void nvml_mig_helper(int fd, const char *sysroot, const char *const *name, unsigned n)
{
    struct nvml_lib nvml;
    begin(&nvml, sysroot, fd);
    if (!nvml.by_uuid || !nvml.gpu_of_mig || !nvml.pci)
        fail(fd, NVML_LIBRARY, "it is too old to know MIG");
    for (unsigned i = 0; i < n; i++) {
        nvml_device instance, device;
        struct nvml_pci pci;
        char address[NVML_ADDRESS_BYTES];
        if (nvml.by_uuid(name[i], &instance) != NVML_SUCCESS ||
            nvml.gpu_of_mig(instance, &device) != NVML_SUCCESS ||
            nvml.pci(device, &pci) != NVML_SUCCESS)
            continue;
        nvml_lib_address(&pci, address);
        dprintf(fd, "mig %u %s\n", i, address);
    }
    dprintf(fd, "end\n");
    _exit(0);
}
