/* SPDX-License-Identifier: MIT */
#include "expected.h"

#include "baseline.h"
#include "identity.h"

#include <string.h>

#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)

#define AZURE_A100 "Azure ND A100 v4 guide"
#define AZURE "Azure AI-benchmarking-guide"
#define STAS "stas00, ml-engineering"
#define LINKS_SPEED "rule: 80 % of the links' speed"
#define ADA "RTX 6000 Ada|L40S"

#define NV EXPECTED_NVLINK
#define XG EXPECTED_XGMI
#define PC EXPECTED_PCIE
#define AR BENCH_ALL_REDUCE

/* A range is what several machines were reported to do. NVLink needs large messages to fill up: at 1 GiB 97 % of the
 * end of the curve on H100, at 2 GiB 88 % on B200. */
const struct expected EXPECTED[] = {
    /* model, but_not, gpus, link, collective, low, high, plain, from, estimated, how, source */
    {"A100-SXM4", NULL, 8, NV, AR, 231.6, 234.9, 0, GIB, false, "ring", AZURE_A100 "; " STAS},
    {"H100", "PCIe|NVL", 8, NV, AR, 478.9, 478.9, 370, GIB, false, "NVLS", AZURE},
    {"H200", "NVL", 4, NV, AR, 363, 363, 0, GIB, false, "ring", STAS},
    {"H200", "NVL", 5, NV, AR, 414, 414, 0, GIB, false, "NVLS", STAS},
    {"H200", "NVL", 6, NV, AR, 436, 436, 0, GIB, false, "NVLS", STAS},
    {"H200", "NVL", 7, NV, AR, 460, 460, 0, GIB, false, "NVLS", STAS},
    {"H200", "NVL", 8, NV, AR, 473, 482, 367, GIB, false, "NVLS", AZURE "; " STAS},
    {"H200", "NVL", 8, NV, BENCH_ALL_GATHER, 361, 361, 0, GIB, false, "ring", STAS},
    {"H200", "NVL", 8, NV, BENCH_REDUCE_SCATTER, 363, 363, 0, GIB, false, "ring", STAS},
    {"H800", NULL, 8, NV, AR, 215, 215, 0, GIB, false, "", "reports of users"},
    {"B200", NULL, 4, NV, AR, 673, 673, 0, 2 * GIB, false, "ring", STAS},
    {"B200", NULL, 6, NV, AR, 778, 778, 0, 2 * GIB, false, "NVLS", STAS},
    {"B200", NULL, 7, NV, AR, 811, 811, 0, 2 * GIB, false, "NVLS", STAS},
    {"B200", NULL, 8, NV, AR, 838, 845.7, 682, 2 * GIB, false, "NVLS", "AWS p6-b200; " STAS},
    {"GB200", NULL, 8, NV, AR, 811, 811, 0, 2 * GIB, false, "NVLS", "one report"},
    {"A100-PCIE|A100 80GB PCIe", NULL, 2, NV, AR, 208, 208, 0, GIB, false, "bridge",
     "nccl-tests issue 178"},
    {"A100-PCIE|A100 80GB PCIe", NULL, 3, PC, AR, 20, 20, 0, 64 * MIB, false, "one bridge",
     "nccl-tests issue 178"},
    {"H100 PCIe", NULL, 8, PC, AR, 35, 45, 0, 64 * MIB, false, "", "one report"},
    {"RTX 5090", NULL, 8, PC, AR, 28, 28, 0, 64 * MIB, false, "", "nccl issue 1639"},
    {"RTX 5090", NULL, 4, PC, AR, 35, 35, 0, 64 * MIB, false, "", "nccl issue 1639"},
    {"RTX 4090", NULL, 8, PC, AR, 10, 20, 0, 64 * MIB, false, "",
     "nccl-tests issues 269, 270, 307; nccl issue 1530"},
    {"RTX 2080 Ti", NULL, 2, NV, AR, 20, 22, 0, 64 * MIB, false, "bridge", "nccl-tests issue 44"},
    {ADA, NULL, 2, PC, AR, 10, 25, 0, 64 * MIB, true, "", "rule: PCIe 4.0 x16"},
    {ADA, NULL, 4, PC, AR, 10, 25, 0, 64 * MIB, true, "", "rule: PCIe 4.0 x16"},
    {ADA, NULL, 8, PC, AR, 10, 25, 0, 64 * MIB, true, "", "rule: PCIe 4.0 x16"},
    {"MI300X", NULL, 2, XG, AR, 47.7, 47.7, 0, GIB, false, "", STAS},
    {"MI300X", NULL, 8, XG, AR, 310, 330, 0, GIB, false, "", STAS "; AMD"},
    {"MI355X", NULL, 8, XG, AR, 370, 430, 0, GIB, true, "", LINKS_SPEED},
};
const unsigned EXPECTED_N = ARRAY_LEN(EXPECTED);

/* ---- found ---- */

enum expected_link expected_link(const struct bench_run *run, const struct topology *t)
{
    bool all = run->devices_n > 1;
    for (unsigned i = 0; all && i < run->devices_n; i++)
        for (unsigned j = 0; all && j < i; j++) {
            int a = identity_gpu(t, &run->devices[i]), b = identity_gpu(t, &run->devices[j]);
            all = a >= 0 && b >= 0 && t->links[a][b];
        }
    return !all ? EXPECTED_PCIE : t->list.vendor == GPU_AMD ? EXPECTED_XGMI : EXPECTED_NVLINK;
}

/* Each rank has a GPU of its own, and all are of one model. */
static bool is_plain(const struct bench_run *run)
{
    if (run->host || !run->devices_n || run->devices_n != (unsigned)run->ranks)
        return false;
    for (unsigned i = 0; i < run->devices_n; i++) {
        if (run->devices[i].device < 0 || strcmp(run->devices[i].name, run->devices[0].name) != 0)
            return false;
        for (unsigned j = 0; j < i; j++)
            if (strcmp(run->devices[i].bus, run->devices[j].bus) == 0)
                return false;
    }
    return true;
}

const struct expected *expected_find(const struct bench_run *run, enum expected_link link)
{
    for (const struct expected *e = EXPECTED; is_plain(run) && e < EXPECTED + EXPECTED_N; e++)
        if (e->gpus == run->ranks && e->link == link && e->collective == run->collective &&
            topology_is_model(run->devices[0].name, e->model) &&
            !(e->but_not && topology_is_model(run->devices[0].name, e->but_not)))
            return e;
    return NULL;
}

double expected_reached(const struct expected *e, const struct bench_run *run)
{
    double best = 0;
    for (unsigned i = 0; i < run->results_n; i++) {
        const struct bench_result *r = &run->results[i];
        if (r->size < e->from_bytes)
            continue;
        best = r->out_of_place.bus_bw > best ? r->out_of_place.bus_bw : best;
        if (r->has_in_place && r->in_place.bus_bw > best)
            best = r->in_place.bus_bw;
    }
    return best;
}

double expected_least(const struct expected *e)
{
    return e->link == EXPECTED_PCIE ? 0.60 : 0.85;
}

/* ---- told ---- */

const char *expected_value(const struct expected *e, char ret[EXPECTED_BYTES])
{
    const char *label = e->estimated ? " (an estimate)" : "";
    if (e->low < e->high)
        snprintf(ret, EXPECTED_BYTES, "%g to %g GB/s%s", e->low, e->high, label);
    else
        snprintf(ret, EXPECTED_BYTES, "%g GB/s%s", e->low, label);
    return ret;
}

const char *expected_machine(const struct expected *e, char ret[EXPECTED_BYTES])
{
    static const char *const links[EXPECTED_LINKS_N] = {"PCIe", "NVLink", "xGMI"};
    snprintf(ret, EXPECTED_BYTES, "%d x %.*s over %s%s%s", e->gpus, (int)strcspn(e->model, "|"),
             e->model, links[e->link], e->how[0] ? ", " : "", e->how);
    return ret;
}

void expected_put(FILE *out, const struct expected *e, const struct bench_run *run)
{
    char value[EXPECTED_BYTES], machine[EXPECTED_BYTES], size[24];
    double reached = expected_reached(e, run), share = reached / e->low;
    fprintf(out, "# Expected bus bandwidth: about %s from %s up (%s; source: %s)\n",
            expected_value(e, value), baseline_put_size(e->from_bytes, size),
            expected_machine(e, machine), e->source);
    if (reached <= 0)
        fprintf(out, "# Not compared with it: no message of %s or more was measured\n", size);
    else if (share >= expected_least(e))
        fprintf(out, "# Reached: %.2f GB/s, %.0f %% of it\n", reached, 100 * share);
    else if (e->plain > 0 && reached >= expected_least(e) * e->plain)
        fprintf(out,
                "# WARNING: reached %.2f GB/s, %.0f %% of it; that is what is left without NVLS "
                "(about %g GB/s)\n",
                reached, 100 * share, e->plain);
    else
        fprintf(out,
                "# WARNING: reached %.2f GB/s, %.0f %% of it; below %.0f %% something is worth a "
                "look\n",
                reached, 100 * share, 100 * expected_least(e));
}
