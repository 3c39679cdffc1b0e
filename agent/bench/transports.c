/* SPDX-License-Identifier: MIT */
#include "transports.h"

#include "../sysfile.h"

#include <string.h>

#define TOPO_FILE "/var/run/nvidia-topologyd/virtualTopology.xml" /* NCCL's own default */

/* NCCL's path types, in its order; NODE is SYS to it. */
enum path { PATH_LOC, PATH_NVL, PATH_PIX, PATH_PXB, PATH_PHB, PATH_SYS, PATHS_N };

/* ---- what NCCL did ---- */

static enum transports_way chosen(const struct nccl_log *log, unsigned from, unsigned to)
{
    unsigned vias = log->via[from][to];
    const unsigned net =
        1u << NCCL_VIA_NET_SOCKET | 1u << NCCL_VIA_NET_IB | 1u << NCCL_VIA_NET_OTHER;
    /* The slowest it uses is what a message may meet. */
    return vias & net ? WAY_NET : vias & 1u << NCCL_VIA_SHM ? WAY_SHM : vias ? WAY_P2P : WAY_NONE;
}

/* ---- what the machine lets one expect ---- */

static int find_gpu(const struct transports *t, unsigned rank)
{
    const struct nccl_log_process *process = nccl_log_rank(t->log, (int)rank);
    for (unsigned i = 0; process && i < t->topology->list.n; i++)
        if (strcmp(t->topology->list.gpu[i].pci, process->bus) == 0)
            return (int)i;
    return -1;
}

static enum path path_between(const struct topology *t, unsigned a, unsigned b)
{
    static const enum path paths[PCI_NEAR_N] = {
        [PCI_SELF] = PATH_LOC, [PCI_PIX] = PATH_PIX,  [PCI_PXB] = PATH_PXB,
        [PCI_PHB] = PATH_PHB,  [PCI_NODE] = PATH_SYS, [PCI_SYS] = PATH_SYS};
    return t->links[a][b] ? PATH_NVL : paths[topology_near(t, a, b)];
}

/* The farthest path over which NCCL reads another GPU's memory, unless it is told otherwise. */
static enum path default_level(const struct topology *t)
{
    return strcmp(t->cpu_vendor, "AuthenticAMD") == 0 && t->list.n <= 2 ? PATH_SYS : PATH_PXB;
}

/* "PHB", or the number of an older NCCL. */
static int parse_level(const char *text)
{
    static const char *const names[PATHS_N] = {"LOC", "NVL", "PIX", "PXB", "PHB", "SYS"};
    static const enum path old[] = {PATH_LOC, PATH_PIX, PATH_PXB, PATH_PHB, PATH_SYS, PATH_SYS};
    for (int i = 0; i < PATHS_N; i++)
        if (strcmp(names[i], text) == 0)
            return i;
    return text[0] >= '0' && text[0] <= '5' && !text[1] ? (int)old[text[0] - '0'] : -1;
}

/* ---- why they differ ---- */

/* The setting, if it is there and, with value, has that value. */
static const struct nccl_setting *is_set(const struct transports *t, const char *name,
                                         const char *value)
{
    const struct nccl_setting *set = nccl_conf_find(t->conf, name);
    return set && (!value || strcmp(set->value, value) == 0) ? set : NULL;
}

/* The setting that forbids P2P over that path, or allows it although it is far; NULL: none. */
static const struct nccl_setting *about_p2p(const struct transports *t, enum path path,
                                            bool forbidden)
{
    const struct nccl_setting *off = is_set(t, "NCCL_P2P_DISABLE", "1"),
                              *level = is_set(t, "NCCL_P2P_LEVEL", NULL);
    if (off)
        return forbidden ? off : NULL;
    int most = level ? parse_level(level->value) : -1;
    return most >= 0 && (path > (enum path)most) == forbidden ? level : NULL;
}

static const char *refusal(const struct topology *t, unsigned a, unsigned b)
{
    static const char *const words[] = {
        NULL,           "the chipset can't",  "the GPU can't", "the topology does not allow it",
        "switched off", "it is not supported"};
    const struct nvml_gpu *gpu = topology_nvml(t, a);
    for (int kind = P2P_READ; gpu && kind <= P2P_WRITE; kind++) {
        if (gpu->p2p[kind][b] > 0 && (size_t)gpu->p2p[kind][b] < ARRAY_LEN(words))
            return words[gpu->p2p[kind][b]];
    }
    return NULL;
}

static bool is_virtual(const struct topology *t)
{
    char text[8192];
    return sysfile_read(text, sizeof text, t->sysroot, "/proc/cpuinfo") > 0 &&
           strstr(text, " hypervisor") != NULL;
}

static const char *library(const struct transports *t)
{
    return gpu_collectives(t->topology->list.vendor);
}

/* What bends NCCL's own picture of the machine. */
static void explain_picture(const struct transports *t, struct transports_pair *ret)
{
    const struct nccl_setting *file = is_set(t, "NCCL_TOPO_FILE", NULL);
    char first[16];
    if (file)
        snprintf(ret->why, sizeof ret->why,
                 "%s takes the topology from %.60s (NCCL_TOPO_FILE, %.100s)", library(t),
                 file->value, file->where);
    else if (sysfile_read(first, sizeof first, t->topology->sysroot, TOPO_FILE) >= 0)
        snprintf(ret->why, sizeof ret->why, "%s takes the topology from " TOPO_FILE, library(t));
    else if (is_virtual(t->topology))
        snprintf(ret->why, sizeof ret->why,
                 "a virtual machine, whose PCIe tree may not be the real one");
    else
        snprintf(ret->why, sizeof ret->why, "not known; launch doctor looks at the machine");
}

static void explain(const struct transports *t, enum path path, const char *refused,
                    struct transports_pair *ret)
{
    const struct nccl_setting *p2p = about_p2p(t, path, ret->expected == WAY_P2P),
                              *shm = is_set(t, "NCCL_SHM_DISABLE", "1");
    const struct nccl_setting *set = ret->chosen == WAY_NET && ret->expected == WAY_SHM ? shm : p2p;
    if (t->shared && ret->chosen == WAY_NET)
        snprintf(ret->why, sizeof ret->why, "--share-gpus: each rank is a host of its own to %s",
                 library(t));
    else if (set && (ret->chosen != WAY_NET || set == shm || !shm))
        snprintf(ret->why, sizeof ret->why, "%s=%s (%.120s)", set->name, set->value, set->where);
    else if (set)
        snprintf(ret->why, sizeof ret->why, "%s=%s (%.50s) and %s=%s (%.50s)", set->name,
                 set->value, set->where, shm->name, shm->value, shm->where);
    else if (refused && ret->expected == WAY_P2P)
        snprintf(ret->why, sizeof ret->why, "the driver refuses P2P: %s", refused);
    else if (t->log->p2p_disabled_n && ret->expected == WAY_P2P)
        snprintf(ret->why, sizeof ret->why, "%s's log: the driver keeps GPUs from P2P", library(t));
    else
        explain_picture(t, ret);
}

void transports_judge(const struct transports *t, unsigned from, unsigned to,
                      struct transports_pair *ret)
{
    int a = find_gpu(t, from), b = find_gpu(t, to);
    *ret = (struct transports_pair){.chosen = chosen(t->log, from, to)};
    if (a < 0 || b < 0)
        return;
    enum path path = path_between(t->topology, (unsigned)a, (unsigned)b);
    if (a != b)
        topology_cell(t->topology, (unsigned)a, (unsigned)b, ret->link);
    ret->expected = path <= default_level(t->topology) ? WAY_P2P : WAY_SHM;
    ret->differs = ret->chosen != WAY_NONE && ret->chosen != ret->expected;
    if (ret->differs)
        explain(t, path, refusal(t->topology, (unsigned)a, (unsigned)b), ret);
}

const char *transports_way_name(enum transports_way way)
{
    static const char *const names[] = {"-", "P2P", "SHM", "NET"};
    return names[way];
}

void transports_merge(struct nccl_log *log, const struct nccl_log *other)
{
    for (unsigned from = 0; from < NCCL_LOG_RANKS_MAX; from++)
        for (unsigned to = 0; to < NCCL_LOG_RANKS_MAX; to++) {
            log->via[from][to] |= other->via[from][to];
            log->channel[from][to] |= other->channel[from][to];
            log->gdr[from][to] |= other->gdr[from][to];
        }
    for (unsigned i = 0; i < other->choices_n; i++)
        nccl_log_choose(log, &other->choice[i]);
}
