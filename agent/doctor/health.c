/* SPDX-License-Identifier: MIT */
/* Errors of the hardware, as the driver has noticed them. */
#include "checks.h"

#include "../../proto/clock.h"
#include "../gpu_fault.h"
#include "../topo.h"
#include "../xid.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define XIDS_MAX 64

static uint64_t bit(unsigned i)
{
    return (uint64_t)1 << i;
}

/* ---- Xid ---- */

struct xids {
    unsigned n;
    struct {
        struct xid xid; /* the last one */
        unsigned count;
    } of[XIDS_MAX];
};

static void take_xid(void *user, const struct xid *xid)
{
    struct xids *xids = user;
    unsigned i = 0;
    if (xid->fault.source !=
        GPU_FAULT_XID) /* an action that was asked for; NVML tells what still is */
        return;
    while (i < xids->n &&
           (xids->of[i].xid.number != xid->number || strcmp(xids->of[i].xid.pci, xid->pci) != 0))
        i++;
    if (i == XIDS_MAX)
        return;
    xids->n += i == xids->n;
    xids->of[i].xid = *xid;
    xids->of[i].count++;
}

/* Not a program's fault, nor one that follows another. */
static bool is_hardware(const struct xid *xid)
{
    enum gpu_fault_class class = gpu_fault_class(xid->fault);
    return class >= GPU_FAULT_GPU ||
           (class == GPU_FAULT_TRANSIENT && gpu_fault_meaning(xid->fault));
}

/* The driver asks for nothing to be done: whatever was, is repaired. The address of an Xid has no function. */
static bool has_recovered(const struct doctor *d, const struct xid *xid)
{
    for (unsigned i = 0; i < d->t->list.n; i++) {
        const struct nvml_gpu *gpu = topology_nvml(d->t, i);
        if (gpu && xid_is_of(xid, d->t->list.gpu[i].pci))
            return gpu->health.recovery == 0;
    }
    return false;
}

static void say_xid(struct doctor *d, const struct xid *xid, unsigned count)
{
    uint64_t now_us = clock_now_ns() / 1000;
    uint64_t minutes = now_us > xid->at_us ? (now_us - xid->at_us) / 60000000 : 0;
    bool fatal = gpu_fault_class(xid->fault) >= GPU_FAULT_GPU;
    char text[GPU_FAULT_TEXT_BYTES];
    bool recovered = has_recovered(d, xid);
    doctor_find(d, fatal && !recovered ? VERDICT_BROKEN : VERDICT_WARNING,
                fatal ? "until it is reset, jobs on this GPU fail or hang"
                      : "jobs on this GPU may have failed because of it",
                fatal && !recovered
                    ? "reset the GPU (nvidia-smi --gpu-reset) or reboot; if it comes back, the "
                      "card, its seating, power or cooling is at fault"
                    : "nothing now; if it comes back, the card, its seating, power or cooling is "
                      "at fault",
                "/dev/kmsg: %s of GPU %s, %u times, the last one %" PRIu64 " minutes ago%s",
                gpu_fault_text(xid->fault, text), xid->pci, count, minutes,
                recovered ? "; NVML asks for no recovery" : "");
}

void health_check_xid(struct doctor *d)
{
    struct xids xids = {0};
    struct doctor_list theirs = {0};
    AUTO_FD fd = xid_open(d->sysroot, false);
    if (fd < 0) {
        doctor_blind(d, "/dev/kmsg: %s%s", strerror(-fd),
                     fd == -EPERM || fd == -EACCES
                         ? "; root may (sudo dmesg | grep Xid), or all with kernel.dmesg_restrict=0"
                     : fd == -ENOENT ? "; look on the host: dmesg | grep Xid"
                                     : "");
        return;
    }
    xid_read(fd, take_xid, &xids);
    for (unsigned i = 0; i < xids.n; i++) {
        const struct xid *xid = &xids.of[i].xid;
        if (is_hardware(xid))
            say_xid(d, xid, xids.of[i].count);
        else
            doctor_list_add(&theirs, "%u of %s (%u times)", xid->number, xid->pci,
                            xids.of[i].count);
    }
    if (theirs.n)
        doctor_ok(d, "/dev/kmsg: Xids that are a program's own mostly: %s", theirs.text);
    if (xids.n == 0)
        doctor_ok(d, "/dev/kmsg: no Xid in what the kernel has kept");
}

/* ---- what NVML counts ---- */

/* GPUs of which a member of their health is above 0, and how many tell it at all. */
static uint64_t above_zero(const struct doctor *d, size_t member, unsigned *ret_told)
{
    uint64_t set = 0;
    *ret_told = 0;
    for (unsigned i = 0; i < d->t->list.n; i++) {
        const struct nvml_gpu *gpu = topology_nvml(d->t, i);
        int value = -1;
        if (gpu)
            memcpy(&value, (const char *)&gpu->health + member, sizeof value);
        *ret_told += value >= 0;
        set |= value > 0 ? bit(i) : 0;
    }
    return set;
}
#define ABOVE_ZERO(d, member, ret_told)                                                            \
    above_zero(d, offsetof(struct nvml_health, member), ret_told)

void health_check_ecc(struct doctor *d)
{
    unsigned told = 0, bad = 0;
    long long ever = 0;
    if (doctor_lacks_nvml(d))
        return;
    for (unsigned i = 0; i < d->t->list.n; i++) {
        const struct nvml_gpu *gpu = topology_nvml(d->t, i);
        if (!gpu || gpu->health.ecc_now < 0)
            continue;
        told++;
        ever += gpu->health.ecc_ever > 0 ? gpu->health.ecc_ever : 0;
        bad += gpu->health.ecc_now > 0;
        if (gpu->health.ecc_now > 0)
            doctor_find(d, VERDICT_WARNING,
                        "a program that touched that memory was ended, or its data is wrong",
                        "reset the GPU (nvidia-smi --gpu-reset), so that the rows are replaced; if "
                        "they come back, have it exchanged",
                        "GPU %u: %lld uncorrectable memory errors since the driver was loaded "
                        "(NVML), %lld ever",
                        i, gpu->health.ecc_now, gpu->health.ecc_ever);
    }
    if (!told)
        doctor_blind(d, "NVML does not tell of memory errors of these GPUs");
    else if (!bad)
        doctor_ok(d, "no uncorrectable error since the driver was loaded; %lld ever (NVML)", ever);
}

void health_check_rows(struct doctor *d)
{
    unsigned told, told_pages, unused;
    if (doctor_lacks_nvml(d))
        return;
    uint64_t failed = ABOVE_ZERO(d, rows_failed, &told),
             pending = ABOVE_ZERO(d, rows_pending, &unused),
             pages = ABOVE_ZERO(d, pages_pending, &told_pages),
             lost = ABOVE_ZERO(d, rows_lost, &unused);
    if (failed)
        doctor_find(d, VERDICT_BROKEN, "it has no spare rows left where its memory fails",
                    "have the GPU exchanged; until then leave it out (CUDA_VISIBLE_DEVICES)",
                    "%s: NVML: a memory row could not be remapped", topo_name_gpus(failed).text);
    if (pending | pages)
        doctor_find(d, VERDICT_WARNING, "the memory that failed is still in use",
                    "end its programs and reset it: nvidia-smi --gpu-reset, or reboot",
                    "%s: NVML: memory rows or pages wait for a reset to be replaced",
                    topo_name_gpus(pending | pages).text);
    if (!told && !told_pages)
        doctor_blind(d, "NVML tells nothing of rows or pages of these GPUs");
    else if (!failed && !(pending | pages))
        doctor_ok(d,
                  lost ? "NVML: nothing pending, nothing failed; rows were replaced for "
                         "uncorrectable errors before on %s"
                       : "NVML: nothing pending, nothing failed%s",
                  lost ? topo_name_gpus(lost).text : "");
}

void health_check_recovery(struct doctor *d)
{
    unsigned told;
    char text[GPU_FAULT_TEXT_BYTES];
    if (doctor_lacks_nvml(d))
        return;
    uint64_t asks = ABOVE_ZERO(d, recovery, &told);
    for (unsigned i = 0; i < d->t->list.n; i++) {
        int action = asks & bit(i) ? topology_nvml(d->t, i)->health.recovery : 0;
        if (action > 0)
            doctor_find(
                d, VERDICT_BROKEN, "jobs on this GPU fail or hang until that is done",
                "end its programs, then do what the driver asks for: nvidia-smi "
                "--gpu-reset -i GPU, or reboot",
                "GPU %u: NVML: %s", i,
                gpu_fault_text((struct gpu_fault){GPU_FAULT_RECOVERY, (unsigned)action}, text));
    }
    if (!told)
        doctor_blind(d, "NVML has no recovery action here: it came with driver 570");
    else if (!asks)
        doctor_ok(d, "NVML's recovery action is none");
}

void health_check_clocks(struct doctor *d)
{
    static const struct {
        long long bits;
        const char *words;
    } rows[] = {
        {NVML_SLOWED_HEAT | NVML_SLOWED_SOFTWARE_HEAT, "heat"},
        {NVML_SLOWED_POWER_BRAKE, "an external power brake"},
        {NVML_SLOWED_HARDWARE, "the hardware (heat, power brake or supply)"},
    };
    unsigned told = 0, slow = 0;
    if (doctor_lacks_nvml(d))
        return;
    for (unsigned i = 0; i < d->t->list.n; i++) {
        const struct nvml_gpu *gpu = topology_nvml(d->t, i);
        if (!gpu || gpu->health.slowed < 0)
            continue;
        told++;
        size_t k = 0;
        while (k < ARRAY_LEN(rows) && !(gpu->health.slowed & rows[k].bits))
            k++;
        if (k == ARRAY_LEN(rows))
            continue;
        slow++;
        char celsius[24] = "";
        if (gpu->health.celsius >= 0)
            snprintf(celsius, sizeof celsius, "; %d C", gpu->health.celsius % 1000);
        doctor_find(d, VERDICT_WARNING, "it computes slower, and all ranks wait for it",
                    "fans, airflow, inlet temperature; power cables and supplies; nvidia-smi -q -d "
                    "PERFORMANCE,TEMPERATURE",
                    "GPU %u: NVML: clocks held back by %s (0x%llx)%s", i, rows[k].words,
                    (unsigned long long)gpu->health.slowed, celsius);
    }
    if (!told)
        doctor_blind(d, "NVML does not tell why clocks are held back");
    else if (!slow)
        doctor_ok(d, "neither heat nor power supply holds them back now (NVML)");
}
