/* SPDX-License-Identifier: MIT */
/* AMD's GPUs from the KFD topology in /sys. Must never know the runtime. */
#include "kfd.h"

#include "sysfile.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define KFD_NODES "/sys/class/kfd/kfd/topology/nodes"
#define KFD_NODES_MAX 1024

static uint64_t number_of(const char *properties, const char *key, uint64_t otherwise)
{
    char value[32], *end;
    if (!sysfile_field(properties, key, value, sizeof value) || *value < '0' || *value > '9')
        return otherwise;
    errno = 0;
    uint64_t number = strtoull(value, &end, 10);
    return errno || *end ? otherwise : number;
}

/* False: a CPU's node, or a GPU that this process may not use (its gpu_id can't be read in a
 * container that was not given it). */
static bool read_node(struct gpu *gpu, const char *sysroot, unsigned node)
{
    char text[8192];
    long long id;
    if (sysfile_number(&id, sysroot, KFD_NODES "/%u/gpu_id", node) < 0 || id == 0)
        return false;
    if (sysfile_read(text, sizeof text, sysroot, KFD_NODES "/%u/properties", node) < 0)
        return false;
    uint64_t minor = number_of(text, "drm_render_minor", 0);
    uint64_t location = number_of(text, "location_id", UINT64_MAX);
    uint64_t domain = number_of(text, "domain", 0);
    uint64_t unique = number_of(text, "unique_id", 0);
    if (minor == 0 || minor > 1u << 20 || location > UINT32_MAX || domain > 0xfffffff)
        return false;
    if (!gpu_node_usable(sysroot, "/dev/dri/renderD", (long long)minor))
        return false;
    *gpu = (struct gpu){.minor = (int)minor};
    snprintf(gpu->pci, sizeof gpu->pci, "%04x:%02x:%02x.%x", (unsigned)domain,
             (unsigned)(location >> 8 & 0xff), (unsigned)(location >> 3 & 0x1f),
             (unsigned)(location & 7));
    if (unique)
        snprintf(gpu->uuid, sizeof gpu->uuid, "GPU-%016" PRIx64, unique);
    gpu->numa_node = gpu_numa_node(sysroot, gpu->pci);
    return true;
}

static int by_number(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

/* The names of the directory that are plain numbers, in order. */
static size_t node_numbers(DIR *dir, unsigned numbers[KFD_NODES_MAX])
{
    size_t n = 0;
    struct dirent *entry;
    while (n < KFD_NODES_MAX && (entry = readdir(dir))) {
        size_t digits = strspn(entry->d_name, "0123456789");
        if (digits > 0 && digits < 7 && !entry->d_name[digits])
            numbers[n++] = (unsigned)strtoul(entry->d_name, NULL, 10);
    }
    qsort(numbers, n, sizeof numbers[0], by_number);
    return n;
}

int kfd_list(struct gpu_list *list, const char *sysroot, struct err *err)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s" KFD_NODES, sysroot);
    if (length < 0 || (size_t)length >= sizeof path)
        return err_set_errno(err, -ENAMETOOLONG, "gpu: %s", KFD_NODES);
    DIR *dir = opendir(path);
    if (!dir && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (!dir)
        return err_set_errno(err, -errno, "gpu: %s", path);
    unsigned numbers[KFD_NODES_MAX];
    size_t n = node_numbers(dir, numbers);
    closedir(dir);
    struct gpu gpu;
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        if (read_node(&gpu, sysroot, numbers[i]))
            rc = gpu_list_add(list, &gpu, err);
    return rc;
}
