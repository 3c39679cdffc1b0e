/* SPDX-License-Identifier: MIT */
/* Over what NCCL connected each pair of ranks, beside what the machine's topology lets one expect, and why the two differ.
 * Reads no log and starts nothing. */
#ifndef LAUNCH_AGENT_BENCH_TRANSPORTS_H
#define LAUNCH_AGENT_BENCH_TRANSPORTS_H

#include "../nccl_conf.h"
#include "../nccl_log.h"
#include "../topology.h"

#include <stdio.h>

/* All borrowed. */
struct transports {
    const struct nccl_log *log;
    const struct topology *topology;
    const struct nccl_conf *conf;
    bool shared; /* --share-gpus */
};

enum transports_way {
    WAY_NONE, /* chosen: not connected; expected: nothing is known of one of the GPUs */
    WAY_P2P,
    WAY_SHM,
    WAY_NET
};

struct transports_pair {
    enum transports_way chosen, expected;
    char link[8]; /* between the GPUs, as `launch topo` has it: "NV18"; empty: not known */
    bool differs;
    char why[512]; /* they differ: why, as far as can be seen */
};

/* From rank `from` to rank `to`. */
void transports_judge(const struct transports *t, unsigned from, unsigned to,
                      struct transports_pair *ret);

/* "P2P", "SHM", "NET", "-" */
const char *transports_way_name(enum transports_way way);

/* Adds the connections and choices of another run of the same job. */
void transports_merge(struct nccl_log *log, const struct nccl_log *other);

/* transports_show.c */
void transports_text(FILE *out, const struct transports *t);
void transports_json(FILE *out, const struct transports *t);

#endif
