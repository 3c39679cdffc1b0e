/* SPDX-License-Identifier: MIT */
/* Sweeps that nobody measured: powers of four from 1 KiB to 1 GiB, on a server that is made of words. */
#ifndef LAUNCH_TESTS_AGENT_BENCH_RIG_H
#define LAUNCH_TESTS_AGENT_BENCH_RIG_H

#include "../../agent/bench/baseline.h"
#include "../harness.h"

#include <stdio.h>
#include <stdlib.h>

#define RIG_SIZES 11
#define RIG_RANKS 4

/* Index of a size in the results. */
enum { RIG_1K, RIG_64K = 3, RIG_1M = 5, RIG_16M = 7, RIG_64M = 8, RIG_256M = 9, RIG_1G = 10 };

static inline struct bench_half rig_half(uint64_t size, double us)
{
    double alg = (double)size / us / 1e3;
    return (struct bench_half){
        .time = us, .alg_bw = alg, .bus_bw = alg * 2 * (RIG_RANKS - 1) / RIG_RANKS, .checked = 1};
}

/* scale: all times are longer by it. */
static inline void rig_run(struct bench_run *run, double scale)
{
    *run = (struct bench_run){.collective = BENCH_ALL_REDUCE,
                              .ranks = RIG_RANKS,
                              .nccl_library = 22809,
                              .nccl_headers = 22809,
                              .min_bytes = 1024,
                              .max_bytes = 1 << 30,
                              .step_factor = 4,
                              .iterations = 20,
                              .warmup = 1,
                              .check = 1,
                              .ended = true};
    run->devices = calloc(RIG_RANKS, sizeof *run->devices);
    run->results = calloc(RIG_SIZES, sizeof *run->results);
    for (int i = 0; i < RIG_RANKS; i++) {
        struct bench_device *d = &run->devices[run->devices_n++];
        *d = (struct bench_device){.rank = i, .device = i, .pid = 100 + i};
        snprintf(d->bus, sizeof d->bus, "0000:%02x:00.0", 0x18 + i);
        snprintf(d->name, sizeof d->name, "NVIDIA H200");
        snprintf(d->uuid, sizeof d->uuid, "GPU-%08x", 0xa0 + i);
        snprintf(d->host, sizeof d->host, "here");
    }
    for (uint64_t size = 1024; size <= 1 << 30; size *= 4) {
        struct bench_result *r = &run->results[run->results_n++];
        double us = scale * (20 + (double)size * 1.5 / 365e3);
        *r = (struct bench_result){.size = size,
                                   .count = size / 4,
                                   .type = BENCH_TYPE_FLOAT,
                                   .op = BENCH_OP_SUM,
                                   .root = -1,
                                   .out_of_place = rig_half(size, us),
                                   .in_place = rig_half(size, us * 1.01),
                                   .has_in_place = true};
    }
}

static inline void rig_slow(struct bench_run *run, unsigned size, double scale)
{
    struct bench_result *r = &run->results[size];
    r->out_of_place = rig_half(r->size, r->out_of_place.time * scale);
}

/* The server: every pair of GPUs has `links` NVLinks. Heap: free(). */
static inline struct topology *rig_topology(uint8_t links)
{
    struct topology *t = calloc(1, sizeof *t);
    t->list.vendor = GPU_NVIDIA;
    t->list.n = RIG_RANKS;
    t->cpus_n = 64;
    snprintf(t->cpu_name, sizeof t->cpu_name, "A CPU");
    snprintf(t->driver, sizeof t->driver, "580.95.05");
    for (unsigned i = 0; i < RIG_RANKS; i++) {
        snprintf(t->list.gpu[i].pci, sizeof t->list.gpu[i].pci, "0000:%02x:00.0", 0x18 + i);
        snprintf(t->gpu[i].pci.address, sizeof t->gpu[i].pci.address, "%s", t->list.gpu[i].pci);
        t->gpu[i].pci.numa_node = -1;
        t->gpu[i].most = (struct pci_link){5, 16};
        for (unsigned j = 0; j < RIG_RANKS; j++)
            t->links[i][j] = i == j ? 0 : links;
    }
    return t;
}

static inline void rig_baseline(struct baseline *b, const struct bench_run *runs, unsigned n)
{
    struct err err = {0};
    struct topology *t = rig_topology(18);
    if (baseline_make(b, runs, n, t, 1795985985, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    free(t);
}

/* What is written, as a heap string. (Inlined, gcc 12 takes its result for a pointer to `text` itself.) */
static __attribute__((noinline, unused)) char *rig_text(const struct baseline *b)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    baseline_write(out, b);
    fclose(out);
    return text;
}

#endif
