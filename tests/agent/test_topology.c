/* SPDX-License-Identifier: MIT */
/* The topology from made-up trees of /sys, and what is said about it. The machines of tests/machines are in
 * tests/e2e/topo.sh. */
#include "../../agent/topo.h"
#include "../../agent/topology.h"
#include "../harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct topology *t;
static struct err err;

static void node(unsigned id, const char *cpus)
{
    char path[96];
    snprintf(path, sizeof path, "sys/devices/system/node/node%u/cpulist", id);
    test_write(path, cpus);
}

static void read_it(void)
{
    topology_free(t);
    t = NULL;
    CHECK_INT(topology_read(&t, test_dir(), NVML_ALL, 1000, &err), ==, 0);
}

TEST(nodes_have_their_cpus_package_and_memory)
{
    test_write("sys/devices/system/node/online", "0-1,8\n");
    node(0, "0-3,8-11\n");
    node(1, "4-7,12-15\n");
    node(8, "\n");
    test_write("sys/devices/system/node/node8/meminfo", "Node 8 MemTotal:  1024 kB\n");
    test_write("sys/devices/system/cpu/cpu4/topology/physical_package_id", "1\n");
    read_it();
    CHECK_INT(t->nodes_n, ==, 3);
    CHECK_INT(t->cpus_n, ==, 16);
    CHECK_INT(t->packages_n, ==, 2);
    CHECK_STR(t->node[1].cpus, "4-7,12-15");
    CHECK_INT(t->node[1].package, ==, 1);
    CHECK_INT(t->node[2].id, ==, 8);
    CHECK_INT(t->node[2].package, ==, -1);
    CHECK_INT(t->node[2].memory_bytes, ==, 1 << 20);
}

TEST(a_kernel_without_numa_is_one_node)
{
    test_write("sys/devices/system/cpu/online", "0-15\n");
    read_it();
    CHECK_INT(t->nodes_n, ==, 1);
    CHECK_INT(t->node[0].cpus_n, ==, 16);
    CHECK_INT(t->packages_n, ==, 1);
}

TEST(the_only_node_has_all_memory_whatever_its_own_figure_leaves_out)
{
    test_write("sys/devices/system/node/online", "0\n");
    node(0, "0-3\n");
    test_write("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:  7302640 kB\n");
    read_it();
    CHECK_INT(t->node[0].memory_bytes, ==, 7302640ull << 10);
    test_write("proc/meminfo", "MemTotal:       528113792 kB\nMemFree:        1024 kB\n");
    read_it();
    CHECK_INT(t->node[0].memory_bytes, ==, 528113792ull << 10);
}

static void gpu(const char *pci, const char *numa_node)
{
    char path[128];
    snprintf(path, sizeof path, "proc/driver/nvidia/gpus/%s/information", pci);
    test_write(path, "Model: \t\t NVIDIA H200\nDevice Minor: \t 0\n");
    test_write("dev/nvidia0", "");
    snprintf(path, sizeof path, "sys/bus/pci/devices/%s/numa_node", pci);
    test_write(path, numa_node);
}

TEST(the_only_node_has_all_and_a_node_that_is_not_there_has_nothing)
{
    test_write("sys/devices/system/node/online", "0\n");
    node(0, "0-3\n");
    gpu("0000:00:06.0", "-1\n");
    read_it();
    CHECK_INT(t->list.n, ==, 1);
    CHECK_INT(t->gpu[0].pci.numa_node, ==, 0);
    CHECK_STR(t->gpu[0].nodes, "0");
    test_write("sys/devices/system/node/online", "0-1\n");
    node(1, "4-7\n");
    read_it();
    CHECK_INT(t->gpu[0].pci.numa_node, ==, -1);
    gpu("0000:00:06.0", "7\n");
    read_it();
    CHECK_INT(t->gpu[0].pci.numa_node, ==, -1);
    gpu("0000:00:06.0", "1\n");
    read_it();
    CHECK_INT(t->gpu[0].pci.numa_node, ==, 1);
}

TEST(names_are_plain_text)
{
    gpu("0000:00:06.0", "0\n");
    test_write("proc/driver/nvidia/gpus/0000:00:06.0/information",
               "Model: H\x1b[31m\xff 2\nDevice Minor: 0\n");
    test_write("proc/cpuinfo", "vendor_id\t: Genuine\x07\nmodel name\t: A CPU\n");
    read_it();
    CHECK_STR(t->gpu[0].name, "H?[31m? 2");
    CHECK_STR(t->cpu_vendor, "Genuine?");
    CHECK_STR(t->cpu_name, "A CPU");
}

TEST(a_machine_that_tells_nothing_is_empty_and_no_error)
{
    read_it();
    CHECK_INT(t->nodes_n, ==, 0);
    CHECK_INT(t->list.n, ==, 0);
    CHECK_INT(t->nics_n, ==, 0);
}

/* ---- NICs ---- */

static void nic(const char *folder, const char *name, const char *place)
{
    char path[600], target[300];
    snprintf(path, sizeof path, "sys/devices/%s/here", place);
    test_write(path, "");
    snprintf(path, sizeof path, "sys/class/%s/%s/x", folder, name);
    test_write(path, "");
    snprintf(target, sizeof target, "../../../devices/%s", place);
    snprintf(path, sizeof path, "%s/sys/class/%s/%s/device", test_dir(), folder, name);
    CHECK_INT(symlink(target, path), ==, 0);
}

TEST(nics_are_counted_as_people_count_and_rdma_comes_first)
{
    nic("infiniband", "mlx5_10", "pci0000:15/0000:15:01.0/0000:16:00.0");
    nic("infiniband", "mlx5_9", "pci0000:25/0000:25:01.0/0000:26:00.0");
    nic("net", "ens1", "pci0000:15/0000:15:01.0/0000:16:00.0"); /* the first one's */
    nic("net", "eth0", "pci0000:00/0000:00:03.0/virtio0");
    nic("net", "usb0", "pci0000:00/0000:00:14.0/usb1/1-1");
    test_write("sys/class/net/lo/mtu", "65536\n");
    test_write("sys/class/infiniband/mlx5_9/ports/1/rate", "400 Gb/sec (4X NDR)\n");
    test_write("sys/class/infiniband/mlx5_9/ports/1/state", "1: DOWN\n");
    read_it();
    CHECK_INT(t->nics_n, ==, 3);
    CHECK_INT(t->rdma_n, ==, 2);
    CHECK_STR(t->nic[0].name, "mlx5_9");
    CHECK_INT(t->nic[0].mbits, ==, 400000);
    CHECK(t->nic[0].down);
    CHECK_STR(t->nic[1].name, "mlx5_10");
    CHECK_STR(t->nic[1].netdev, "ens1");
    CHECK_STR(t->nic[2].name, "eth0");
}

TEST(an_interface_whose_name_steers_a_terminal_has_a_plain_one)
{
    nic("infiniband", "mlx\x1b[2J", "pci0000:15/0000:15:01.0/0000:16:00.0");
    nic("net", "ens\x07", "pci0000:15/0000:15:01.0/0000:16:00.0");
    nic("net", "eth\x1a", "pci0000:00/0000:00:03.0/virtio0");
    read_it();
    CHECK_INT(t->nics_n, ==, 2);
    CHECK_STR(t->nic[0].name, "mlx?[2J");
    CHECK_STR(t->nic[0].netdev, "ens?");
    CHECK_STR(t->nic[1].name, "eth?");
}

TEST(more_nics_than_can_be_shown_are_left_out)
{
    char name[32], place[64];
    for (unsigned i = 0; i < TOPOLOGY_NICS_MAX + 3; i++) {
        snprintf(name, sizeof name, "mlx5_%u", i);
        snprintf(place, sizeof place, "pci0000:15/0000:15:01.0/0000:16:%02x.%x", i / 8, i % 8);
        nic("infiniband", name, place);
    }
    read_it();
    CHECK_INT(t->nics_n, ==, TOPOLOGY_NICS_MAX);
    CHECK_STR(t->nic[TOPOLOGY_NICS_MAX - 1].name, "mlx5_63");
}

/* ---- what is said, on topologies made by hand ---- */

/* Texts live as long as their test. */
static const char *keep(char *text)
{
    static char *kept[16];
    static unsigned n;
    CHECK_INT(n, <, 16);
    return kept[n++] = text;
}

static struct topology made;
static struct nvml_facts facts;

static void make(unsigned gpus)
{
    memset(&made, 0, sizeof made);
    memset(&facts, 0, sizeof facts);
    made.list.vendor = GPU_NVIDIA;
    made.list.n = facts.n = gpus;
    made.nvml = &facts;
    facts.usable = true;
    made.nodes_n = 1;
    made.node[0].cpus_n = 8;
    for (unsigned i = 0; i < gpus; i++) {
        snprintf(made.gpu[i].pci.address, PCI_ADDRESS_BYTES, "0000:%02x:00.0", i);
        snprintf(made.gpu[i].pci.path, PCI_PATH_BYTES, "pci0000:%02x/0000:%02x:00.0", i, i);
        facts.gpu[i].ecc = 1;
        facts.gpu[i].fabric_health = -1;
        memset(facts.gpu[i].level, -1, sizeof facts.gpu[i].level);
    }
}

static void link_pair(unsigned a, unsigned b, unsigned links)
{
    made.links[a][b] = made.links[b][a] = (uint8_t)links;
    made.link_mbps[a][b] = made.link_mbps[b][a] = 25000;
}

TEST(what_looks_wrong_is_named_once_for_all_it_concerns)
{
    make(3);
    CHECK_STR(keep(topo_wrong(&made)), "");
    facts.gpu[0].fabric = facts.gpu[1].fabric = 1;
    facts.gpu[2].mig = 1;
    facts.gpu[1].compute_mode = 2;
    made.gpu[2].now.width = 4;
    made.gpu[2].most.width = 16;
    facts.gpu[0].links = facts.gpu[1].links = 18;
    facts.gpu[2].links = 17;
    facts.gpu[0].p2p[P2P_WRITE][1] = 4;
    snprintf(made.driver, sizeof made.driver, "580.1");
    const char *wrong = keep(topo_wrong(&made));
    CHECK_HAS(wrong, "GPUs 0-1: Fabric Manager has not set up the NVSwitches");
    CHECK_HAS(wrong, "of the driver's version 580.1.\n");
    CHECK_HAS(wrong, "GPU 2: MIG is on");
    CHECK_HAS(wrong, "GPU 1: compute mode is prohibited");
    CHECK_HAS(wrong, "GPU 2: its PCIe link has x4 of x16 lanes");
    CHECK_HAS(wrong, "GPU 2: 17 NVLinks are up, others have 18");
    CHECK_HAS(wrong,
              "P2P is off for 1 of 3 pairs (0-1): disabled by the driver's registry key (DR)");
}

TEST(p2p_that_is_off_everywhere_is_one_line)
{
    make(4);
    for (unsigned i = 0; i < 4; i++)
        for (unsigned j = 0; j < 4; j++)
            facts.gpu[i].p2p[P2P_READ][j] = 1;
    link_pair(0, 1, 4);
    CHECK_STR(keep(topo_wrong(&made)),
              "P2P is off between all GPUs: chipset not supported (CNS), although NVLink "
              "joins them; NCCL goes through host memory.\n");
}

TEST(a_fabric_that_failed_or_is_degraded_is_told)
{
    make(2);
    facts.gpu[0].fabric = facts.gpu[1].fabric = 3;
    CHECK_STR(keep(topo_wrong(&made)), "");
    facts.gpu[0].fabric_status = 9;
    facts.gpu[1].fabric_health = 1;
    CHECK_HAS(keep(topo_wrong(&made)), "GPU 0: Fabric Manager could not set it up");
    CHECK_HAS(keep(topo_wrong(&made)), "GPU 1: the NVLink fabric is degraded");
}

TEST(groups_of_linked_gpus_and_those_left_alone_are_named)
{
    make(5);
    link_pair(0, 2, 4);
    link_pair(1, 3, 4);
    const char *reading = keep(topo_reading(&made));
    CHECK_HAS(reading, "GPUs 0,2 talk over NVLink (NV4, 100 GB/s each way).");
    CHECK_HAS(reading, "GPUs 1,3 talk over NVLink");
    CHECK_HAS(reading, "GPU 4 has no NVLink.");
    CHECK_HAS(reading, "Tensor parallel inside a group (of 2)");
}

TEST(a_ring_of_links_joins_all_but_not_every_pair)
{
    make(4);
    for (unsigned i = 0; i < 4; i++)
        link_pair(i, (i + 1) % 4, 2);
    CHECK_HAS(keep(topo_reading(&made)),
              "All 4 GPUs talk over NVLink (NV2, 50 GB/s each way; not every pair is joined).");
}

TEST(every_level_of_nvml_is_a_cell)
{
    static const char *const cells[] = {"PIX", "PIX", "PXB", "PHB", "NODE", "SYS", "NODE"};
    char cell[8];
    make(2);
    for (int i = 0; i < 7; i++) {
        facts.gpu[0].level[1] = (int8_t)(i < 6 ? 10 * i : 17); /* nonsense: /sys knows */
        topology_cell(&made, 0, 1, cell);
        CHECK_STR(cell, cells[i]);
    }
    link_pair(0, 1, 18);
    topology_cell(&made, 0, 1, cell);
    CHECK_STR(cell, "NV18");
}

/* All formats; returns the text of one. */
static const char *show(void (*format)(FILE *, const struct topology *))
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    format(out, &made);
    fclose(out);
    return keep(text);
}

TEST(names_that_drivers_give_are_escaped_in_every_format)
{
    make(1);
    snprintf(made.gpu[0].name, sizeof made.gpu[0].name, "<&\"\\\xff\x1b[31m");
    CHECK_HAS(show(topo_svg), "&lt;&amp;&quot;\\??[31m");
    CHECK_HAS(show(topo_dot), "<&\\\"\\\\??[31m");
    CHECK_HAS(show(topo_json), "\"name\": \"<&\\\"\\\\\\ufffd\\u001b[31m\"");
}

TEST(the_largest_server_is_shown_in_every_format)
{
    make(GPU_MAX);
    for (unsigned i = 0; i < GPU_MAX; i++)
        for (unsigned j = 0; j < i; j++)
            link_pair(i, j, 18);
    made.nics_n = made.rdma_n = TOPOLOGY_NICS_MAX;
    for (unsigned i = 0; i < TOPOLOGY_NICS_MAX; i++) {
        snprintf(made.nic[i].name, sizeof made.nic[i].name, "mlx5_%u", i);
        snprintf(made.nic[i].pci.address, PCI_ADDRESS_BYTES, "0001:%02x:00.0", i);
        snprintf(made.nic[i].pci.path, PCI_PATH_BYTES, "pci0001:%02x/0001:%02x:00.0", i, i);
    }
    CHECK_HAS(keep(topo_reading(&made)), "All 64 GPUs talk over NVLink");
    CHECK_HAS(show(topo_svg), "GPU 63");
    CHECK_HAS(show(topo_dot), "gpu63 -- middle");
    CHECK_HAS(show(topo_xml), "dev=\"63\"");
    CHECK_HAS(show(topo_json), "\"index\": 63");
}
