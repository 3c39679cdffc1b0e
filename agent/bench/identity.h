/* SPDX-License-Identifier: MIT */
/* What makes a machine this machine, as far as bandwidths go: a few words for each part, to be compared, hashed and read
 * by a person. Knows no file. */
#ifndef LAUNCH_AGENT_BENCH_IDENTITY_H
#define LAUNCH_AGENT_BENCH_IDENTITY_H

#include "../topology.h"
#include "record.h"

#define IDENTITY_BYTES 128

/* name in files, noun, may change on one machine */
#define IDENTITY_PARTS(X)                                                                          \
    X(GPUS, "gpus", "GPUs", 0)                                                                     \
    X(UUIDS, "gpu_uuids", "UUIDs of the GPUs", 0) /* a hash of them all in PCI order */            \
    X(CPU, "cpu", "CPU", 0)                                                                        \
    X(LINKS, "links", "links", 0) /* a hash of the matrix of `launch topo` and what bears on it */ \
    X(DRIVER, "driver", "driver", 1)                                                               \
    X(NCCL, "nccl", "NCCL", 1)

#define X(id, ...) IDENTITY_##id,
enum identity_part { IDENTITY_PARTS(X) IDENTITY_PARTS_N };
#undef X

struct identity {
    char part[IDENTITY_PARTS_N][IDENTITY_BYTES]; /* empty: there is none, or not known */
};

/* Of the GPUs that took part, and their host. */
void identity_read(struct identity *ret, const struct bench_run *run, const struct topology *t);

const char *identity_name(enum identity_part part);
const char *identity_noun(enum identity_part part);
bool identity_is_software(enum identity_part part);

/* FNV-1a over n bytes behind what was hashed so far; begin with IDENTITY_HASH. */
#define IDENTITY_HASH 0xcbf29ce484222325u
uint64_t identity_hash(uint64_t hash, const void *bytes, size_t n);

/* The GPU of the topology that a rank has; -1: none. */
int identity_gpu(const struct topology *t, const struct bench_device *device);

#endif
