/* SPDX-License-Identifier: MIT */
/* What NCCL's and RCCL's own log (NCCL_DEBUG=INFO) says of a job: how far each rank came, and over what each pair of
 * ranks is connected. Lines of all versions from 2.4 on are known; their text is input from programs that may be broken:
 * what makes no sense is no such line. Reads no file. */
#ifndef LAUNCH_AGENT_NCCL_LOG_H
#define LAUNCH_AGENT_NCCL_LOG_H

#include "gpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_LOG_RANKS_MAX GPU_MAX
#define NCCL_LOG_LISTS_MAX 32

/* id, as NCCL writes it, over what, for a person. NET_OTHER: a plugin's. */
#define NCCL_VIAS(X)                                                                               \
    X(P2P_CUMEM, "P2P/CUMEM", "GPU memory, mapped into the other process (cuMem)")                 \
    X(P2P_IPC, "P2P/IPC", "GPU memory, mapped into the other process (CUDA IPC)")                  \
    X(P2P_DIRECT, "P2P/direct", "GPU memory of one process")                                       \
    X(P2P_INDIRECT, "P2P/indirect", "GPU memory, through a third GPU")                             \
    X(MNNVL, "P2P/MNNVL", "GPU memory over NVLink between nodes")                                  \
    X(SHM, "SHM", "the host's memory")                                                             \
    X(NET_SOCKET, "NET/Socket", "TCP sockets")                                                     \
    X(NET_IB, "NET/IB", "InfiniBand or RoCE")                                                      \
    X(NET_OTHER, "NET", "a network plugin")

#define X(id, ...) NCCL_VIA_##id,
enum nccl_via { NCCL_VIAS(X) NCCL_VIAS_N };
#undef X

/* How far a process came. */
enum nccl_phase {
    NCCL_PHASE_SILENT,    /* not a line */
    NCCL_PHASE_BOOTSTRAP, /* NCCL was called, no communicator yet */
    NCCL_PHASE_INIT,      /* sets up a communicator: waits for the others, looks at the machine */
    NCCL_PHASE_READY,     /* has one; connected to nobody yet */
    NCCL_PHASE_CONNECT,   /* sets up its connections */
    NCCL_PHASE_DATA,      /* is connected: what hangs now is the data */
};

struct nccl_log_process {
    long pid;
    int device;        /* CUDA's number in the process; with pid it names a process's GPU */
    int rank;          /* -1: not told */
    char bus[20];      /* "0000:18:00.0"; empty: not told */
    unsigned lines;    /* bits, nccl_log.c */
    char warning[192]; /* the last WARN, fit for a terminal; empty: none */
};

/* "AllReduce: 4096 Bytes -> Algo RING proto LL" */
struct nccl_log_choice {
    char what[24], algorithm[24], protocol[16];
    uint64_t bytes;
};

struct nccl_log_setting {
    char name[48], value[64]; /* "NCCL_P2P_LEVEL", "LOC" */
};

struct nccl_log {
    unsigned ranks; /* as told; 0: never */
    char version[32];
    struct nccl_log_process process[NCCL_LOG_RANKS_MAX];
    unsigned processes_n;
    uint16_t via[NCCL_LOG_RANKS_MAX][NCCL_LOG_RANKS_MAX]; /* [from][to]: set of enum nccl_via */
    uint64_t channel[NCCL_LOG_RANKS_MAX]
                    [NCCL_LOG_RANKS_MAX];             /* which; those above 63 count as 63 */
    bool gdr[NCCL_LOG_RANKS_MAX][NCCL_LOG_RANKS_MAX]; /* the NIC reads the GPU's memory */
    int nvls; /* NVLink SHARP: 1 used, -1 can't be had, 0 not told */
    bool collnet;
    char path
        [16]; /* between the GPUs of a ring, as NCCL sees it: "NVL", "PIX", ...; empty: not told */
    unsigned p2p_disabled_n; /* pairs that the driver keeps from P2P, as far as told */
    struct nccl_log_choice choice[NCCL_LOG_LISTS_MAX];
    struct nccl_log_setting setting[NCCL_LOG_LISTS_MAX];
    unsigned choices_n, settings_n; /* no more than fit */
};

/* Takes one line, n bytes, with or without its newline, with whatever a launcher put before it. */
void nccl_log_line(struct nccl_log *log, const char *line, size_t n);
/* Takes a whole text. */
void nccl_log_text(struct nccl_log *log, const char *text, size_t n);

/* Adds a choice, once. */
void nccl_log_choose(struct nccl_log *log, const struct nccl_log_choice *choice);

enum nccl_phase nccl_log_phase(const struct nccl_log_process *process);
/* "setting up connections": where ranks in that phase are. */
const char *nccl_phase_words(enum nccl_phase phase);
/* The process of that rank; NULL: none told. */
const struct nccl_log_process *nccl_log_rank(const struct nccl_log *log, int rank);

const char *nccl_via_name(enum nccl_via via);
const char *nccl_via_words(enum nccl_via via);
/* "P2P/CUMEM", "P2P/IPC+SHM"; "-": not connected. Returns text. */
#define NCCL_VIA_BYTES 96
const char *nccl_log_cell(const struct nccl_log *log, unsigned from, unsigned to,
                          char text[NCCL_VIA_BYTES]);
unsigned nccl_log_channels(const struct nccl_log *log, unsigned from, unsigned to);

#endif
