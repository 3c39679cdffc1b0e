/* SPDX-License-Identifier: MIT */
/* The GPUs that FAKE_NVML_MACHINE=file describes (tests/machines/mkroot.py writes it as ROOT/nvml). */
#ifndef LAUNCH_TESTS_FAKE_NVML_MACHINE_H
#define LAUNCH_TESTS_FAKE_NVML_MACHINE_H

#define FAKE_GPUS_MAX 64
#define FAKE_LINKS_MAX 18
#define FAKE_MASK_WORDS 64

struct fake_gpu {
    char bus[32], uuid[64], name[96];
    unsigned minor, node;
    int numa_id, mig, ecc, mode, persistence, fabric, fabric_status, major, patch;
    int link_version, link_mbps, memory_gib, links_n;
    int link_kind[FAKE_LINKS_MAX]; /* 0 GPU, 2 switch, -1 down */
    char remote[FAKE_LINKS_MAX][32];
    int level[FAKE_GPUS_MAX], p2p[5][FAKE_GPUS_MAX];
    unsigned long cpus[FAKE_MASK_WORDS];
};

/* How many, and which; NULL: no machine is described. Read once. */
struct fake_gpu *fake_machine(unsigned *n);

/* NVML's result; the recovery action of a device (nvml_events.c). */
int fake_recovery(unsigned index, unsigned *action);

/* Of nvml_health.c; d: a device. What a "health GPU NAME VALUE" line says; without one 0 of a GPU with "told", else -1. */
long long fake_health(void *d, const char *name);
int fake_pending(void *d, const char *name, int otherwise);

#endif
