/* SPDX-License-Identifier: MIT */
/* How well a GPU is, as NVML tells it. Asked inside the helper process of nvml_facts.c only. */
#ifndef LAUNCH_AGENT_NVML_HEALTH_H
#define LAUNCH_AGENT_NVML_HEALTH_H

#include "nvml_lib.h"

/* nvmlClocksEventReasons: those that mean that the hardware holds the clocks back. */
#define NVML_SLOWED_HARDWARE 0x08
#define NVML_SLOWED_SOFTWARE_HEAT 0x20
#define NVML_SLOWED_HEAT 0x40
#define NVML_SLOWED_POWER_BRAKE 0x80

/* -1: not told. */
struct nvml_health {
    long long ecc_now, ecc_ever; /* uncorrected errors since the driver was loaded, and ever */
    long long slowed;            /* nvmlClocksEventReasons */
    long long used_bytes;        /* of its memory, by whomever */
    int rows_pending, rows_failed, rows_lost; /* remapped rows; lost: for uncorrectable errors */
    int pages_pending;                        /* retired pages, before Ampere */
    int recovery; /* what the driver wants done (gpu_fault.h), 0: nothing; since driver 570 */
    int celsius;
    int mig_pending, ecc_pending; /* the modes after the next reset */
    int now_gen, now_width;       /* of the PCIe link */
};

/* library: of dlopen. `ret` becomes all -1 but for what is told. */
void nvml_health_ask(void *library, nvml_device device, struct nvml_health *ret);

#endif
