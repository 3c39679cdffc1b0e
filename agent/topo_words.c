/* SPDX-License-Identifier: MIT */
/* What a topology means, in words. */
#include "bitset.h"
#include "topo.h"

#include <string.h>

#define PAIRS_SHOWN 8

/* ---- names ---- */

const char *topo_p2p_cell(const struct topology *t, enum nvml_p2p kind, unsigned i, unsigned j)
{
    /* In the order of nvmlGpuP2PStatus_t. */
    static const char *const cells[] = {"OK", "CNS", "GNS", "TNS", "DR", "NS"};
    const struct nvml_gpu *gpu = topology_nvml(t, i);
    int status = gpu ? gpu->p2p[kind][j] : -1;
    if (i == j)
        return "X";
    return status >= 0 && (size_t)status < ARRAY_LEN(cells) ? cells[status] : "U";
}

const char *topo_p2p_words(const char *cell)
{
    static const char *const words[][2] = {
        {"X", "self"},
        {"OK", "works"},
        {"CNS", "chipset not supported"},
        {"GNS", "GPU not supported"},
        {"TNS", "topology not supported"},
        {"DR", "disabled by the driver's registry key"},
        {"NS", "not supported"},
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(words[i][0], cell) == 0)
            return words[i][1];
    return "unknown";
}

const char *topo_fabric(const struct nvml_gpu *gpu)
{
    switch (gpu->fabric) {
    case 1:
        return "not started";
    case 2:
        return "in progress";
    case 3:
        return gpu->fabric_status ? "failed" : "completed";
    default:
        return NULL;
    }
}

const char *topo_compute_mode(int mode)
{
    static const char *const names[] = {"default", "exclusive thread", "prohibited",
                                        "exclusive process"};
    return mode >= 0 && (size_t)mode < ARRAY_LEN(names) ? names[mode] : "?";
}

void topo_link(struct pci_link link, char ret[16])
{
    if (link.gen && link.width)
        snprintf(ret, 16, "gen%u x%u", link.gen % 100, link.width % 100);
    else
        snprintf(ret, 16, "-");
}

/* ---- groups of GPUs: a bit for each ---- */

struct topo_gpus topo_name_gpus(uint64_t set)
{
    struct topo_gpus name;
    const char *word = set & (set - 1) ? "GPUs " : "GPU ";
    struct bitset numbers = {.word = {set}};
    snprintf(name.text, sizeof name.text, "%s", word);
    bitset_text(&numbers, name.text + strlen(word), sizeof name.text - strlen(word));
    return name;
}

static uint64_t bit(unsigned i)
{
    return (uint64_t)1 << i;
}

static uint64_t all_gpus(const struct topology *t)
{
    return t->list.n == GPU_MAX ? ~(uint64_t)0 : bit(t->list.n) - 1;
}

static bool linked(const struct topology *t, unsigned i, unsigned j)
{
    return t->links[i][j] > 0;
}

static bool one_switch(const struct topology *t, unsigned i, unsigned j)
{
    return topology_near(t, i, j) <= PCI_PIX;
}

/* All that can be reached from GPU i over `joined` pairs. */
static uint64_t group_of(const struct topology *t, unsigned i,
                         bool (*joined)(const struct topology *, unsigned, unsigned))
{
    uint64_t group = bit(i), before = 0;
    while (group != before) {
        before = group;
        for (unsigned a = 0; a < t->list.n; a++)
            for (unsigned b = 0; group & bit(a) && b < t->list.n; b++)
                if (a != b && joined(t, a, b))
                    group |= bit(b);
    }
    return group;
}

static unsigned first_of(uint64_t group)
{
    return (unsigned)__builtin_ctzll(group);
}

/* ---- the reading ---- */

static const char *link_word(const struct topology *t)
{
    return t->list.vendor == GPU_AMD ? "xGMI" : "NVLink";
}

/* ", NV18, 478 GB/s each way": of the pair with the fewest links of the group. */
static void put_speed(FILE *out, const struct topology *t, uint64_t group)
{
    unsigned a = 0, b = 0, least = 0;
    for (unsigned i = 0; i < t->list.n; i++)
        for (unsigned j = 0; j < t->list.n; j++) {
            if (i == j || !(group & bit(i)) || !(group & bit(j)) || !t->links[i][j])
                continue;
            if (least && t->links[i][j] >= least)
                continue;
            least = t->links[i][j];
            a = i;
            b = j;
        }
    char cell[8];
    topology_cell(t, a, b, cell);
    fprintf(out, "%s", cell);
    if (t->link_mbps[a][b])
        fprintf(out, ", %u GB/s each way", least * t->link_mbps[a][b] / 1000);
}

static bool fully_linked(const struct topology *t, uint64_t group)
{
    for (unsigned i = 0; i < t->list.n; i++)
        for (unsigned j = 0; j < t->list.n; j++)
            if (i != j && group & bit(i) && group & bit(j) && !t->links[i][j])
                return false;
    return true;
}

static void say_all_linked(FILE *out, const struct topology *t)
{
    const struct nvml_gpu *gpu = topology_nvml(t, 0);
    bool mesh = fully_linked(t, all_gpus(t));
    fprintf(out, "All %u GPUs talk over %s (", t->list.n,
            gpu && gpu->switched ? "NVLink, through switches" : link_word(t));
    put_speed(out, t, all_gpus(t));
    fprintf(out, mesh ? ").\n" : "; not every pair is joined).\n");
    if (t->list.vendor == GPU_AMD && mesh && t->list.n > 2)
        fprintf(
            out,
            "Use all %u in one collective: a pair alone has one link, all together have %u each.\n",
            t->list.n, t->list.n - 1);
    fprintf(out,
            "Tensor parallel fits over all %u; so do data parallel and sharding (FSDP, ZeRO).\n",
            t->list.n);
}

static void say_islands(FILE *out, const struct topology *t)
{
    unsigned size = GPU_MAX, a = 0;
    enum pci_near far = PCI_SELF;
    for (uint64_t left = all_gpus(t); left;) {
        uint64_t group = group_of(t, first_of(left), linked);
        unsigned n = (unsigned)__builtin_popcountll(group);
        left &= ~group;
        if (n == 1) {
            fprintf(out, "%s has no %s.\n", topo_name_gpus(group).text, link_word(t));
            continue;
        }
        fprintf(out, "%s talk over %s (", topo_name_gpus(group).text, link_word(t));
        put_speed(out, t, group);
        fprintf(out, ").\n");
        size = n < size ? n : size;
        a = first_of(group);
        for (unsigned j = 0; j < t->list.n; j++)
            if (!(group & bit(j)) && topology_near(t, a, j) > far)
                far = topology_near(t, a, j);
    }
    fprintf(out, "Between these groups it is PCIe (%s at the farthest).\n", pci_near_name(far));
    fprintf(out,
            "Tensor parallel inside a group (of %u), data parallel or pipeline stages between "
            "groups.\n",
            size);
}

static void say_no_links(FILE *out, const struct topology *t)
{
    char link[16];
    topo_link(t->gpu[0].most, link);
    fprintf(out,
            t->list.vendor == GPU_NVIDIA && !topology_nvml(t, 0)
                ? "Over PCIe alone (NVLink is not known)"
                : "No %s: all goes over PCIe",
            link_word(t));
    if (pci_mbps(t->gpu[0].most))
        fprintf(out, ", %s, %u GB/s each way at best", link, pci_mbps(t->gpu[0].most) / 1000);
    fprintf(out, ".\n");
    enum pci_near far = PCI_SELF;
    for (unsigned i = 0; i < t->list.n; i++)
        for (unsigned j = 0; j < i; j++)
            far = topology_near(t, i, j) > far ? topology_near(t, i, j) : far;
    for (uint64_t left = all_gpus(t); left;) {
        uint64_t group = group_of(t, first_of(left), one_switch);
        left &= ~group;
        if (group & (group - 1))
            fprintf(out, "%s share a PCIe switch (PIX).\n", topo_name_gpus(group).text);
    }
    static const char *const through[PCI_NEAR_N] = {
        [PCI_PXB] = "several PCIe switches",
        [PCI_PHB] = "the CPU's PCIe host bridge",
        [PCI_NODE] = "the CPU of one NUMA node",
        [PCI_SYS] = "the link between NUMA nodes",
    };
    if (through[far])
        fprintf(out, "The farthest pair goes through %s (%s).\n", through[far], pci_near_name(far));
    fprintf(
        out,
        "Data parallel with gradient accumulation, or pipeline stages; tensor parallel would wait "
        "for the bus.\n");
}

static void say_nodes(FILE *out, const struct topology *t)
{
    unsigned with_gpus = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (unsigned k = 0; k < t->nodes_n; k++) {
            uint64_t set = 0;
            for (unsigned i = 0; i < t->list.n; i++)
                set |= t->gpu[i].pci.numa_node == t->node[k].id ? bit(i) : 0;
            if (!set)
                continue;
            if (pass == 0)
                with_gpus++;
            else
                fprintf(out, "%s: NUMA node %d, CPUs %s.\n", topo_name_gpus(set).text,
                        t->node[k].id, t->node[k].cpus);
        }
        if (with_gpus < 2)
            return;
    }
}

static void say_nics(FILE *out, const struct topology *t)
{
    if (!t->rdma_n)
        return;
    fprintf(out, "Nearest RDMA NIC: ");
    for (unsigned i = 0; i < t->list.n; i++) {
        int nic = topology_nearest_nic(t, i);
        if (nic >= 0)
            fprintf(out, "%sGPU %u %s (%s)", i ? ", " : "", i, t->nic[nic].name,
                    pci_near_name(pci_near(&t->gpu[i].pci, &t->nic[nic].pci)));
    }
    fprintf(out, ".\n");
}

char *topo_reading(const struct topology *t)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return NULL;
    if (t->list.n == 0) {
        fprintf(out, "No GPU that this process may use: the CPUs are all there is.\n");
    } else if (t->list.n == 1) {
        fprintf(out, "One GPU: there is nobody to talk to, and nothing to choose.\n");
    } else if (group_of(t, 0, linked) == all_gpus(t)) {
        say_all_linked(out, t);
    } else {
        bool any = false;
        for (unsigned i = 0; i < t->list.n; i++)
            any |= (group_of(t, i, linked) & ~bit(i)) != 0;
        if (any)
            say_islands(out, t);
        else
            say_no_links(out, t);
    }
    if (t->list.n) {
        say_nodes(out, t);
        say_nics(out, t);
    }
    return fclose(out) == 0 ? text : NULL;
}

/* ---- what looks wrong ---- */

void topo_nvml_trouble(FILE *out, const struct topology *t)
{
    if (t->list.vendor != GPU_NVIDIA)
        return;
    if (!t->nvml || !t->nvml->usable) {
        fprintf(out,
                "NVML can't be used (%s): this is the PCIe picture only; NVLink, P2P and health "
                "are not known.\n",
                t->nvml ? t->nvml->why : "no process for it");
        return;
    }
    for (unsigned i = 0; i < t->list.n; i++)
        if (t->nvml->gpu[i].error[0])
            fprintf(out, "GPU %u (%s): NVML can't use it: %s.\n", i, t->list.gpu[i].pci,
                    t->nvml->gpu[i].error);
}

static void check_width(FILE *out, const struct topology *t)
{
    for (unsigned i = 0; i < t->list.n; i++) {
        const struct topology_gpu *gpu = &t->gpu[i];
        if (gpu->now.width && gpu->now.width < gpu->most.width)
            fprintf(out,
                    "GPU %u: its PCIe link has x%u of x%u lanes: look at the slot, the riser and "
                    "the seating.\n",
                    i, gpu->now.width, gpu->most.width);
    }
}

static void check_links(FILE *out, const struct topology *t)
{
    int most = 0;
    for (unsigned i = 0; i < t->list.n; i++)
        if (topology_nvml(t, i) && topology_nvml(t, i)->links > most)
            most = topology_nvml(t, i)->links;
    for (unsigned i = 0; i < t->list.n; i++) {
        const struct nvml_gpu *gpu = topology_nvml(t, i);
        if (gpu && gpu->links < most)
            fprintf(
                out,
                "GPU %u: %d NVLinks are up, others have %d: look at nvidia-smi nvlink -s and -e.\n",
                i, gpu->links, most);
    }
}

/* The GPUs of which a mode has that value. */
static uint64_t gpus_with(const struct topology *t, size_t member, int value)
{
    uint64_t set = 0;
    for (unsigned i = 0; i < t->list.n; i++) {
        const struct nvml_gpu *gpu = topology_nvml(t, i);
        int has;
        if (!gpu)
            continue;
        memcpy(&has, (const char *)gpu + member, sizeof has);
        set |= has == value ? bit(i) : 0;
    }
    return set;
}

static void check_modes(FILE *out, const struct topology *t)
{
    static const struct {
        size_t member;
        int value;
        const char *but; /* only if others differ */
        const char *words;
    } rows[] = {
        {offsetof(struct nvml_gpu, mig), 1, NULL, "MIG is on: slices have neither P2P nor NVLink"},
        {offsetof(struct nvml_gpu, ecc), 0, "", "ECC is off, unlike on the others"},
        {offsetof(struct nvml_gpu, compute_mode), 2, NULL,
         "compute mode is prohibited: no program can use it"},
        {offsetof(struct nvml_gpu, compute_mode), 3, NULL,
         "compute mode is exclusive: a second process gets an error"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t set = gpus_with(t, rows[i].member, rows[i].value);
        if (set && (!rows[i].but || set != all_gpus(t)))
            fprintf(out, "%s: %s.\n", topo_name_gpus(set).text, rows[i].words);
    }
}

static void check_fabric(FILE *out, const struct topology *t)
{
    uint64_t waiting = 0, failed = 0, slow = 0;
    for (unsigned i = 0; i < t->list.n; i++) {
        const struct nvml_gpu *gpu = topology_nvml(t, i);
        if (!gpu)
            continue;
        waiting |= gpu->fabric == 1 || gpu->fabric == 2 ? bit(i) : 0;
        failed |= gpu->fabric == 3 && gpu->fabric_status > 0 ? bit(i) : 0;
        /* two bits each, 1 is yes: degraded bandwidth, and at bit 4 an unhealthy route */
        slow |= gpu->fabric_health > 0 &&
                        ((gpu->fabric_health & 3) == 1 || (gpu->fabric_health >> 4 & 3) == 1)
                    ? bit(i)
                    : 0;
    }
    if (waiting)
        fprintf(
            out,
            "%s: Fabric Manager has not set up the NVSwitches; CUDA fails with error 802: start "
            "nvidia-fabricmanager, of the driver's version%s%s.\n",
            topo_name_gpus(waiting).text, t->driver[0] ? " " : "", t->driver);
    if (failed)
        fprintf(out, "%s: Fabric Manager could not set it up: see its log.\n",
                topo_name_gpus(failed).text);
    if (slow)
        fprintf(out, "%s: the NVLink fabric is degraded: see the log of Fabric Manager.\n",
                topo_name_gpus(slow).text);
}

/* Pairs of which P2P reads or writes give this cell. */
static void check_p2p_cell(FILE *out, const struct topology *t, const char *cell)
{
    unsigned n = 0, pairs = 0, linked_n = 0;
    char list[PAIRS_SHOWN * 8] = "";
    for (unsigned i = 0; i < t->list.n; i++)
        for (unsigned j = i + 1; j < t->list.n; j++) {
            pairs++;
            if (strcmp(topo_p2p_cell(t, P2P_READ, i, j), cell) != 0 &&
                strcmp(topo_p2p_cell(t, P2P_WRITE, i, j), cell) != 0)
                continue;
            linked_n += t->links[i][j] > 0;
            if (n++ < PAIRS_SHOWN)
                snprintf(list + strlen(list), sizeof list - strlen(list), "%s%u-%u",
                         *list ? " " : "", i, j);
        }
    if (!n)
        return;
    if (n == pairs)
        fprintf(out, "P2P is off between all GPUs");
    else
        fprintf(out, "P2P is off for %u of %u pairs (%s%s)", n, pairs, list,
                n > PAIRS_SHOWN ? " ..." : "");
    fprintf(out, ": %s (%s)%s; NCCL goes through host memory.\n", topo_p2p_words(cell), cell,
            linked_n ? ", although NVLink joins them" : "");
}

static void check_p2p(FILE *out, const struct topology *t)
{
    static const char *const cells[] = {"CNS", "GNS", "TNS", "DR", "NS"};
    for (size_t i = 0; i < ARRAY_LEN(cells); i++)
        check_p2p_cell(out, t, cells[i]);
}

static void check_places(FILE *out, const struct topology *t)
{
    uint64_t lost = 0;
    for (unsigned i = 0; i < t->list.n; i++)
        lost |= t->gpu[i].pci.numa_node < 0 ? bit(i) : 0;
    if (lost)
        fprintf(out, "%s: the firmware does not tell the NUMA node; NODE and SYS are a guess.\n",
                topo_name_gpus(lost).text);
    for (unsigned i = 0; i < t->rdma_n; i++)
        if (t->nic[i].down)
            fprintf(out, "NIC%u (%s): its port is down.\n", i, t->nic[i].name);
}

char *topo_wrong(const struct topology *t)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return NULL;
    topo_nvml_trouble(out, t);
    check_fabric(out, t);
    check_links(out, t);
    check_p2p(out, t);
    check_width(out, t);
    check_modes(out, t);
    check_places(out, t);
    return fclose(out) == 0 ? text : NULL;
}
