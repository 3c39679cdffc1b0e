/* SPDX-License-Identifier: MIT */
#include "nic.h"

#include "sysfile.h"

#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Where a link in /sys leads to; every folder on the way is a bridge or a bus. False: nowhere. */
static bool PRINTF_LIKE(3, 4)
    resolve(char real[PATH_MAX], const char *sysroot, const char *format, ...)
{
    char path[PATH_MAX];
    int root = snprintf(path, sizeof path, "%s", sysroot);
    if (root < 0 || (size_t)root >= sizeof path)
        return false;
    va_list ap;
    va_start(ap, format);
    int rest = vsnprintf(path + root, sizeof path - (size_t)root, format, ap);
    va_end(ap);
    return rest >= 0 && (size_t)(root + rest) < sizeof path && realpath(path, real);
}

static unsigned common_folders(const char *a, const char *b)
{
    unsigned n = 0;
    for (; *a && *a == *b; a++, b++)
        n += *a == '/';
    return n + ((*a == '/' || !*a) && (*b == '/' || !*b));
}

/* How near a device of that class is; 0: it is no hardware, or on another machine's bus. */
static unsigned nearness(const char *sysroot, const char *class, const char *name, const char *pci,
                         const char *pci_path)
{
    char path[PATH_MAX];
    long long mine, its;
    if (!resolve(path, sysroot, "/sys/class/%s/%s/device", class, name))
        return 0;
    bool same =
        sysfile_number(&mine, sysroot, "/sys/bus/pci/devices/%s/numa_node", pci) == 0 &&
        sysfile_number(&its, sysroot, "/sys/class/%s/%s/device/numa_node", class, name) == 0 &&
        mine >= 0 && mine == its;
    return 2 * common_folders(path, pci_path) + same;
}

bool nic_nearest(const char *sysroot, const char *pci, char ret_name[NIC_NAME_BYTES])
{
    static const char *const classes[] = {"infiniband", "net"};
    char path[PATH_MAX], folder[PATH_MAX];
    unsigned best = 0;
    if (!resolve(path, sysroot, "/sys/bus/pci/devices/%s", pci))
        return false;
    for (size_t c = 0; c < ARRAY_LEN(classes) && !best; c++) {
        DIR *dir = resolve(folder, sysroot, "/sys/class/%s", classes[c]) ? opendir(folder) : NULL;
        for (struct dirent *entry; dir && (entry = readdir(dir));) {
            const char *name = entry->d_name;
            if (name[0] == '.' || strlen(name) >= NIC_NAME_BYTES)
                continue;
            unsigned near = nearness(sysroot, classes[c], name, pci, path);
            if (near > best || (near && near == best && strverscmp(name, ret_name) < 0)) {
                best = near;
                snprintf(ret_name, NIC_NAME_BYTES, "%s", name);
            }
        }
        if (dir)
            closedir(dir);
    }
    return best > 0;
}
