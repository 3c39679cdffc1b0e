/* SPDX-License-Identifier: MIT */
/* The GPU list from made-up /proc, /sys and /dev trees. */
#include "../../agent/gpu.h"
#include "../harness.h"

#include <stdio.h>
#include <sys/stat.h>

static struct gpu_list list;
static struct err err;

static void nvidia(const char *pci, const char *uuid, const char *minor, const char *excluded)
{
    char path[128], text[512];
    snprintf(path, sizeof path, "proc/driver/nvidia/gpus/%s/information", pci);
    snprintf(text, sizeof text,
             "Model: \t\t NVIDIA H200\nIRQ:   \t\t 41\nGPU UUID: \t %s\nBus Type: \t PCIe\n"
             "Bus Location: \t %s\nDevice Minor: \t %s\nGPU Firmware: \t 580.159.04\n"
             "GPU Excluded:\t %s\n",
             uuid, pci, minor, excluded);
    test_write(path, text);
}

static void device(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "dev/%s", name);
    test_write(path, "");
}

static void numa(const char *pci, const char *node)
{
    char path[128];
    snprintf(path, sizeof path, "sys/bus/pci/devices/%s/numa_node", pci);
    test_write(path, node);
}

static void amd(unsigned node, const char *gpu_id, const char *properties)
{
    char path[128];
    snprintf(path, sizeof path, "sys/class/kfd/kfd/topology/nodes/%u/gpu_id", node);
    test_write(path, gpu_id);
    snprintf(path, sizeof path, "sys/class/kfd/kfd/topology/nodes/%u/properties", node);
    test_write(path, properties);
}

static void read_list(unsigned expected)
{
    CHECK_INT(gpu_list_read(&list, test_dir(), &err), ==, 0);
    CHECK_INT(list.n, ==, expected);
}

#define UUID "GPU-c3e243d0-a02c-64fa-0837-f943c473daba"
/* as the driver shows it before the first use; in pieces, because of trigraphs */
#define UNTOLD                                                                                     \
    "GPU-????????"                                                                                 \
    "-????"                                                                                        \
    "-????"                                                                                        \
    "-????"                                                                                        \
    "-????????????"

TEST(a_server_without_a_driver_has_no_gpus)
{
    read_list(0);
    CHECK_INT(list.vendor, ==, GPU_NONE);
}

TEST(nvidia_gpus_come_in_pci_order_with_minor_uuid_and_node)
{
    nvidia("0000:9A:00.0", UUID, "0", "No");
    nvidia("0000:18:00.0", UNTOLD, "1", "No");
    nvidia("0001:01:00.0", UUID "0", "2", "No");
    numa("0000:9a:00.0", "1\n");
    numa("0000:18:00.0", "-1\n");
    device("nvidia0");
    device("nvidia1");
    device("nvidia2");
    read_list(3);
    CHECK_INT(list.vendor, ==, GPU_NVIDIA);
    CHECK_STR(list.gpu[0].pci, "0000:18:00.0");
    CHECK_STR(list.gpu[0].uuid, "");
    CHECK_INT(list.gpu[0].minor, ==, 1);
    CHECK_INT(list.gpu[0].numa_node, ==, -1);
    CHECK_STR(list.gpu[1].pci, "0000:9a:00.0");
    CHECK_STR(list.gpu[1].uuid, UUID);
    CHECK_INT(list.gpu[1].minor, ==, 0);
    CHECK_INT(list.gpu[1].numa_node, ==, 1);
    CHECK_STR(list.gpu[2].pci, "0001:01:00.0");
    CHECK_STR(list.gpu[2].uuid, ""); /* too long to be one */
}

TEST(a_container_has_the_gpus_whose_device_it_was_given)
{
    char name[32];
    for (unsigned i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "0000:%02x:00.0", 16 + i);
        nvidia(name, UUID, (char[]){(char)('0' + i), 0}, "No");
    }
    device("nvidia3");
    device("nvidia6");
    read_list(2);
    CHECK_INT(list.gpu[0].minor, ==, 3);
    CHECK_INT(list.gpu[1].minor, ==, 6);
}

TEST(an_excluded_gpu_does_not_count)
{
    nvidia("0000:18:00.0", UUID, "0", "Yes");
    nvidia("0000:19:00.0", UUID, "1", "No");
    device("nvidia0");
    device("nvidia1");
    read_list(1);
    CHECK_INT(list.gpu[0].minor, ==, 1);
}

TEST(nonsense_in_proc_is_no_gpu)
{
    static char huge[100000];
    static const char *const minors[] = {"", "-1", "x", "1x", "99999999999999999999", "\xff\xfe"};
    static const char *const names[] = {"18:00.0",
                                        "0000:18:00",
                                        "0000:18:00.00",
                                        "000g:18:00.0",
                                        "0000:18:00.0:extra",
                                        "0000:1g:00.0",
                                        "000:18:00.0",
                                        "x"};
    device("nvidia0");
    for (size_t i = 0; i < sizeof minors / sizeof *minors; i++) {
        nvidia("0000:18:00.0", UUID, minors[i], "No");
        read_list(0);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        nvidia(names[i], UUID, "0", "No");
    read_list(0);
    memset(huge, 'A', sizeof huge - 1);
    test_write("proc/driver/nvidia/gpus/0000:18:00.0/information", huge);
    read_list(0);
    test_write("proc/driver/nvidia/gpus/0000:18:00.0/information",
               "Device Minor:0\nDevice Minor: 0");
    read_list(1);
}

TEST(a_fifo_or_directory_in_place_of_a_file_holds_nobody_up)
{
    char path[512];
    device("nvidia0");
    nvidia("0000:18:00.0", UUID, "0", "No");
    test_write("proc/driver/nvidia/gpus/0000:19:00.0/other", "");
    snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus/0000:19:00.0/information", test_dir());
    CHECK_INT(mkfifo(path, 0600), ==, 0);
    test_write("proc/driver/nvidia/gpus/0000:20:00.0/information/x", "");
    test_write("dev/nvidia1/x", "");
    nvidia("0000:21:00.0", UUID, "1", "No");
    read_list(1);
}

TEST(more_gpus_than_we_can_list_are_an_error)
{
    char name[32], minor[8], node[32];
    for (unsigned i = 0; i < GPU_MAX + 1; i++) {
        snprintf(name, sizeof name, "0000:%02x:00.0", i);
        snprintf(minor, sizeof minor, "%u", i);
        snprintf(node, sizeof node, "nvidia%u", i);
        nvidia(name, UUID, minor, "No");
        if (i < GPU_MAX)
            device(node);
    }
    read_list(GPU_MAX);
    device("nvidia64");
    CHECK_INT(gpu_list_read(&list, test_dir(), &err), ==, -E2BIG);
    CHECK_HAS(err.text, "64");
    CHECK_INT(list.n, ==, GPU_MAX); /* untouched */
}

TEST(amd_gpus_come_from_the_kfd_nodes_in_their_order)
{
    amd(0, "0\n", "cpu_cores_count 96\ndrm_render_minor 0\n");
    amd(10, "5\n", "drm_render_minor 129\nlocation_id 1280\ndomain 0\nunique_id 255\n");
    amd(2, "4711\n", "drm_render_minor 128\nlocation_id 25611\ndomain 1\n");
    amd(3, "4712\n", "drm_render_minor 130\nlocation_id 1\n"); /* no device node */
    amd(4, "4713\n", "location_id 1\n");
    amd(5, "\xff", "drm_render_minor 128\nlocation_id 1\n");
    device("dri/renderD128");
    device("dri/renderD129");
    numa("0001:64:01.3", "3\n");
    read_list(2);
    CHECK_INT(list.vendor, ==, GPU_AMD);
    CHECK_STR(list.gpu[0].pci, "0001:64:01.3");
    CHECK_STR(list.gpu[0].uuid, "");
    CHECK_INT(list.gpu[0].minor, ==, 128);
    CHECK_INT(list.gpu[0].numa_node, ==, 3);
    CHECK_STR(list.gpu[1].pci, "0000:05:00.0");
    CHECK_STR(list.gpu[1].uuid, "GPU-00000000000000ff");
}

TEST(amd_is_asked_only_when_there_is_no_nvidia_gpu)
{
    nvidia("0000:18:00.0", UUID, "0", "No");
    amd(1, "1\n", "drm_render_minor 128\nlocation_id 256\n");
    device("dri/renderD128");
    read_list(1);
    CHECK_INT(list.vendor, ==, GPU_AMD);
    device("nvidia0");
    read_list(1);
    CHECK_INT(list.vendor, ==, GPU_NVIDIA);
}
