/* SPDX-License-Identifier: MIT */
#include "near.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ".../devices/pci0000:00/<root port>/<switch>/.../<device>" from "pci" on; "" if it is not known. */
static const char *read_path(const char *sysroot, const char *pci, char buf[PATH_MAX])
{
    char link[PATH_MAX];
    ssize_t n = -1;
    if (snprintf(link, sizeof link, "%s/sys/bus/pci/devices/%s", sysroot, pci) < (int)sizeof link)
        n = readlink(link, buf, PATH_MAX - 1);
    buf[n > 0 ? n : 0] = '\0';
    const char *root = strstr(buf, "/pci");
    return root ? root + 1 : "";
}

/* Steps that two paths have in common. */
static unsigned common(const char *a, const char *b)
{
    unsigned steps = 0;
    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        steps += a[i] == '/';
    return steps;
}

static enum near between(const struct gpu *a, const struct gpu *b, const char *path_a,
                         const char *path_b)
{
    unsigned steps = common(path_a, path_b);
    if (steps > 1)
        return NEAR_SWITCH; /* a root port has one link: there is a switch behind it */
    if (steps == 1)
        return NEAR_ROOT;
    return a->numa_node >= 0 && a->numa_node == b->numa_node ? NEAR_NODE : NEAR_SYSTEM;
}

void near_read(struct distances *d, const char *sysroot, const struct gpu_list *list)
{
    char buf_a[PATH_MAX], buf_b[PATH_MAX];
    d->n = list->n;
    for (unsigned i = 0; i < list->n; i++) {
        const char *a = read_path(sysroot, list->gpu[i].pci, buf_a);
        d->at[i][i] = NEAR_SELF;
        for (unsigned j = 0; j < i; j++) {
            const char *b = read_path(sysroot, list->gpu[j].pci, buf_b);
            d->at[i][j] = d->at[j][i] = (uint8_t)between(&list->gpu[i], &list->gpu[j], a, b);
        }
    }
}
