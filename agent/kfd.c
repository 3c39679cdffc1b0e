/* SPDX-License-Identifier: MIT */
/* AMD's GPUs from the KFD topology in /sys. Must never know the runtime. */
#include "kfd.h"

#include "pci.h"
#include "sysfile.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define KFD_NODES "/sys/class/kfd/kfd/topology/nodes"
#define KFD_NODES_MAX 1024
#define KFD_LINKS_MAX 256
#define KFD_XGMI 11

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
    gpu->numa_node = pci_numa_node(sysroot, gpu->pci);
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

/* The numbers of all nodes, in order. Negative errno: the folder can't be read; 0: there is none. */
static int read_numbers(unsigned numbers[KFD_NODES_MAX], const char *sysroot, struct err *err)
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
    size_t n = node_numbers(dir, numbers);
    closedir(dir);
    return (int)n;
}

int kfd_list(struct gpu_list *list, const char *sysroot, struct err *err)
{
    unsigned numbers[KFD_NODES_MAX] = {0};
    int n = read_numbers(numbers, sysroot, err), rc = 0;
    struct gpu gpu;
    for (int i = 0; i < n && rc == 0; i++)
        if (read_node(&gpu, sysroot, numbers[i]))
            rc = gpu_list_add(list, &gpu, err);
    return n < 0 ? n : rc;
}

/* ---- what only the picture of the server needs ---- */

static int index_of(const struct gpu_list *list, const char *pci)
{
    for (unsigned i = 0; i < list->n; i++)
        if (strcmp(list->gpu[i].pci, pci) == 0)
            return (int)i;
    return -1;
}

/* The node of each GPU of the list; -1: not found. */
static void find_nodes(long long node[GPU_MAX], const struct gpu_list *list, const char *sysroot)
{
    unsigned numbers[KFD_NODES_MAX] = {0};
    struct gpu gpu;
    int n = read_numbers(numbers, sysroot, NULL);
    for (unsigned i = 0; i < GPU_MAX; i++)
        node[i] = -1;
    for (int i = 0; i < n; i++) {
        int index = read_node(&gpu, sysroot, numbers[i]) ? index_of(list, gpu.pci) : -1;
        if (index >= 0)
            node[index] = numbers[i];
    }
}

void kfd_links(const struct gpu_list *list, const char *sysroot, uint8_t links[GPU_MAX][GPU_MAX],
               unsigned mbps[GPU_MAX][GPU_MAX])
{
    long long node[GPU_MAX];
    char text[4096];
    find_nodes(node, list, sysroot);
    for (unsigned i = 0; i < list->n; i++) {
        for (unsigned k = 0; k < KFD_LINKS_MAX && node[i] >= 0; k++) {
            if (sysfile_read(text, sizeof text, sysroot, KFD_NODES "/%lld/io_links/%u/properties",
                             node[i], k) < 0)
                break;
            if (number_of(text, "type", 0) != KFD_XGMI)
                continue;
            uint64_t to = number_of(text, "node_to", UINT64_MAX);
            for (unsigned j = 0; j < list->n; j++) {
                if (j == i || node[j] < 0 || (uint64_t)node[j] != to)
                    continue;
                links[i][j] = 1;
                mbps[i][j] = (unsigned)number_of(text, "max_bandwidth", 0);
            }
        }
    }
}

void kfd_name(char *name, size_t bytes, const char *sysroot, const char *pci)
{
    char text[4096];
    if (sysfile_read(text, sizeof text, sysroot, "/sys/bus/pci/devices/%s/product_name", pci) > 1) {
        snprintf(name, bytes, "%.*s", (int)strcspn(text, "\r\n"), text);
        return;
    }
    unsigned numbers[KFD_NODES_MAX] = {0};
    struct gpu gpu;
    int n = read_numbers(numbers, sysroot, NULL);
    uint64_t version = 0; /* 90402 is gfx942, 90010 gfx90a */
    for (int i = 0; i < n && !version; i++)
        if (read_node(&gpu, sysroot, numbers[i]) && strcmp(gpu.pci, pci) == 0 &&
            sysfile_read(text, sizeof text, sysroot, KFD_NODES "/%u/properties", numbers[i]) > 0)
            version = number_of(text, "gfx_target_version", 0);
    if (version)
        snprintf(name, bytes, "AMD GPU gfx%u%x%x", (unsigned)(version / 10000),
                 (unsigned)(version / 100 % 100), (unsigned)(version % 100));
    else
        snprintf(name, bytes, "AMD GPU");
}
