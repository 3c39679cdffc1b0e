/* SPDX-License-Identifier: MIT */
/* What joins the GPUs: NVSwitches with their manager, NVLinks, and P2P where the topology promises it. */
#include "checks.h"

#include "../sysfile.h"
#include "../topo.h"

#include <stdio.h>
#include <string.h>

#define FABRIC_COMPLETED 3
#define LINKED_MODELS /* that have NVLink, or a place for its bridge */                            \
    "P100|V100|A30|A40|RTX A6000|A100|A800|H20|H100|H200|H800|GH200|B100|B200|B300|GB200|GB300"

static uint64_t bit(unsigned i)
{
    return (uint64_t)1 << i;
}

/* nvmlGpuFabricInfo's health mask, two bits a fact, of which 1 is yes: degraded bandwidth, and at bit 4 an unhealthy route. */
static bool is_degraded(int mask)
{
    return mask > 0 && ((mask & 3) == 1 || (mask >> 4 & 3) == 1);
}

/* A GPU of which the fabric is not asked (before Hopper) has switches all the same. */
static void say_untold(struct doctor *d, bool switched)
{
    if (switched || d->pci.switches_n)
        doctor_blind(d,
                     "%u NVSwitches, and NVML does not tell the fabric's state of these GPUs: "
                     "systemctl status nvidia-fabricmanager would",
                     d->pci.switches_n);
    else
        doctor_ok(d, "no NVSwitch: no Fabric Manager is needed");
}

bool fabric_lacks_switch(const struct doctor *d)
{
    if (d->vendor == GPU_AMD)
        return true;
    if (d->pci.switches_n)
        return false;
    for (unsigned i = 0; i < d->t->list.n; i++) {
        const struct nvml_gpu *gpu = topology_nvml(d->t, i);
        if (!gpu || gpu->switched || gpu->fabric > 0)
            return false;
    }
    return d->t->list.n > 0;
}

void fabric_check_manager(struct doctor *d)
{
    static const char start[] =
        "start nvidia-fabricmanager (on B200, nvlsm too) of exactly the driver's version: "
        "systemctl "
        "enable --now nvidia-fabricmanager; its log is /var/log/fabricmanager.log";
    uint64_t waiting = 0, failed = 0, slow = 0, done = 0;
    bool switched = false;
    if (doctor_lacks_nvml(d))
        return;
    for (unsigned i = 0; i < d->t->list.n; i++) {
        const struct nvml_gpu *gpu = topology_nvml(d->t, i);
        if (!gpu)
            continue;
        switched |= gpu->switched;
        waiting |= gpu->fabric == 1 || gpu->fabric == 2 ? bit(i) : 0;
        failed |= gpu->fabric == FABRIC_COMPLETED && gpu->fabric_status > 0 ? bit(i) : 0;
        slow |= is_degraded(gpu->fabric_health) ? bit(i) : 0;
        done |= gpu->fabric == FABRIC_COMPLETED && gpu->fabric_status == 0 ? bit(i) : 0;
    }
    if (waiting)
        doctor_find(d, VERDICT_BROKEN, "CUDA fails with error 802 (system not yet initialized)",
                    start, "%s: NVML's fabric state is not started or in progress%s%s",
                    topo_name_gpus(waiting).text, d->t->driver[0] ? "; the driver is " : "",
                    d->t->driver);
    if (failed)
        doctor_find(d, VERDICT_BROKEN, "CUDA fails with error 802, or the GPUs do not reach others",
                    start, "%s: NVML's fabric state is completed with an error",
                    topo_name_gpus(failed).text);
    if (slow)
        doctor_find(d, VERDICT_WARNING, "NVLink is slower than it should be, or goes round",
                    "see /var/log/fabricmanager.log and nvidia-smi nvlink -e; reset the GPUs; a "
                    "fault that comes back is the hardware's",
                    "%s: NVML's fabric health mask tells of degraded bandwidth or a bad route",
                    topo_name_gpus(slow).text);
    if (done && !slow)
        doctor_ok(d, "%s: the fabric is set up (NVML)", topo_name_gpus(done).text);
    else if (!waiting && !failed && !slow)
        say_untold(d, switched);
}

/* Set when the module is loaded, as images for virtual machines of one GPU do. */
static bool is_told_off(const struct doctor *d)
{
    char text[8192], value[8];
    return sysfile_read(text, sizeof text, d->sysroot, "/proc/driver/nvidia/params") > 0 &&
           sysfile_field(text, "NvLinkDisable:", value, sizeof value) && strcmp(value, "0") != 0;
}

static void judge_none(struct doctor *d)
{
    static const char told[] = "/proc/driver/nvidia/params has NvLinkDisable: 1";
    bool off = is_told_off(d);
    if (off && d->t->list.n > 1 && topology_is_model(d->t->gpu[0].name, LINKED_MODELS))
        doctor_find(d, VERDICT_WARNING, "what goes between the GPUs takes PCIe, many times slower",
                    "unless it is meant: take NVreg_NvLinkDisable out of /etc/modprobe.d or the "
                    "kernel's command line, and load the driver anew",
                    "none up: the driver was told so, %s", told);
    else if (d->t->list.n == 1)
        doctor_ok(d, "none up, and one GPU needs none%s%s", off ? "; the driver was told so, " : "",
                  off ? told : "");
    else
        doctor_ok(d, "none: these GPUs are joined by PCIe%s%s", off ? "; " : "", off ? told : "");
}

void fabric_check_links(struct doctor *d)
{
    int most = 0;
    bool all = true;
    if (doctor_lacks_nvml(d))
        return;
    for (unsigned i = 0; i < d->t->list.n; i++)
        if (topology_nvml(d->t, i) && topology_nvml(d->t, i)->links > most)
            most = topology_nvml(d->t, i)->links;
    for (unsigned i = 0; i < d->t->list.n; i++) {
        const struct nvml_gpu *gpu = topology_nvml(d->t, i);
        if (!gpu || gpu->links == most)
            continue;
        all = false;
        doctor_find(d, VERDICT_WARNING, "what goes through this GPU is slower, or takes PCIe",
                    "nvidia-smi nvlink -s and -e; reseat the bridge, reset the GPU; a link that "
                    "stays down is a case for the vendor",
                    "GPU %u: NVML has %d NVLinks up, others have %d", i, gpu->links, most);
    }
    if (all && most)
        doctor_ok(d, "%d up on every GPU", most);
    else if (all)
        judge_none(d);
}

/* ---- P2P ---- */

struct pairs {
    struct doctor_list linked, near, unknown; /* that lack P2P */
    unsigned n, good, far;
};

/* The worse of reading and writing, in the words of nvidia-smi. */
static const char *cell_of(const struct topology *t, unsigned i, unsigned j)
{
    static const enum nvml_p2p kinds[] = {P2P_READ, P2P_WRITE};
    const char *cell = "OK";
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        const char *there = topo_p2p_cell(t, kinds[k], i, j);
        const char *back = topo_p2p_cell(t, kinds[k], j, i);
        if (strcmp(there, "OK") != 0)
            cell = there;
        else if (strcmp(back, "OK") != 0)
            cell = back;
    }
    return cell;
}

static void sort_pair(const struct topology *t, unsigned i, unsigned j, struct pairs *pairs)
{
    const char *cell = cell_of(t, i, j);
    pairs->n++;
    if (strcmp(cell, "OK") == 0)
        pairs->good++;
    else if (strcmp(cell, "U") == 0)
        doctor_list_add(&pairs->unknown, "%u-%u", i, j);
    else if (t->links[i][j])
        doctor_list_add(&pairs->linked, "%u-%u %s", i, j, cell);
    else if (topology_near(t, i, j) <= PCI_PXB)
        doctor_list_add(&pairs->near, "%u-%u %s", i, j, cell);
    else
        pairs->far++;
}

/* AMD's P2P is not told. */
bool fabric_lacks_p2p(const struct doctor *d)
{
    if (d->vendor != GPU_NVIDIA || !d->t->list.n)
        return false;
    for (unsigned i = 0; i < d->t->list.n; i++)
        for (unsigned j = i + 1; j < d->t->list.n; j++) {
            const char *cell = cell_of(d->t, i, j);
            if (strcmp(cell, "OK") == 0 || strcmp(cell, "U") == 0)
                return false;
        }
    return true;
}

/* NCCL goes past P2P by itself between GPUs that only a CPU joins: that is no fault. */
void fabric_check_p2p(struct doctor *d)
{
    struct pairs pairs = {0};
    if (d->t->list.n == 1) {
        doctor_ok(d, "one GPU: there is no pair");
        return;
    }
    if (doctor_lacks_nvml(d))
        return;
    for (unsigned i = 0; i < d->t->list.n; i++)
        for (unsigned j = i + 1; j < d->t->list.n; j++)
            sort_pair(d->t, i, j, &pairs);
    if (pairs.linked.n)
        doctor_find(d, VERDICT_BROKEN,
                    "NCCL goes through host memory or refuses, although NVLink joins them",
                    "look at nvidia-smi nvlink -s and -e, reset the GPUs; without MIG and with "
                    "NVreg_ settings of P2P removed",
                    "NVML's P2P status: %s", pairs.linked.text);
    if (pairs.near.n)
        doctor_find(d, VERDICT_WARNING, "NCCL goes through host memory between them",
                    "CNS, TNS: another slot or BIOS; GNS: this model of GPU has none; DR: remove "
                    "the driver's registry key",
                    "NVML's P2P status, behind one PCIe switch: %s", pairs.near.text);
    if (pairs.unknown.n)
        doctor_blind(d, "NVML does not tell the P2P status of %s", pairs.unknown.text);
    if (!pairs.linked.n && !pairs.near.n && !pairs.unknown.n)
        doctor_ok(d,
                  pairs.far ? "%u of %u pairs have it (NVML); NCCL by default would not use it "
                              "between the others"
                            : "%u of %u pairs have it (NVML)",
                  pairs.good, pairs.n);
}
