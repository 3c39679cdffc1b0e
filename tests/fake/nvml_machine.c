/* SPDX-License-Identifier: MIT */
/* The calls of libnvidia-ml that a picture of the server needs, from a described machine. Whoever describes none has no
 * links: then these say that they are not supported. FAKE_NVML_CRASH_P2P=1: the P2P call kills the process. */
#include "nvml_machine.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUCCESS 0
#define INVALID 2
#define UNSUPPORTED 3

typedef void *device; /* index + 1 */

struct pci_info {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};

struct field {
    unsigned id, scope;
    long long at, latency;
    unsigned type;
    int result;
    unsigned long long value;
};

struct fabric {
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned health;
};

struct memory {
    unsigned long long total, free, used;
};

int nvmlDeviceGetCudaComputeCapability(device d, int *major, int *patch);
int nvmlDeviceGetMemoryInfo(device d, struct memory *memory);
int nvmlDeviceGetNumaNodeId(device d, int *id);
int nvmlDeviceGetMigMode(device d, int *now, int *pending);
int nvmlDeviceGetEccMode(device d, int *now, int *pending);
int nvmlDeviceGetComputeMode(device d, int *mode);
int nvmlDeviceGetPersistenceMode(device d, int *mode);
int nvmlDeviceGetGpuFabricInfoV(device d, struct fabric *fabric);
int nvmlDeviceGetCpuAffinity(device d, unsigned words, unsigned long *mask);
int nvmlDeviceGetMemoryAffinity(device d, unsigned words, unsigned long *mask, unsigned scope);
int nvmlDeviceGetNvLinkState(device d, unsigned link, int *up);
int nvmlDeviceGetNvLinkVersion(device d, unsigned link, int *version);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(device d, unsigned link, struct pci_info *remote);
int nvmlDeviceGetNvLinkRemoteDeviceType(device d, unsigned link, int *type);
int nvmlDeviceGetFieldValues(device d, int n, struct field *fields);
int nvmlDeviceGetTopologyCommonAncestor(device a, device b, int *level);
int nvmlDeviceGetP2PStatus(device a, device b, int kind, int *status);

static struct fake_gpu gpus[FAKE_GPUS_MAX];
static unsigned gpus_n;

/* Hex digits, the most significant first. */
static void read_mask(unsigned long *mask, const char *hex)
{
    size_t n = strlen(hex);

    for (size_t i = 0; i < n && i < FAKE_MASK_WORDS * 16; i++) {
        char digit[2] = {hex[n - 1 - i], 0};
        mask[i / 16] |= strtoul(digit, NULL, 16) << i % 16 * 4;
    }
}

static void read_line(const char *line)
{
    struct fake_gpu g = {0};
    char hex[1024], remote[32];
    unsigned i, j;
    int kind, value, name = 0;

    if (sscanf(line, "gpu %u %31s %63s %u %d %d %d %d %d %d %d %d %d %d %d %d %u %1023s %n", &i,
               g.bus, g.uuid, &g.minor, &g.numa_id, &g.mig, &g.ecc, &g.mode, &g.persistence,
               &g.fabric, &g.fabric_status, &g.major, &g.patch, &g.link_version, &g.link_mbps,
               &g.memory_gib, &g.node, hex, &name) == 18 &&
        i < FAKE_GPUS_MAX) {
        snprintf(g.name, sizeof(g.name), "%.*s", (int)strcspn(line + name, "\n"), line + name);
        read_mask(g.cpus, hex);
        gpus[i] = g;
        gpus_n = i + 1 > gpus_n ? i + 1 : gpus_n;
    } else if (sscanf(line, "link %u %u %d %31s", &i, &j, &kind, remote) == 4 && i < gpus_n &&
               j < FAKE_LINKS_MAX) {
        gpus[i].link_kind[j] = kind;
        memcpy(gpus[i].remote[j], remote, sizeof(remote));
        gpus[i].links_n = (int)j + 1 > gpus[i].links_n ? (int)j + 1 : gpus[i].links_n;
    } else if (sscanf(line, "level %u %u %d", &i, &j, &value) == 3 && i < gpus_n &&
               j < FAKE_GPUS_MAX) {
        gpus[i].level[j] = value;
    } else if (sscanf(line, "p2p %d %u %u %d", &kind, &i, &j, &value) == 4 && i < gpus_n &&
               j < FAKE_GPUS_MAX && kind >= 0 && kind < 5) {
        gpus[i].p2p[kind][j] = value;
    }
}

static void read_machine(void)
{
    const char *name = getenv("FAKE_NVML_MACHINE");
    FILE *file = name ? fopen(name, "r") : NULL;
    char line[2048];

    while (file && fgets(line, sizeof(line), file))
        read_line(line);
    if (file)
        fclose(file);
}

struct fake_gpu *fake_machine(unsigned *n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* NVML may be called from several threads */
    const char *name = getenv("FAKE_NVML_MACHINE");

    pthread_once(&once, read_machine);
    *n = gpus_n;
    return name ? gpus : NULL;
}

static struct fake_gpu *of(device d)
{
    unsigned n, i = (unsigned)((uintptr_t)d - 1);
    struct fake_gpu *machine = fake_machine(&n);

    return machine && i < n ? &machine[i] : NULL;
}

static int tell(int *to, device d, size_t at)
{
    struct fake_gpu *g = of(d);

    if (!g)
        return UNSUPPORTED;
    memcpy(to, (char *)g + at, sizeof(*to));
    return *to < 0 ? UNSUPPORTED : SUCCESS;
}
#define TELL(to, d, member) tell(to, d, offsetof(struct fake_gpu, member))

int nvmlDeviceGetCudaComputeCapability(device d, int *major, int *patch)
{
    return TELL(patch, d, patch) ? UNSUPPORTED : TELL(major, d, major);
}

int nvmlDeviceGetMemoryInfo(device d, struct memory *memory)
{
    struct fake_gpu *g = of(d);

    if (!g)
        return UNSUPPORTED;
    *memory = (struct memory){.total = (unsigned long long)g->memory_gib << 30,
                              .used = fake_health(d, "used_mib") > 0
                                          ? (unsigned long long)fake_health(d, "used_mib") << 20
                                          : 0};
    return SUCCESS;
}

int nvmlDeviceGetNumaNodeId(device d, int *id)
{
    return TELL(id, d, numa_id);
}

int nvmlDeviceGetMigMode(device d, int *now, int *pending)
{
    *pending = fake_pending(d, "mig_pending", of(d) ? of(d)->mig : 0);
    return TELL(now, d, mig);
}

int nvmlDeviceGetEccMode(device d, int *now, int *pending)
{
    *pending = fake_pending(d, "ecc_pending", of(d) ? of(d)->ecc : 0);
    return TELL(now, d, ecc);
}

int nvmlDeviceGetComputeMode(device d, int *mode)
{
    return TELL(mode, d, mode);
}

int nvmlDeviceGetPersistenceMode(device d, int *mode)
{
    return TELL(mode, d, persistence);
}

int nvmlDeviceGetGpuFabricInfoV(device d, struct fabric *fabric)
{
    struct fake_gpu *g = of(d);

    if (fabric->version != (sizeof(*fabric) | 2u << 24))
        return INVALID;
    if (!g)
        return UNSUPPORTED;
    fabric->state = (unsigned char)g->fabric;
    fabric->status = g->fabric_status;
    fabric->health = (unsigned)fake_pending(d, "fabric_health", 0);
    return SUCCESS;
}

int nvmlDeviceGetCpuAffinity(device d, unsigned words, unsigned long *mask)
{
    struct fake_gpu *g = of(d);

    if (!g)
        return UNSUPPORTED;
    memset(mask, 0, words * sizeof(*mask));
    memcpy(mask, g->cpus, (words < FAKE_MASK_WORDS ? words : FAKE_MASK_WORDS) * sizeof(*mask));
    return SUCCESS;
}

int nvmlDeviceGetMemoryAffinity(device d, unsigned words, unsigned long *mask, unsigned scope)
{
    struct fake_gpu *g = of(d);

    if (!g || scope != 0)
        return UNSUPPORTED;
    memset(mask, 0, words * sizeof(*mask));
    mask[g->node / 64] = 1ul << g->node % 64;
    return SUCCESS;
}

int nvmlDeviceGetNvLinkState(device d, unsigned link, int *up)
{
    struct fake_gpu *g = of(d);

    if (!g)
        return UNSUPPORTED;
    if (link >= (unsigned)g->links_n)
        return INVALID;
    *up = g->link_kind[link] >= 0;
    return SUCCESS;
}

int nvmlDeviceGetNvLinkVersion(device d, unsigned link, int *version)
{
    (void)link;
    return TELL(version, d, link_version);
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(device d, unsigned link, struct pci_info *remote)
{
    struct fake_gpu *g = of(d);

    if (!g || link >= FAKE_LINKS_MAX)
        return UNSUPPORTED;
    *remote = (struct pci_info){0};
    snprintf(remote->bus_id, sizeof(remote->bus_id), "%s", g->remote[link]);
    sscanf(g->remote[link], "%x:%x:%x", &remote->domain, &remote->bus, &remote->device);
    return SUCCESS;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(device d, unsigned link, int *type)
{
    struct fake_gpu *g = of(d);

    if (!g || link >= FAKE_LINKS_MAX || g->link_kind[link] < 0)
        return UNSUPPORTED;
    /* A virtual machine does not tell. */
    *type = strncmp(g->remote[link], "fffffff", 7) == 0 ? 255 : g->link_kind[link];
    return SUCCESS;
}

int nvmlDeviceGetFieldValues(device d, int n, struct field *fields)
{
    struct fake_gpu *g = of(d);

    for (int i = 0; i < n; i++) {
        unsigned action = 0;
        fields[i].result = g && fields[i].id == 164 ? SUCCESS : UNSUPPORTED;
        fields[i].value = g ? (unsigned)g->link_mbps : 0;
        if (fields[i].id == 230) {
            fields[i].result = fake_recovery((unsigned)((uintptr_t)d - 1), &action);
            fields[i].value = action;
            if (fields[i].result != SUCCESS && fake_health(d, "recovery") >= 0) {
                fields[i].result = SUCCESS;
                fields[i].value = (unsigned)fake_health(d, "recovery");
            }
        }
    }
    return g || getenv("FAKE_NVML_RECOVERY") ? SUCCESS : UNSUPPORTED;
}

int nvmlDeviceGetTopologyCommonAncestor(device a, device b, int *level)
{
    struct fake_gpu *g = of(a), *h = of(b);

    if (!g || !h)
        return UNSUPPORTED;
    *level = g->level[h - gpus];
    return SUCCESS;
}

int nvmlDeviceGetP2PStatus(device a, device b, int kind, int *status)
{
    struct fake_gpu *g = of(a), *h = of(b);

    if (getenv("FAKE_NVML_CRASH_P2P"))
        abort();
    if (!g || !h || kind < 0 || kind >= 5)
        return UNSUPPORTED;
    *status = g->p2p[kind][h - gpus];
    return SUCCESS;
}
