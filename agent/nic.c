/* SPDX-License-Identifier: MIT */
/* See nic.h. */
#include "nic.h"

#include "clean.h"
#include "sysfile.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define RDMA "/sys/class/infiniband"
#define NET "/sys/class/net"
#define NAMES_MAX 256
#define NAME_BYTES sizeof((struct topology_nic *)0)->name

static int by_name(const void *a, const void *b)
{
    return strverscmp(a, b);
}

/* The names in a folder of /sys, sorted as people count: mlx5_9 before mlx5_10. */
static unsigned names_in(char names[][NAME_BYTES], const char *sysroot, const char *folder)
{
    char path[PATH_MAX];
    unsigned n = 0;
    int length = snprintf(path, sizeof path, "%s%s", sysroot, folder);
    DIR *dir = length > 0 && (size_t)length < sizeof path ? opendir(path) : NULL;
    struct dirent *entry;
    while (dir && n < NAMES_MAX && (entry = readdir(dir)))
        if (entry->d_name[0] != '.' && strlen(entry->d_name) < NAME_BYTES)
            memcpy(names[n++], entry->d_name, strlen(entry->d_name) + 1);
    if (dir)
        closedir(dir);
    qsort(names, n, NAME_BYTES, by_name);
    return n;
}

/* The PCI card behind a device. False: it has none (loopback, a bridge, a USB stick). */
static bool card_of(char address[PCI_ADDRESS_BYTES], const char *sysroot, const char *folder,
                    const char *name)
{
    char path[PATH_MAX], real[PATH_MAX];
    const char *rest;
    int n = snprintf(path, sizeof path, "%s%s/%s/device", sysroot, folder, name);
    return n > 0 && (size_t)n < sizeof path && realpath(path, real) &&
           pci_address_in(real, address, &rest) &&
           (!*rest || strncmp(rest, "/virtio", strlen("/virtio")) == 0);
}

static struct topology_nic *add(struct topology *t, const char *sysroot, const char *name,
                                const char *address)
{
    if (t->nics_n == TOPOLOGY_NICS_MAX)
        return NULL;
    struct topology_nic *nic = &t->nic[t->nics_n++];
    clean(nic->name, sizeof nic->name, name); /* an interface may have any name without blanks */
    pci_read(&nic->pci, sysroot, address);
    return nic;
}

static void read_rdma(struct topology *t, const char *sysroot, const char *name)
{
    char address[PCI_ADDRESS_BYTES], text[64];
    unsigned gbits;
    struct topology_nic *nic =
        card_of(address, sysroot, RDMA, name) ? add(t, sysroot, name, address) : NULL;
    if (!nic)
        return;
    nic->rdma = true;
    t->rdma_n++;
    if (sysfile_read(text, sizeof text, sysroot, RDMA "/%s/ports/1/rate", name) >= 0 &&
        sscanf(text, "%5u", &gbits) == 1)
        nic->mbits = gbits * 1000;
    if (sysfile_read(text, sizeof text, sysroot, RDMA "/%s/ports/1/state", name) >= 0)
        nic->down = !strstr(text, "ACTIVE");
}

static void read_net(struct topology *t, const char *sysroot, const char *name)
{
    char address[PCI_ADDRESS_BYTES], text[64];
    long long mbits;
    if (!card_of(address, sysroot, NET, name))
        return;
    for (unsigned i = 0; i < t->rdma_n; i++)
        if (strcmp(t->nic[i].pci.address, address) == 0) {
            if (!t->nic[i].netdev[0])
                clean(t->nic[i].netdev, sizeof t->nic[i].netdev, name);
            return;
        }
    struct topology_nic *nic = add(t, sysroot, name, address);
    if (!nic)
        return;
    memcpy(nic->netdev, nic->name, sizeof nic->netdev);
    if (sysfile_number(&mbits, sysroot, NET "/%s/speed", name) == 0 && mbits > 0 &&
        mbits < UINT_MAX)
        nic->mbits = (unsigned)mbits;
    if (sysfile_read(text, sizeof text, sysroot, NET "/%s/operstate", name) >= 0)
        nic->down = strncmp(text, "down", strlen("down")) == 0;
}

void nic_read_all(struct topology *t, const char *sysroot)
{
    char names[NAMES_MAX][NAME_BYTES];
    unsigned n = names_in(names, sysroot, RDMA);
    for (unsigned i = 0; i < n; i++)
        read_rdma(t, sysroot, names[i]);
    n = names_in(names, sysroot, NET);
    for (unsigned i = 0; i < n; i++)
        read_net(t, sysroot, names[i]);
}
