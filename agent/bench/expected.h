/* SPDX-License-Identifier: MIT */
/* What servers of a kind are known to reach with large messages: one table, each row with its source. A machine that is
 * not in it has no expectation: nothing is claimed. */
#ifndef LAUNCH_AGENT_BENCH_EXPECTED_H
#define LAUNCH_AGENT_BENCH_EXPECTED_H

#include "../topology.h"
#include "record.h"

#include <stdio.h>

enum expected_link { EXPECTED_PCIE, EXPECTED_NVLINK, EXPECTED_XGMI, EXPECTED_LINKS_N };

struct expected {
    const char *model;   /* part of the GPU's name; several with '|' between them */
    const char *but_not; /* a part of the name of another one; NULL: none */
    int gpus;
    enum expected_link link; /* of every pair */
    enum bench_collective collective;
    double low, high; /* bus bandwidth in GB/s; the same, where one figure is known */
    double plain;     /* what is left of it without NVLS, GB/s; 0: not known, or it needs no NVLS */
    uint64_t from_bytes; /* messages of at least this size reach it */
    bool estimated;      /* reasoned, not measured */
    const char *how;     /* "ring", "NVLS", ...; "": not told */
    const char *source;
};

extern const struct expected EXPECTED[];
extern const unsigned EXPECTED_N;

/* What joins the GPUs of a run: NVLink or xGMI, if every two of them have some. */
enum expected_link expected_link(const struct bench_run *run, const struct topology *t);

/* NULL: nothing is known of such a run; nor of one in host memory, of different GPUs or with several ranks on one. */
const struct expected *expected_find(const struct bench_run *run, enum expected_link link);

/* The best bus bandwidth among the messages that count; 0: none was that large. */
double expected_reached(const struct expected *e, const struct bench_run *run);
/* Below this share of `low` something is worth a look: 0.85, or 0.6 for PCIe, which differs more from server to server. */
double expected_least(const struct expected *e);

/* "365 GB/s", "10 to 20 GB/s (an estimate)"; "8 x H200 over NVLink, NVLS". */
#define EXPECTED_BYTES 96
const char *expected_value(const struct expected *e, char ret[EXPECTED_BYTES]);
const char *expected_machine(const struct expected *e, char ret[EXPECTED_BYTES]);

/* Lines that begin with '#': what is expected, where that comes from, and what was reached. */
void expected_put(FILE *out, const struct expected *e, const struct bench_run *run);

#endif
