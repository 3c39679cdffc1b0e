/* SPDX-License-Identifier: MIT */
/* The GPUs of the server from what the drivers tell in /proc and /sys. Opens no device: that
 * would wake it. Must never know NVML, CUDA or HIP, nor what the user asked for (visible.c). */
#include "gpu.h"

#include "kfd.h"
#include "pci.h"
#include "sysfile.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define NVIDIA_GPUS "/proc/driver/nvidia/gpus"
#define HEX "0123456789abcdef"

bool gpu_node_usable(const char *sysroot, const char *prefix, long long minor)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s%s%lld", sysroot, prefix, minor);
    struct stat st;
    if (n < 0 || (size_t)n >= sizeof path || stat(path, &st) < 0)
        return false;
    bool device = S_ISCHR(st.st_mode) || (*sysroot && S_ISREG(st.st_mode));
    return device && faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0;
}

/* "domain:bus:device.function", each in hex. */
static bool parse_pci(const char *name, uint64_t *ret_order)
{
    static const char shape[] = "xx:xx.x"; /* behind the domain's colon */
    char lower[sizeof((struct gpu *)0)->pci] = {0};
    size_t n = strlen(name);
    if (n >= sizeof lower)
        return false;
    for (size_t i = 0; i <= n; i++)
        lower[i] = name[i] >= 'A' && name[i] <= 'F' ? (char)(name[i] + 32) : name[i];
    size_t domain = strspn(lower, HEX);
    if (domain < 4 || lower[domain] != ':' || n != domain + 1 + strlen(shape))
        return false;
    for (size_t i = 0; shape[i]; i++) {
        char c = lower[domain + 1 + i];
        if (shape[i] == 'x' ? !strchr(HEX, c) : c != shape[i])
            return false;
    }
    unsigned d, b, s, f;
    if (sscanf(lower, "%x:%2x:%2x.%1x", &d, &b, &s, &f) != 4)
        return false;
    *ret_order = (uint64_t)d << 20 | b << 12 | s << 4 | f;
    return true;
}

/* "GPU-" and 8-4-4-4-12 hex digits; before its first use the driver shows question marks. */
static bool is_uuid(const char *text)
{
    static const char shape[] = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    for (size_t i = 0; i < sizeof shape; i++)
        if (shape[i] == 'x' ? !text[i] || !strchr(HEX, text[i]) : text[i] != shape[i])
            return false;
    return true;
}

static bool parse_minor(const char *text, int *ret)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 6 || text[digits])
        return false;
    *ret = (int)strtol(text, NULL, 10);
    return true;
}

/* One directory of NVIDIA_GPUS. False: nothing that a job could use. */
static bool read_nvidia(struct gpu *gpu, const char *sysroot, const char *pci)
{
    char text[4096], value[64];
    if (sysfile_read(text, sizeof text, sysroot, NVIDIA_GPUS "/%s/information", pci) < 0)
        return false;
    *gpu = (struct gpu){.minor = -1};
    if (!sysfile_field(text, "Device Minor:", value, sizeof value) ||
        !parse_minor(value, &gpu->minor))
        return false;
    if (sysfile_field(text, "GPU Excluded:", value, sizeof value) && strcmp(value, "Yes") == 0)
        return false;
    if (!gpu_node_usable(sysroot, "/dev/nvidia", gpu->minor))
        return false;
    if (sysfile_field(text, "GPU UUID:", value, sizeof value) && is_uuid(value))
        memcpy(gpu->uuid, value, strlen(value) + 1);
    for (size_t i = 0; pci[i]; i++)
        gpu->pci[i] = pci[i] >= 'A' && pci[i] <= 'F' ? (char)(pci[i] + 32) : pci[i];
    gpu->numa_node = pci_numa_node(sysroot, gpu->pci);
    return true;
}

static int by_pci(const void *a, const void *b)
{
    uint64_t x = 0, y = 0;
    parse_pci(((const struct gpu *)a)->pci, &x);
    parse_pci(((const struct gpu *)b)->pci, &y);
    return (x > y) - (x < y);
}

static int list_nvidia(struct gpu_list *list, const char *sysroot, struct err *err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s" NVIDIA_GPUS, sysroot);
    if (n < 0 || (size_t)n >= sizeof path)
        return err_set_errno(err, -ENAMETOOLONG, "gpu: %s", NVIDIA_GPUS);
    DIR *dir = opendir(path);
    if (!dir && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (!dir)
        return err_set_errno(err, -errno, "gpu: %s", path);
    int rc = 0;
    struct dirent *entry;
    struct gpu gpu;
    while (rc == 0 && (errno = 0, entry = readdir(dir))) {
        uint64_t order;
        if (!parse_pci(entry->d_name, &order) || !read_nvidia(&gpu, sysroot, entry->d_name))
            continue;
        rc = gpu_list_add(list, &gpu, err);
    }
    if (rc == 0 && errno)
        rc = err_set_errno(err, -errno, "gpu: %s", path);
    closedir(dir);
    qsort(list->gpu, list->n, sizeof list->gpu[0], by_pci);
    return rc;
}

int gpu_list_add(struct gpu_list *list, const struct gpu *gpu, struct err *err)
{
    if (list->n == GPU_MAX)
        return err_set(err, -E2BIG, "gpu: this server has more than %d GPUs", GPU_MAX);
    list->gpu[list->n++] = *gpu;
    return 0;
}

int gpu_list_read(struct gpu_list *list, const char *sysroot, struct err *err)
{
    struct gpu_list found = {.vendor = GPU_NVIDIA};
    int rc = list_nvidia(&found, sysroot, err);
    if (rc == 0 && found.n == 0) {
        found.vendor = GPU_AMD;
        rc = kfd_list(&found, sysroot, err);
    }
    if (rc < 0)
        return rc;
    if (found.n == 0)
        found.vendor = GPU_NONE;
    *list = found;
    return 0;
}
