/* SPDX-License-Identifier: MIT */
#include "../../agent/nccl_log.h"
#include "../harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct nccl_log got;

static void take(const char *text)
{
    nccl_log_text(&got, text, strlen(text));
}

/* What the pair's cell says after this one line. */
static const char *cell(const char *line, unsigned from, unsigned to)
{
    static char text[NCCL_VIA_BYTES];
    memset(&got, 0, sizeof got);
    take(line);
    return nccl_log_cell(&got, from, to, text);
}

#define W "node7:4100:4177 [0] NCCL INFO "

TEST(every_form_of_a_connection_of_two_ranks_is_known)
{
    static const struct {
        const char *line, *cell;
    } forms[] = {
        {W "Channel 00/0 : 2[2] -> 5[5] via P2P/CUMEM", "P2P/CUMEM"},
        {W "Channel 00/1 : 2[2] -> 5[5] via P2P/CUMEM/read", "P2P/CUMEM"},
        {W "Channel 00/0 : 2[2] -> 5[5] via P2P/IPC/CE", "P2P/IPC"},
        {W "Channel 07 : 2[3d000] -> 5[3e000] via P2P/IPC", "P2P/IPC"},
        {W "Ring 00 : 2[3] -> 5[7] via P2P/IPC", "P2P/IPC"},
        {W "Channel 01/0 : 2[c9000] -> 5[ce000] via P2P/IPC/read comm 0x10a5a9f0 nRanks 08",
         "P2P/IPC"},
        {W "Channel 03/0 : 2[2] -> 5[5] via P2P/direct pointer/read", "P2P/direct"},
        {W "Channel 03/0 : 2[2] -> 5[5] via P2P/indirect/4[4]", "P2P/indirect"},
        {W "Channel 03/0 : 2[2] -> 5[1] via P2P/MNNVL", "P2P/MNNVL"},
        {W "Channel 00 : 2[2] -> 5[5] via SHM/direct/direct", "SHM"},
        {W "Channel 00 : 2[2] -> 5[5] via SHM/CE/direct", "SHM"},
        {W "Ring 00 : 2[3d000] -> 5[3e000] via direct shared memory", "SHM"},
        {W "Channel 00 : 2[86000] -> 5[af000] via direct shared memory", "SHM"},
        {W "Channel 00/0 : 2[2] -> 5[0] [send] via NET/Socket/0", "NET/Socket"},
        {W "Channel 00/0 : 2[2] -> 5[0] [receive] via NET/IB/3(2)/GDRDMA/Shared", "NET/IB"},
        {W "Ring 00 : 2 -> 5 [receive] via NET/Socket/0", "NET/Socket"},
        {W "Channel 00/0 : 2[2] -> 5[0] [send] via NET/AWS Libfabric/0/GDRDMA", "NET"},
        {"[1,0]<stdout>: job-3bb8-worker-0:5666:5808 [3] NCCL INFO Channel 08/0 : 2[3] -> 5[4] via "
         "P2P/CUMEM",
         "P2P/CUMEM"},
        {"fe80::1:4100:4177 [0] NCCL INFO Channel 00/0 : 2[2] -> 5[5] via P2P/CUMEM", "P2P/CUMEM"},
        {"  | 2026-01-02T05:27:44.080Z | algo-1:180:181 [7] NCCL INFO Channel 02/0 : 2[7] -> 5[6] "
         "via P2P/CUMEM/read\r\n",
         "P2P/CUMEM"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const char *is = cell(forms[i].line, 2, 5);
        if (strcmp(is, forms[i].cell) != 0)
            test_fail(__FILE__, __LINE__, "\"%s\": %s", forms[i].line, is);
    }
    CHECK(!got.gdr[2][5]);
    cell(W "Channel 00/0 : 2[2] -> 5[0] [receive] via NET/IB/0/GDRDMA", 2, 5);
    CHECK(got.gdr[2][5]);
}

TEST(a_line_that_is_no_connection_makes_none)
{
    static const char *const lines[] = {
        W "Channel 00/16 :    0   1   2   3",
        W "Ring 00 : 7 -> 0 -> 1",
        W "Channel 00/0 : 2[2] -> 5[5]",
        W "Channel 00/0 : 2[2] -> 5[5] via",
        W "Channel 00/0 : 2[2] -> 5[5] via carrier pigeon",
        W "Channel 00/0 : 2[2 -> 5[5] via P2P/CUMEM",
        W "Channel 00/0 : 2[2] -> 64[5] via P2P/CUMEM",
        W "Channel 00/0 : 2[2] -> 99999999999999999999[5] via P2P/CUMEM",
        W "Channel 00/0 : -2[2] -> 5[5] via P2P/CUMEM",
        W "Channel 00/0 : 5[5] -> 5[5] via P2P/CUMEM",
        "Channel 00/0 : 2[2] -> 5[5] via P2P/CUMEM",
        "NCCL INFO Channel 00/0 : 2[2] -> 5[5] via P2P/CUMEM",
        ":4100:4177 [0] NCCL INFO Channel 00/0 : 2[2] -> 5[5] via P2P/CUMEM",
        "node7:4100 [0] NCCL INFO Channel 00/0 : 2[2] -> 5[5] via P2P/CUMEM",
        "node7:x:4177 [0] NCCL INFO Channel 00/0 : 2[2] -> 5[5] via P2P/CUMEM",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        cell(lines[i], 2, 5);
        for (unsigned from = 0; from < NCCL_LOG_RANKS_MAX; from++)
            for (unsigned to = 0; to < NCCL_LOG_RANKS_MAX; to++)
                if (got.via[from][to])
                    test_fail(__FILE__, __LINE__, "\"%s\": %u to %u", lines[i], from, to);
    }
}

TEST(channels_are_counted_once_and_by_direction)
{
    take(W "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n" W
           "Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM\n" W
           "Channel 01/1 : 0[0] -> 1[1] via P2P/CUMEM\n" W
           "Channel 00/0 : 1[1] -> 0[0] via SHM/direct/direct\n" W
           "Channel 02/0 : 1[1] -> 0[0] via P2P/IPC");
    CHECK_INT(nccl_log_channels(&got, 0, 1), ==, 2);
    CHECK_INT(nccl_log_channels(&got, 1, 0), ==, 2);
    char text[NCCL_VIA_BYTES];
    CHECK_STR(nccl_log_cell(&got, 1, 0, text), "P2P/IPC+SHM");
    CHECK_STR(nccl_log_cell(&got, 0, 2, text), "-");
}

#define INIT(rank, pid, what)                                                                      \
    "node7:" pid ":4177 [0] NCCL INFO ncclCommInitRankConfig comm 0x5581 rank " rank               \
    " nranks 2 cudaDev 0 nvmlDev 0 busId 1a018000 commId 0xf021d9037f9243d8 - Init " what "\n"

TEST(how_far_each_rank_came_is_told_by_its_lines)
{
    take("NCCL version 2.28.9+cuda13.0\n"
         "node7:41:41 [0] NCCL INFO Bootstrap: Using lo:127.0.0.1<0>\n");
    CHECK_STR(got.version, "2.28.9+cuda13.0");
    CHECK_INT(nccl_log_phase(NULL), ==, NCCL_PHASE_SILENT);
    CHECK_INT(nccl_log_phase(&got.process[0]), ==, NCCL_PHASE_BOOTSTRAP);
    CHECK(!nccl_log_rank(&got, 0));
    CHECK(!nccl_log_rank(&got, -1));
    take(INIT("1", "41", "START"));
    const struct nccl_log_process *process = nccl_log_rank(&got, 1);
    CHECK(process);
    CHECK_INT(process->pid, ==, 41);
    CHECK_INT(got.ranks, ==, 2);
    CHECK_STR(process->bus, "01a0:18:00.0");
    CHECK_INT(nccl_log_phase(process), ==, NCCL_PHASE_INIT);
    take(INIT("1", "41", "COMPLETE"));
    CHECK_INT(nccl_log_phase(process), ==, NCCL_PHASE_READY);
    take("node7:41:45 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[1] via P2P/CUMEM\n");
    CHECK_INT(nccl_log_phase(process), ==, NCCL_PHASE_CONNECT);
    take("node7:41:45 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 1\n");
    CHECK_INT(nccl_log_phase(process), ==, NCCL_PHASE_DATA);
    for (int phase = 0; phase <= NCCL_PHASE_DATA; phase++)
        CHECK(*nccl_phase_words((enum nccl_phase)phase));
    CHECK_INT(got.processes_n, ==, 1);
}

TEST(a_version_that_connects_during_its_initialisation_counts_as_connecting)
{
    take(INIT("0", "41", "START") "node7:41:45 [0] NCCL INFO Channel 00 : 0[18000] -> 1[3b000] via "
                                  "direct shared memory\n");
    CHECK_INT(nccl_log_phase(nccl_log_rank(&got, 0)), ==, NCCL_PHASE_CONNECT);
    take("node7:41:45 [0] NCCL INFO Connected all rings comm 0xa5 nRanks 08 busId c6000\n");
    CHECK_INT(nccl_log_phase(nccl_log_rank(&got, 0)), ==, NCCL_PHASE_DATA);
}

TEST(a_rank_that_can_not_be_is_none)
{
    take("n:41:45 [0] NCCL INFO comm 0x5 rank 2 nranks 2 cudaDev 0 busId 18000 - Init START\n"
         "n:41:45 [0] NCCL INFO comm 0x5 rank 70 nranks 99 cudaDev 0 busId 18000 - Init START\n"
         "n:41:45 [0] NCCL INFO comm 0x5 rank x nranks 2 cudaDev 0 busId 18000 - Init START\n");
    CHECK_INT(got.ranks, ==, 0);
    CHECK_INT(nccl_log_phase(&got.process[0]), ==, NCCL_PHASE_BOOTSTRAP);
}

TEST(two_gpus_of_one_process_are_two)
{
    take("n:41:45 [0] NCCL INFO comm 0x5 rank 0 nranks 2 cudaDev 0 busId 18000 - Init START\n"
         "n:41:46 [1] NCCL INFO comm 0x6 rank 1 nranks 2 cudaDev 1 busId 38000 used 67129296 bytes "
         "- Init COMPLETE\n");
    CHECK_INT(got.processes_n, ==, 2);
    CHECK_INT(nccl_log_phase(nccl_log_rank(&got, 0)), ==, NCCL_PHASE_INIT);
    CHECK_INT(nccl_log_phase(nccl_log_rank(&got, 1)), ==, NCCL_PHASE_READY);
}

TEST(a_warning_is_kept_fit_for_a_terminal)
{
    take("\n[2026-01-02 03:04:05] node7:41:45 [0] transport/nvls.cc:158 NCCL WARN Cuda failure 1 "
         "'invalid \x1b[31margument'\n");
    CHECK_STR(got.process[0].warning, "Cuda failure 1 'invalid ?[31margument'");
    CHECK_INT(got.process[0].pid, ==, 41);
}

TEST(what_nccl_says_of_the_machine_and_of_its_choices_is_kept)
{
    take(W
         "NCCL_P2P_LEVEL set by environment to LOC\n" W
         "NCCL_NTHREADS set by environment to 256.\n" W
         "NCCL_P2P_LEVEL set by environment to LOC\n" W
         "Pattern 4, crossNic 0, nChannels 12, bw 30.000000/30.000000, type NVL/PIX, sameChannels "
         "1\n" W "NVLS multicast support is not available on dev 0\n" W
         "P2P is disabled between connected GPUs 0 and 1. You can repress this message with "
         "NCCL_IGNORE_DISABLED_P2P=1.\n" W
         "AllReduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n" W
         "AllReduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n" W
         "AllReduce: 67108864 Bytes -> Algo NVLS proto SIMPLE channel{Lo..Hi}={0..15}\n" W
         "CollNet 00/0 : 3 [send] via COLLNET/SHARP/0\n");
    CHECK_INT(got.settings_n, ==, 2);
    CHECK_STR(got.setting[0].name, "NCCL_P2P_LEVEL");
    CHECK_STR(got.setting[0].value, "LOC");
    CHECK_STR(got.setting[1].value, "256");
    CHECK_STR(got.path, "NVL");
    CHECK_INT(got.nvls, ==, -1);
    CHECK_INT(got.p2p_disabled_n, ==, 1);
    CHECK_INT(got.choices_n, ==, 2);
    CHECK_STR(got.choice[1].what, "AllReduce");
    CHECK_INT(got.choice[1].bytes, ==, 67108864);
    CHECK_STR(got.choice[1].algorithm, "NVLS");
    CHECK_STR(got.choice[1].protocol, "SIMPLE");
    CHECK(got.collnet);
    take(W "NVLS comm 0x5581 headRank 0 nHeads 8 nvlsRanks 8\n");
    CHECK_INT(got.nvls, ==, 1);
}

TEST(more_than_fits_is_left_out)
{
    char line[512];
    for (int i = 0; i < 200; i++) {
        snprintf(line, sizeof line, "n:%d:%d [0] NCCL INFO NCCL_X%d set by environment to %d\n", i,
                 i, i, i);
        take(line);
        snprintf(line, sizeof line, "n:1:1 [0] NCCL INFO AllReduce: %d Bytes -> Algo A proto B\n",
                 i);
        take(line);
    }
    CHECK_INT(got.processes_n, ==, NCCL_LOG_RANKS_MAX);
    CHECK_INT(got.settings_n, ==, NCCL_LOG_LISTS_MAX);
    CHECK_INT(got.choices_n, ==, NCCL_LOG_LISTS_MAX);
    char *longest = malloc(1 << 20);
    CHECK(longest);
    memset(longest, '[', 1 << 20);
    nccl_log_line(&got, longest, 1 << 20);
    free(longest);
}
