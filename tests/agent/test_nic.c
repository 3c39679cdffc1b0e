/* SPDX-License-Identifier: MIT */
/* agent/nic.c on made-up PCI trees. */
#include "../../agent/nic.h"
#include "../harness.h"

#include <stdio.h>
#include <unistd.h>

#define DEVICES "sys/devices/"

static void link_to(const char *target, const char *path)
{
    char full[512];
    snprintf(full, sizeof full, "%s", path);
    test_write(full, ""); /* makes the parents */
    snprintf(full, sizeof full, "%s/%s", test_dir(), path);
    CHECK_INT(unlink(full), ==, 0);
    CHECK_INT(symlink(target, full), ==, 0);
}

static void put_device(const char *path, const char *pci, const char *node)
{
    char text[512];
    snprintf(text, sizeof text, DEVICES "%s/numa_node", path);
    test_write(text, node);
    snprintf(text, sizeof text, "../../../devices/%s", path);
    char link[256];
    snprintf(link, sizeof link, "sys/bus/pci/devices/%s", pci);
    link_to(text, link);
}

static void put_nic(const char *class, const char *name, const char *path)
{
    char target[512], link[256];
    snprintf(target, sizeof target, "../../../devices/%s", path);
    snprintf(link, sizeof link, "sys/class/%s/%s/device", class, name);
    link_to(target, link);
}

static const char *nearest(const char *pci)
{
    static char name[NIC_NAME_BYTES];
    return nic_nearest(test_dir(), pci, name) ? name : "none";
}

TEST(the_nic_behind_the_same_switch_is_the_nearest)
{
    put_device("pci0000:00/0000:00:01.0/0000:01:00.0", "0000:01:00.0", "0\n"); /* GPU */
    put_device("pci0000:00/0000:00:01.0/0000:02:00.0", "0000:02:00.0", "0\n");
    put_device("pci0000:00/0000:00:03.0", "0000:00:03.0", "0\n");
    put_nic("infiniband", "mlx5_10", "pci0000:00/0000:00:01.0/0000:02:00.0");
    put_nic("infiniband", "mlx5_2", "pci0000:00/0000:00:03.0");
    CHECK_STR(nearest("0000:01:00.0"), "mlx5_10");
}

TEST(elsewhere_the_one_on_the_same_node_comes_first_and_then_the_name)
{
    put_device("pci0000:00/0000:00:01.0", "0000:00:01.0", "1\n"); /* GPU */
    put_device("pci0000:40/0000:40:01.0", "0000:40:01.0", "0\n");
    put_device("pci0000:80/0000:80:01.0", "0000:80:01.0", "1\n");
    put_device("pci0000:c0/0000:c0:01.0", "0000:c0:01.0", "1\n");
    put_nic("infiniband", "mlx5_0", "pci0000:40/0000:40:01.0");
    put_nic("infiniband", "mlx5_10", "pci0000:80/0000:80:01.0");
    put_nic("infiniband", "mlx5_9", "pci0000:c0/0000:c0:01.0");
    CHECK_STR(nearest("0000:00:01.0"), "mlx5_9");
}

TEST(without_rdma_a_network_card_does_but_no_interface_of_software)
{
    put_device("pci0000:00/0000:00:01.0", "0000:00:01.0", "-1\n"); /* GPU */
    test_write("sys/class/net/lo/ifindex", "1\n");
    CHECK_STR(nearest("0000:00:01.0"), "none");
    put_device("pci0000:00/0000:00:04.0", "0000:00:04.0", "-1\n");
    put_nic("net", "eth0", "pci0000:00/0000:00:04.0");
    CHECK_STR(nearest("0000:00:01.0"), "eth0");
    CHECK_STR(nearest("0000:99:00.0"), "none");
}
