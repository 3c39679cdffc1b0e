/* SPDX-License-Identifier: MIT */
/* How the GPUs are set, and who is on them already. */
#include "checks.h"

#include "../topo.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MODE_EXCLUSIVE_THREAD 1
#define MODE_PROHIBITED 2
#define MODE_EXCLUSIVE 3
#define MIB ((uint64_t)1 << 20)
#define STRAY_BYTES (2048 * MIB) /* more than the driver keeps for itself */

static uint64_t bit(unsigned i)
{
    return (uint64_t)1 << i;
}

/* The GPUs of which a member of struct nvml_gpu has that value, and how many tell it at all. */
static uint64_t set_to(const struct doctor *d, size_t member, int value, unsigned *ret_told)
{
    uint64_t set = 0;
    unsigned told = 0;
    for (unsigned i = 0; i < d->t->list.n; i++) {
        const struct nvml_gpu *gpu = topology_nvml(d->t, i);
        int has = -1;
        if (gpu)
            memcpy(&has, (const char *)gpu + member, sizeof has);
        told += has >= 0;
        set |= has == value ? bit(i) : 0;
    }
    *ret_told = told;
    return set;
}
#define SET_TO(d, member, value, ret_told)                                                         \
    set_to(d, offsetof(struct nvml_gpu, member), value, ret_told)

/* Those whose mode will be another one after a reset. */
static uint64_t will_change(const struct doctor *d, size_t now, size_t pending)
{
    uint64_t set = 0;
    for (unsigned i = 0; i < d->t->list.n; i++) {
        const struct nvml_gpu *gpu = topology_nvml(d->t, i);
        int a = -1, b = -1;
        if (gpu) {
            memcpy(&a, (const char *)gpu + now, sizeof a);
            memcpy(&b, (const char *)gpu + pending, sizeof b);
        }
        set |= a >= 0 && b >= 0 && a != b ? bit(i) : 0;
    }
    return set;
}

void modes_check_mig(struct doctor *d)
{
    unsigned told;
    if (doctor_lacks_nvml(d))
        return;
    uint64_t on = SET_TO(d, mig, 1, &told),
             change = will_change(d, offsetof(struct nvml_gpu, mig),
                                  offsetof(struct nvml_gpu, health.mig_pending));
    if (on)
        doctor_find(d, VERDICT_WARNING,
                    "instances have neither P2P nor NVLink, and NCCL takes one of a GPU only",
                    "nvidia-smi -i GPU -mig 0, for jobs over several GPUs", "%s: NVML: MIG is on",
                    topo_name_gpus(on).text);
    if (change)
        doctor_find(d, VERDICT_WARNING, "the mode changes at some later moment",
                    "reset the GPU (nvidia-smi --gpu-reset), or set the mode back",
                    "%s: NVML: another MIG mode waits for a reset", topo_name_gpus(change).text);
    if (!on && !change)
        doctor_ok(d, told ? "off (NVML)" : "these GPUs have none (NVML)");
}

void modes_check_ecc(struct doctor *d)
{
    unsigned told;
    if (doctor_lacks_nvml(d))
        return;
    uint64_t off = SET_TO(d, ecc, 0, &told),
             change = will_change(d, offsetof(struct nvml_gpu, ecc),
                                  offsetof(struct nvml_gpu, health.ecc_pending));
    if (off && (unsigned)__builtin_popcountll(off) < told)
        doctor_find(d, VERDICT_WARNING, "errors of its memory go unnoticed, and its speed differs",
                    "nvidia-smi -i GPU -e 1, then reset it",
                    "%s: NVML: ECC is off, unlike on the others", topo_name_gpus(off).text);
    else if (change)
        doctor_find(d, VERDICT_WARNING, "the mode changes at some later moment",
                    "reset the GPU (nvidia-smi --gpu-reset), or set the mode back",
                    "%s: NVML: another ECC mode waits for a reset", topo_name_gpus(change).text);
    else
        doctor_ok(d, off    ? "off on all (NVML)"
                     : told ? "on (NVML)"
                            : "these GPUs have none (NVML)");
}

void modes_check_compute(struct doctor *d)
{
    unsigned told;
    if (doctor_lacks_nvml(d))
        return;
    uint64_t no = SET_TO(d, compute_mode, MODE_PROHIBITED, &told),
             one = SET_TO(d, compute_mode, MODE_EXCLUSIVE, &told) |
                   SET_TO(d, compute_mode, MODE_EXCLUSIVE_THREAD, &told);
    if (no)
        doctor_find(d, VERDICT_BROKEN, "no program can use it", "nvidia-smi -i GPU -c DEFAULT",
                    "%s: NVML: compute mode is prohibited", topo_name_gpus(no).text);
    if (one)
        doctor_find(d, VERDICT_WARNING,
                    "a second process on it gets an error: a standby, --share-gpus, a debugger's",
                    "nvidia-smi -i GPU -c DEFAULT, unless that is meant",
                    "%s: NVML: compute mode is exclusive", topo_name_gpus(one).text);
    if (!told)
        doctor_blind(d, "NVML does not tell the compute mode");
    else if (!no && !one)
        doctor_ok(d, "default (NVML)");
}

void modes_check_persistence(struct doctor *d)
{
    unsigned told;
    if (doctor_lacks_nvml(d))
        return;
    uint64_t off = SET_TO(d, persistence, 0, &told);
    if (off)
        doctor_find(d, VERDICT_WARNING,
                    "the driver sets the GPU up anew for every first program: a second or more at "
                    "each start",
                    "systemctl enable --now nvidia-persistenced, or nvidia-smi -pm 1",
                    "%s: NVML: persistence mode is off", topo_name_gpus(off).text);
    else if (told)
        doctor_ok(d, "on (NVML)");
    else
        doctor_blind(d, "NVML does not tell the persistence mode");
}

/* ---- users ---- */

static void say_users(struct doctor *d, unsigned i, const struct nvml_gpu *gpu)
{
    struct doctor_list list = {0};
    for (unsigned k = 0; k < gpu->users_n && k < NVML_USERS_MAX; k++)
        doctor_list_add(&list, "pid %d%s%s%s, %" PRIu64 " MiB", (int)gpu->user[k].pid,
                        gpu->user[k].name[0] ? " (" : "", gpu->user[k].name,
                        gpu->user[k].name[0] ? ")" : "", gpu->user[k].bytes / MIB);
    doctor_find(d, VERDICT_WARNING, "a job that takes this GPU has less memory and shares its time",
                "launch gpus tells which job it is; end what is left over, or take other GPUs "
                "(--gpus)",
                "GPU %u: NVML: %s", i, list.text);
}

/* In a container NVML hides who is outside of it; their memory shows. */
static bool has_stray(const struct nvml_gpu *gpu)
{
    return gpu->users_n == 0 && gpu->health.used_bytes > (long long)STRAY_BYTES &&
           (uint64_t)gpu->health.used_bytes > gpu->memory_bytes / 20;
}

void modes_check_users(struct doctor *d)
{
    bool any = false;
    if (doctor_lacks_nvml(d))
        return;
    for (unsigned i = 0; i < d->t->list.n; i++) {
        const struct nvml_gpu *gpu = topology_nvml(d->t, i);
        if (!gpu || (gpu->users_n == 0 && !has_stray(gpu)))
            continue;
        any = true;
        if (gpu->users_n)
            say_users(d, i, gpu);
        else
            doctor_find(
                d, VERDICT_WARNING, "jobs on this GPU may run out of its memory",
                "look on the host, outside of this container: nvidia-smi; what is left over "
                "of a dead process may take a reset",
                "GPU %u: NVML: %" PRIu64 " MiB are in use by nobody that is seen from here", i,
                (uint64_t)gpu->health.used_bytes / MIB);
    }
    if (!any)
        doctor_ok(d, "nobody (NVML)");
}
