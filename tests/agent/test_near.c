/* SPDX-License-Identifier: MIT */
#include "../../agent/near.h"
#include "../harness.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static struct gpu_list list;

static void device(const char *pci, const char *path, int node)
{
    char link_path[512];
    struct gpu *gpu = &list.gpu[list.n++];
    snprintf(gpu->pci, sizeof gpu->pci, "%s", pci);
    gpu->numa_node = node;
    test_write("m/sys/bus/pci/devices/made", "");
    if (path) {
        snprintf(link_path, sizeof link_path, "m/sys/%s/class", path + strlen("../../../"));
        test_write(link_path, "");
    }
    snprintf(link_path, sizeof link_path, "%s/m/sys/bus/pci/devices/%s", test_dir(), pci);
    if (path)
        CHECK_INT(symlink(path, link_path), ==, 0);
}

TEST(distances_follow_the_tree_of_pci_devices)
{
    struct distances d;
    char root[512];
    snprintf(root, sizeof root, "%s/m", test_dir());
    device("0000:17:00.0", "../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0", 0);
    device("0000:18:00.0", "../../../devices/pci0000:15/0000:15:01.0/0000:16:01.0/0000:18:00.0", 0);
    device("0000:1a:00.0", "../../../devices/pci0000:15/0000:15:02.0/0000:1a:00.0", 0);
    device("0000:3b:00.0", "../../../devices/pci0000:37/0000:37:01.0/0000:3b:00.0", 0);
    device("0000:9b:00.0", "../../../devices/pci0000:97/0000:97:01.0/0000:9b:00.0", 1);
    device("0000:ff:00.0", NULL, -1);
    device("0001:ff:00.0", NULL, -1);
    device("0000:99:00.0",
           "../../../devices/pci0000:97/0000:97:02.0/0000:98:00.0/0000:98:01.0/0000:99:00.0", 1);
    device("0000:9f:00.0",
           "../../../devices/pci0000:97/0000:97:02.0/0000:98:00.0/0000:98:02.0/0000:9c:00.0/"
           "0000:9d:00.0/0000:9f:00.0",
           1);
    near_read(&d, root, &list);
    CHECK_INT(d.n, ==, 9);
    CHECK_INT(d.at[8][7], ==, PCI_PXB); /* two switches between them */
    CHECK_INT(d.at[0][0], ==, PCI_SELF);
    CHECK_INT(d.at[0][1], ==, PCI_PIX);
    CHECK_INT(d.at[1][0], ==, PCI_PIX);
    CHECK_INT(d.at[0][2], ==, PCI_PHB);
    CHECK_INT(d.at[0][3], ==, PCI_NODE);
    CHECK_INT(d.at[0][4], ==, PCI_SYS);
    CHECK_INT(d.at[5][6], ==, PCI_SYS);
}
