/* SPDX-License-Identifier: MIT */
#include "../../agent/bench/transports.h"
#include "../harness.h"

#include <stdio.h>
#include <stdlib.h>

/* Two GPUs and their ranks. */
static struct nccl_log chosen;
static struct topology machine;
static struct nvml_facts facts;
static struct nccl_conf conf;
static struct transports all = {&chosen, &machine, &conf, false};
static struct transports_pair pair;

static void log_line(const char *format, int rank)
{
    char line[256];
    snprintf(line, sizeof line, format, rank, rank, rank, rank + 1);
    nccl_log_line(&chosen, line, strlen(line));
}

/* GPUs as far apart as NVML's level says (10 PIX, 20 PXB, 30 PHB, 50 SYS), with so many NVLinks. */
static void build(int level, int links)
{
    machine.sysroot = test_dir();
    machine.list.vendor = GPU_NVIDIA;
    machine.list.n = 2;
    facts.usable = true;
    facts.n = 2;
    machine.nvml = &facts;
    for (int i = 0; i < 2; i++) {
        snprintf(machine.list.gpu[i].pci, sizeof machine.list.gpu[i].pci, "0000:%02d:00.0", i + 1);
        facts.gpu[i].level[!i] = (int8_t)level;
        machine.links[i][!i] = (uint8_t)links;
        log_line("n:%d:1 [0] NCCL INFO ncclCommInitRankConfig comm 0x1 rank %d nranks 2 cudaDev %d "
                 "nvmlDev 0 busId %d000 commId 0x1 - Init START",
                 i);
    }
}

/* NCCL took that way from rank 0 to rank 1, judged so. */
static const char *judge(const char *via)
{
    char line[128];
    memset(chosen.via, 0, sizeof chosen.via);
    snprintf(line, sizeof line, "n:0:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via %s", via);
    nccl_log_line(&chosen, line, strlen(line));
    transports_judge(&all, 0, 1, &pair);
    return pair.why;
}

static void set(const char *name_and_value)
{
    char *env[] = {(char *)name_and_value, NULL};
    nccl_conf_read(&conf, test_dir(), env, NULL, false);
}

TEST(near_gpus_and_those_with_nvlink_are_expected_to_use_p2p)
{
    static const struct {
        int level, links;
        enum transports_way way;
        const char *link;
    } cases[] = {{10, 0, WAY_P2P, "PIX"},  {20, 0, WAY_P2P, "PXB"}, {30, 0, WAY_SHM, "PHB"},
                 {40, 0, WAY_SHM, "NODE"}, {50, 0, WAY_SHM, "SYS"}, {50, 18, WAY_P2P, "NV18"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        build(cases[i].level, cases[i].links);
        judge(cases[i].way == WAY_P2P ? "P2P/CUMEM" : "SHM/direct/direct");
        CHECK_INT(pair.expected, ==, cases[i].way);
        CHECK_INT(pair.chosen, ==, cases[i].way);
        CHECK_STR(pair.link, cases[i].link);
        CHECK(!pair.differs);
        CHECK_STR(pair.why, "");
    }
    build(50, 0);
    snprintf(machine.cpu_vendor, sizeof machine.cpu_vendor, "AuthenticAMD");
    judge("P2P/IPC");
    CHECK_INT(pair.expected, ==, WAY_P2P);
}

TEST(a_pair_that_is_not_connected_or_of_which_nothing_is_known_does_not_differ)
{
    build(10, 0);
    transports_judge(&all, 1, 0, &pair);
    CHECK_INT(pair.chosen, ==, WAY_NONE);
    CHECK(!pair.differs);
    machine.list.n = 1;
    judge("SHM/direct/direct");
    CHECK_INT(pair.expected, ==, WAY_NONE);
    CHECK(!pair.differs);
}

TEST(a_setting_that_keeps_gpus_from_p2p_is_named_with_its_source)
{
    build(10, 0);
    set("NCCL_P2P_DISABLE=1");
    CHECK_STR(judge("SHM/direct/direct"), "NCCL_P2P_DISABLE=1 (environment)");
    CHECK(pair.differs);
    set("NCCL_P2P_LEVEL=NVL");
    CHECK_STR(judge("SHM/direct/direct"), "NCCL_P2P_LEVEL=NVL (environment)");
    set("NCCL_P2P_LEVEL=0");
    CHECK_STR(judge("SHM/direct/direct"), "NCCL_P2P_LEVEL=0 (environment)");
    set("NCCL_P2P_LEVEL=PIX");
    CHECK_HAS(judge("SHM/direct/direct"), "not known");
    set("NCCL_P2P_DISABLE=0");
    CHECK_HAS(judge("SHM/direct/direct"), "not known");
    test_write("etc/nccl.conf", "NCCL_P2P_DISABLE=1\n");
    set("NCCL_SHM_DISABLE=1");
    CHECK_STR(judge("NET/Socket/0"),
              "NCCL_P2P_DISABLE=1 (/etc/nccl.conf:1) and NCCL_SHM_DISABLE=1 (environment)");
}

TEST(a_setting_that_allows_p2p_far_away_or_forbids_shared_memory_is_named)
{
    build(50, 0);
    set("NCCL_P2P_LEVEL=SYS");
    CHECK_STR(judge("P2P/CUMEM"), "NCCL_P2P_LEVEL=SYS (environment)");
    set("NCCL_SHM_DISABLE=1");
    CHECK_STR(judge("NET/Socket/0"), "NCCL_SHM_DISABLE=1 (environment)");
}

TEST(what_the_driver_refuses_is_told)
{
    build(10, 0);
    facts.gpu[0].p2p[P2P_WRITE][1] = 1;
    CHECK_STR(judge("SHM/direct/direct"), "the driver refuses P2P: the chipset can't");
    facts.gpu[0].p2p[P2P_WRITE][1] = 0;
    chosen.p2p_disabled_n = 1;
    CHECK_HAS(judge("SHM/direct/direct"), "NCCL's log: the driver keeps");
}

TEST(shared_gpus_go_over_the_network)
{
    build(10, 0);
    all.shared = true;
    CHECK_HAS(judge("NET/Socket/0"), "--share-gpus");
    CHECK(pair.differs);
}

TEST(a_picture_of_the_machine_that_is_not_its_own_is_told)
{
    build(10, 0);
    test_write("proc/cpuinfo", "processor : 0\nflags : fpu hypervisor lahf_lm\n");
    CHECK_HAS(judge("SHM/direct/direct"), "a virtual machine");
    test_write("var/run/nvidia-topologyd/virtualTopology.xml", "<system version=\"1\">");
    CHECK_HAS(judge("SHM/direct/direct"), "virtualTopology.xml");
    set("NCCL_TOPO_FILE=/etc/topo.xml");
    CHECK_HAS(judge("SHM/direct/direct"), "from /etc/topo.xml (NCCL_TOPO_FILE, environment)");
}

TEST(the_slowest_way_of_a_pair_counts)
{
    build(10, 0);
    judge("P2P/CUMEM");
    log_line("n:%d:1 [0] NCCL INFO Channel 00/1 : %d[%d] -> %d[0] [send] via NET/IB/0", 0);
    transports_judge(&all, 0, 1, &pair);
    CHECK_INT(pair.chosen, ==, WAY_NET);
}

TEST(two_runs_of_a_job_are_one_picture)
{
    static struct nccl_log other;
    build(10, 0);
    judge("P2P/CUMEM");
    static const char more[] =
        "n:7:1 [0] NCCL INFO Channel 01/1 : 1[1] -> 0[0] via P2P/CUMEM\n"
        "n:7:1 [0] NCCL INFO AllReduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n";
    nccl_log_text(&other, more, sizeof more - 1);
    transports_merge(&chosen, &other);
    transports_merge(&chosen, &other);
    CHECK_INT(nccl_log_channels(&chosen, 1, 0), ==, 1);
    CHECK_INT(nccl_log_channels(&chosen, 0, 1), ==, 1);
    CHECK_INT(chosen.choices_n, ==, 1);
}
