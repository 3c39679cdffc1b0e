/* SPDX-License-Identifier: MIT */
/* Is the driver there, whole, and ours to use. */
#include "checks.h"

#include "../kfd.h"
#include "../sysfile.h"
#include "../topo.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define KFD_NODES_MAX 256

/* The driver has it, or the list that jobs get theirs from. */
static bool is_known(const struct doctor *d, const char *address)
{
    char path[PATH_MAX];
    for (unsigned i = 0; i < d->t->list.n; i++)
        if (strcmp(d->t->list.gpu[i].pci, address) == 0)
            return true;
    snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus/%s", d->sysroot, address);
    return access(path, F_OK) == 0;
}

/* Of the vendor, or of any where the machine keeps none for itself. */
static void list_lent(const struct doctor *d, struct doctor_list *lent)
{
    for (unsigned i = 0; i < d->pci.gpus_n; i++)
        if (d->pci.gpu[i].lent && (!d->vendor || d->pci.gpu[i].vendor == d->vendor))
            doctor_list_add(lent, "%s", d->pci.gpu[i].address);
}

void driver_check_gpus(struct doctor *d)
{
    const char *wanted = d->vendor == GPU_AMD ? "amdgpu" : "nvidia";
    struct doctor_list lent = {0}, lost = {0};
    char module[64];
    list_lent(d, &lent);
    if (d->vendor == GPU_NONE && lent.n) {
        doctor_ok(d, "all are given to virtual machines (vfio-pci): %s", lent.text);
        return;
    }
    if (d->vendor == GPU_NONE) {
        doctor_ok(d, "no NVIDIA or AMD GPU below /sys/bus/pci/devices, /proc/driver/nvidia/gpus or "
                     "/sys/class/kfd");
        return;
    }
    for (unsigned i = 0; i < d->pci.gpus_n; i++) {
        const char *address = d->pci.gpu[i].address;
        if (d->pci.gpu[i].vendor != d->vendor || d->pci.gpu[i].lent)
            continue;
        doctor_module(d, address, module);
        if (*module && strcmp(module, wanted) != 0)
            doctor_list_add(&lost, "%s has %s", address, module);
        else if (!*module && !is_known(d, address))
            doctor_list_add(&lost, "%s has no driver", address);
    }
    if (lost.n)
        doctor_find(d, VERDICT_BROKEN, "no program can compute on these GPUs",
                    "install and load the vendor's driver; keep nouveau out (modprobe.d: blacklist "
                    "nouveau), then reboot",
                    "/sys/bus/pci/devices/*/driver: %s", lost.text);
    if (d->t->list.n == 0)
        doctor_find(d, VERDICT_BROKEN, "jobs run without a GPU here",
                    "see the findings below; in a container: start it with its GPUs (docker run "
                    "--gpus all)",
                    "%u GPUs on the PCI bus, none that this process may use", d->pci.gpus_n);
    else
        doctor_ok(d, "%u that this process may use%s%s", d->t->list.n,
                  lent.n ? "; given to virtual machines (vfio-pci): " : "", lent.text);
}

/* "580.159.04" of ".../libnvidia-ml.so.580.159.04"; "": the name does not tell. */
static const char *version_of(const char *library)
{
    const char *so = strstr(library, ".so.");
    return so && strchr(so + 4, '.') ? so + 4 : "";
}

void driver_check_version(struct doctor *d)
{
    const char *driver = d->t->driver;
    const struct nvml_facts *nvml = d->t->nvml;
    const char *library = nvml ? nvml->library : "", *version = version_of(library);
    if (!*driver)
        doctor_find(d, VERDICT_BROKEN, "CUDA finds no device",
                    "install NVIDIA's driver and load it (modprobe nvidia); dmesg tells why it did "
                    "not load",
                    "/proc/driver/nvidia/version can't be read: the driver is not loaded");
    else if (*version && strcmp(version, driver) != 0)
        doctor_find(d, VERDICT_BROKEN,
                    "NVML fails with \"Driver/library version mismatch\", and so may CUDA",
                    "reboot, or reload the modules: the driver was replaced while it was loaded",
                    "/proc/driver/nvidia/version: %s, but %s", driver, library);
    else if (*version)
        doctor_ok(d, "/proc/driver/nvidia/version: %s; %s", driver, library);
    else
        doctor_ok(d, "/proc/driver/nvidia/version: %s", driver);
}

void driver_check_amd(struct doctor *d)
{
    char version[64];
    ssize_t n = sysfile_read(version, sizeof version, d->sysroot, "/sys/module/amdgpu/version");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/sys/module/amdgpu", d->sysroot);
    if (n > 0)
        doctor_ok(d, "/sys/module/amdgpu/version: %.*s", (int)strcspn(version, "\n"), version);
    else if (access(path, F_OK) == 0)
        doctor_ok(d, "/sys/module/amdgpu: the kernel's own");
    else
        doctor_find(d, VERDICT_BROKEN, "ROCm finds no device",
                    "load it: modprobe amdgpu; dmesg tells why it did not load",
                    "/sys/module/amdgpu is not there: the driver is not loaded");
}

/* ---- device nodes ---- */

/* Adds what is missing and what must not be opened for reading and writing. */
static bool node_there(const struct doctor *d, const char *name, struct doctor_list *missing,
                       struct doctor_list *denied)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", d->sysroot, name);
    if (access(path, R_OK | W_OK) == 0)
        return true;
    doctor_list_add(access(path, F_OK) < 0 ? missing : denied, "%s", name);
    return false;
}

/* The setuid program that makes /dev/nvidia-uvm for CUDA. */
static bool has_helper(const struct doctor *d)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/usr/bin/nvidia-modprobe", d->sysroot);
    return access(path, X_OK) == 0;
}

/* True: all is well. */
static bool say_nodes(struct doctor *d, const struct doctor_list *missing,
                      const struct doctor_list *denied, const char *remedy)
{
    if (missing->n)
        doctor_find(d, VERDICT_BROKEN, "programs can't open these GPUs",
                    "in a container: start it with its GPUs (docker run --gpus all, for AMD "
                    "--device /dev/kfd --device /dev/dri); else load the driver's modules",
                    "not there: %s", missing->text);
    if (denied->n)
        doctor_find(d, VERDICT_BROKEN, "programs of this user can't open these GPUs", remedy,
                    "no permission to read and write: %s", denied->text);
    return !missing->n && !denied->n;
}

static void list_nvidia_nodes(const struct doctor *d, struct doctor_list *missing,
                              struct doctor_list *denied)
{
    char name[64], text[4096], minor[16];
    node_there(d, "/dev/nvidiactl", missing, denied);
    for (unsigned i = 0; i < d->pci.gpus_n; i++)
        if (sysfile_read(text, sizeof text, d->sysroot, "/proc/driver/nvidia/gpus/%s/information",
                         d->pci.gpu[i].address) >= 0 &&
            sysfile_field(text, "Device Minor:", minor, sizeof minor)) {
            snprintf(name, sizeof name, "/dev/nvidia%lu", strtoul(minor, NULL, 10));
            node_there(d, name, missing, denied);
        }
}

void driver_check_nodes(struct doctor *d)
{
    struct doctor_list missing = {0}, denied = {0}, no_uvm = {0};
    if (!d->t->driver[0]) {
        doctor_blind(d, "the driver is not loaded");
        return;
    }
    list_nvidia_nodes(d, &missing, &denied);
    node_there(d, "/dev/nvidia-uvm", &no_uvm, &denied);
    bool helped = has_helper(d);
    if (no_uvm.n && !helped)
        doctor_find(d, VERDICT_BROKEN, "CUDA can't begin: cuInit() fails",
                    "modprobe nvidia-uvm and nvidia-modprobe -u -c 0, or pass the node to the "
                    "container (nvidia-container-toolkit does)",
                    "/dev/nvidia-uvm is not there, nor /usr/bin/nvidia-modprobe, which would make "
                    "it");
    if (!say_nodes(d, &missing, &denied,
                   "chmod 0666 them, or see NVreg_DeviceFileMode, NVreg_DeviceFileUID and "
                   "NVreg_DeviceFileGID of the nvidia module"))
        return;
    if (!no_uvm.n)
        doctor_ok(d, "/dev/nvidiactl, /dev/nvidia-uvm and the GPUs' may be opened");
    else if (helped)
        doctor_ok(d,
                  "/dev/nvidiactl and the GPUs' may be opened; /dev/nvidia-uvm is not there yet: "
                  "CUDA has /usr/bin/nvidia-modprobe make it");
}

void driver_check_amd_nodes(struct doctor *d)
{
    struct doctor_list missing = {0}, denied = {0};
    char name[64], text[4096], value[32];
    unsigned n = 0;
    node_there(d, "/dev/kfd", &missing, &denied);
    for (unsigned i = 0; i < KFD_NODES_MAX; i++) {
        if (sysfile_read(text, sizeof text, d->sysroot,
                         "/sys/class/kfd/kfd/topology/nodes/%u/properties", i) < 0)
            break;
        if (!sysfile_field(text, "drm_render_minor", value, sizeof value) ||
            strtoul(value, NULL, 10) == 0)
            continue;
        snprintf(name, sizeof name, "/dev/dri/renderD%lu", strtoul(value, NULL, 10));
        node_there(d, name, &missing, &denied);
        n++;
    }
    if (say_nodes(d, &missing, &denied, "add the user to the groups render and video"))
        doctor_ok(d, "/dev/kfd and %u of /dev/dri/renderD* may be opened", n);
}

/* ---- NVML, and what is visible ---- */

void driver_check_nvml(struct doctor *d)
{
    const struct nvml_facts *nvml = d->t->nvml;
    unsigned good = 0;
    if (d->t->list.n == 0) {
        doctor_blind(d, "there is no GPU that this process may use");
        return;
    }
    if (!nvml || !nvml->usable) {
        doctor_find(d, VERDICT_BROKEN,
                    "neither nvidia-smi nor NCCL can look at the GPUs; most checks here can't",
                    "compare the versions of driver and libnvidia-ml; in a container, start it "
                    "anew; dmesg tells if the driver is stuck, and then only a reboot helps",
                    "%s: %s", NVML_LIBRARY, nvml ? nvml->why : "no process for it");
        return;
    }
    for (unsigned i = 0; i < d->t->list.n; i++) {
        good += !nvml->gpu[i].error[0];
        if (nvml->gpu[i].error[0])
            doctor_find(d, VERDICT_BROKEN, "programs that use this GPU fail or hang",
                        "leave it out (CUDA_VISIBLE_DEVICES); reset it (nvidia-smi --gpu-reset) or "
                        "reboot; see the check xid",
                        "GPU %u (%s): NVML: %s", i, d->t->list.gpu[i].pci, nvml->gpu[i].error);
    }
    if (good == d->t->list.n)
        doctor_ok(d, "answers for %s",
                  topo_name_gpus(good == GPU_MAX ? UINT64_MAX : ((uint64_t)1 << good) - 1).text);
}

void driver_check_visible(struct doctor *d)
{
    struct err err;
    const char *name = gpu_visible_variable(d->vendor);
    const char *value = doctor_variable(d, name);
    if (!value) {
        doctor_ok(d, "%s is not set: all GPUs are seen", name);
        return;
    }
    AUTO_FREE struct gpu_set *set = malloc(sizeof *set);
    if (!set)
        doctor_blind(d, "no memory");
    else if (gpu_set_choose(set, &d->t->list, name, value, &err) < 0)
        doctor_find(d, VERDICT_BROKEN, "programs see other GPUs than meant, or none",
                    "correct the variable", "%s", err.text);
    else if (set->n < d->t->list.n && set->stopped_at[0])
        doctor_find(d, set->n ? VERDICT_WARNING : VERDICT_BROKEN,
                    "programs stop reading there: they see fewer GPUs than named",
                    "correct the variable", "%s=%s: %u GPUs, up to \"%s\"", name, value, set->n,
                    set->stopped_at);
    else
        doctor_ok(d, "%s=%s: %u of %u GPUs", name, value, set->n, d->t->list.n);
}
