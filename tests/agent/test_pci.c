/* SPDX-License-Identifier: MIT */
/* How far PCI devices are from each other, and what of /sys is believed. */
#include "../../agent/pci.h"
#include "../harness.h"

#include <stdio.h>
#include <unistd.h>

static struct pci_device at(const char *path, int node)
{
    struct pci_device device = {.numa_node = node};
    const char *rest;
    snprintf(device.path, sizeof device.path, "%s", path);
    CHECK(pci_address_in(path, device.address, &rest));
    return device;
}

static const char *near(struct pci_device a, struct pci_device b)
{
    CHECK_INT(pci_near(&a, &b), ==, pci_near(&b, &a));
    return pci_near_name(pci_near(&a, &b));
}

#define SWITCH "pci0000:15/0000:15:01.0/0000:16:00.0/"

TEST(the_nearest_common_bridge_says_how_far_two_devices_are)
{
    struct pci_device gpu = at(SWITCH "0000:17:00.0/0000:18:00.0", 0);
    CHECK_STR(near(gpu, gpu), "X");
    CHECK_STR(near(gpu, at(SWITCH "0000:17:01.0/0000:19:00.0", 0)), "PIX");
    /* two functions of one card */
    CHECK_STR(near(at("pci0000:15/0000:15:01.0/0000:16:00.0", 0),
                   at("pci0000:15/0000:15:01.0/0000:16:00.1", 0)),
              "PIX");
    /* a switch below a port of the first */
    CHECK_STR(near(at(SWITCH "0000:17:00.0/0000:18:00.0/0000:19:00.0/0000:1a:00.0", 0),
                   at(SWITCH "0000:17:01.0/0000:1b:00.0/0000:1c:00.0/0000:1d:00.0", 0)),
              "PXB");
    CHECK_STR(near(gpu, at(SWITCH "0000:17:01.0/0000:1b:00.0/0000:1c:00.0/0000:1d:00.0", 0)),
              "PXB");
    CHECK_STR(near(gpu, at("pci0000:15/0000:15:02.0/0000:20:00.0", 0)), "PHB");
    CHECK_STR(near(gpu, at("pci0000:40/0000:40:01.0/0000:41:00.0", 0)), "NODE");
    CHECK_STR(near(gpu, at("pci0000:97/0000:97:01.0/0000:98:00.0", 1)), "SYS");
}

TEST(devices_of_a_flat_bus_are_at_one_host_bridge)
{
    CHECK_STR(near(at("pci0000:00/0000:00:06.0", 0), at("pci0000:00/0000:00:07.0", 0)), "PHB");
}

TEST(a_node_that_is_not_told_is_no_node_of_the_others)
{
    CHECK_STR(near(at("pci0000:15/0000:15:01.0", -1), at("pci0000:16/0000:16:01.0", -1)), "SYS");
}

TEST(a_device_without_a_path_is_far_from_all)
{
    struct pci_device lost = {.address = "0000:18:00.0", .numa_node = -1};
    CHECK_STR(near(lost, at("pci0000:15/0000:15:01.0", 0)), "SYS");
}

TEST(the_last_address_in_a_path_is_the_devices)
{
    char address[PCI_ADDRESS_BYTES];
    const char *rest;
    CHECK(pci_address_in("/sys/devices/pci0000:00/0000:00:03.0/virtio0", address, &rest));
    CHECK_STR(address, "0000:00:03.0");
    CHECK_STR(rest, "/virtio0");
    CHECK(pci_address_in("10000:e1:00.0", address, &rest));
    CHECK_STR(address, "10000:e1:00.0");
    CHECK(!pci_address_in("", address, &rest));
    CHECK(!pci_address_in("/sys/devices/virtual/net/lo", address, &rest));
    CHECK(!pci_address_in("000:00:03.0/0000:00:03/0000:00:0g.0/000000000000:00:03.0", address,
                          &rest));
}

#define DEVICE "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0"
#define LINK "sys/bus/pci/devices/0000:16:00.0"

static struct pci_device read_device(const char *file, const char *content)
{
    struct pci_device device;
    char path[512], link[512];
    snprintf(path, sizeof path, DEVICE "/%s", file);
    test_write(path, content);
    test_write("sys/bus/pci/devices/x", "");
    snprintf(link, sizeof link, "%s/" LINK, test_dir());
    (void)!symlink("../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0", link);
    pci_read(&device, test_dir(), "0000:16:00.0");
    return device;
}

TEST(a_device_is_read_with_its_place_and_its_link)
{
    struct pci_device device = read_device("numa_node", "1\n");
    CHECK_STR(device.path, "pci0000:15/0000:15:01.0/0000:16:00.0");
    CHECK_INT(device.numa_node, ==, 1);
    CHECK_INT(read_device("class", "0x030200\n").class_code, ==, 0x030200);
    CHECK_STR(read_device("local_cpulist", "0-55,112-167\n").cpus, "0-55,112-167");
    CHECK_INT(read_device("current_link_width", "8\n").now.width, ==, 8);
    static const struct {
        const char *text;
        unsigned gen;
    } speeds[] = {{"2.5 GT/s PCIe\n", 1},  {"5.0 GT/s PCIe\n", 2},  {"8.0 GT/s PCIe\n", 3},
                  {"16.0 GT/s PCIe\n", 4}, {"32.0 GT/s PCIe\n", 5}, {"64.0 GT/s PCIe\n", 6},
                  {"Unknown\n", 0},        {"5 GT/s\n", 2},         {"7.0 GT/s\n", 0}};
    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++)
        CHECK_INT(read_device("max_link_speed", speeds[i].text).most.gen, ==, speeds[i].gen);
}

TEST(nonsense_about_a_device_is_not_told)
{
    CHECK_INT(read_device("numa_node", "-1\n").numa_node, ==, -1);
    CHECK_INT(read_device("numa_node", "99999999\n").numa_node, ==, -1);
    CHECK_INT(read_device("current_link_width", "255\n").now.width, ==, 0);
    CHECK_INT(read_device("class", "zz\n").class_code, ==, 0);
    CHECK_STR(read_device("local_cpulist", "<script>\n").cpus, "");
    struct pci_device nowhere;
    pci_read(&nowhere, test_dir(), "0000:99:00.0");
    CHECK_STR(nowhere.path, "");
    CHECK_INT(nowhere.numa_node, ==, -1);
}

TEST(a_link_carries_what_its_lanes_do)
{
    CHECK_INT(pci_mbps((struct pci_link){4, 16}), ==, 31504);
    CHECK_INT(pci_mbps((struct pci_link){5, 0}), ==, 0);
    CHECK_INT(pci_mbps((struct pci_link){9, 16}), ==, 0);
}
