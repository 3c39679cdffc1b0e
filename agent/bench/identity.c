/* SPDX-License-Identifier: MIT */
#include "identity.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name, *noun;
    bool software;
} parts[] = {
#define X(id, name, noun, software) {name, noun, software},
    IDENTITY_PARTS(X)
#undef X
};

const char *identity_name(enum identity_part part)
{
    return parts[part].name;
}

const char *identity_noun(enum identity_part part)
{
    return parts[part].noun;
}

bool identity_is_software(enum identity_part part)
{
    return parts[part].software;
}

uint64_t identity_hash(uint64_t hash, const void *bytes, size_t n)
{
    for (const unsigned char *at = bytes; n > 0; n--, at++)
        hash = (hash ^ *at) * 0x100000001b3u;
    return hash;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return identity_hash(hash, text, strlen(text) + 1);
}

int identity_gpu(const struct topology *t, const struct bench_device *device)
{
    for (unsigned i = 0; i < t->list.n; i++)
        if (device->bus[0] && strcasecmp(t->list.gpu[i].pci, device->bus) == 0)
            return (int)i;
    return -1;
}

/* ---- the GPUs that took part, each once, in PCI order ---- */

struct gpus {
    const struct bench_device *of[GPU_MAX];
    unsigned n;
};

static bool has(const struct gpus *gpus, const struct bench_device *device)
{
    for (unsigned i = 0; i < gpus->n; i++)
        if (strcmp(gpus->of[i]->bus, device->bus) == 0)
            return true;
    return false;
}

static void insert(struct gpus *gpus, const struct bench_device *device)
{
    unsigned at = gpus->n++;
    for (; at > 0 && strcmp(gpus->of[at - 1]->bus, device->bus) > 0; at--)
        gpus->of[at] = gpus->of[at - 1];
    gpus->of[at] = device;
}

static struct gpus gpus_of(const struct bench_run *run)
{
    struct gpus gpus = {.n = 0};
    for (unsigned i = 0; !run->host && i < run->devices_n && gpus.n < GPU_MAX; i++)
        if (run->devices[i].device >= 0 && !has(&gpus, &run->devices[i]))
            insert(&gpus, &run->devices[i]);
    return gpus;
}

/* "4 x NVIDIA H200", "2 x NVIDIA A100, 1 x NVIDIA H200". */
static void put_models(char ret[IDENTITY_BYTES], const struct gpus *gpus)
{
    size_t used = 0;
    for (unsigned i = 0; i < gpus->n && used < IDENTITY_BYTES; i++) {
        unsigned before = 0, same = 0;
        for (unsigned j = 0; j < gpus->n; j++) {
            bool equal = strcmp(gpus->of[i]->name, gpus->of[j]->name) == 0;
            before += equal && j < i;
            same += equal;
        }
        if (!before)
            used += (size_t)snprintf(ret + used, IDENTITY_BYTES - used, "%s%u x %s",
                                     used ? ", " : "", same, gpus->of[i]->name);
    }
}

/* ---- how they are connected ---- */

/* What the link may become, not what it has just slept down to. */
static uint64_t hash_gpu(uint64_t hash, const struct topology *t, int gpu)
{
    char link[32] = "?";
    if (gpu >= 0)
        snprintf(link, sizeof link, "%u x%u", t->gpu[gpu].most.gen, t->gpu[gpu].most.width);
    return hash_text(hash, link);
}

static void put_links(char ret[IDENTITY_BYTES], const struct gpus *gpus, const struct topology *t)
{
    uint64_t hash = IDENTITY_HASH;
    char first[8] = "", cell[8];
    bool mixed = false;
    for (unsigned i = 0; i < gpus->n; i++) {
        int a = identity_gpu(t, gpus->of[i]);
        hash = hash_gpu(hash, t, a);
        for (unsigned j = i + 1; j < gpus->n; j++) {
            int b = identity_gpu(t, gpus->of[j]);
            snprintf(cell, sizeof cell, "?");
            if (a >= 0 && b >= 0)
                topology_cell(t, (unsigned)a, (unsigned)b, cell);
            hash = hash_text(hash, cell);
            if (!first[0])
                memcpy(first, cell, sizeof first);
            mixed |= strcmp(first, cell) != 0;
        }
    }
    for (unsigned i = 0; i < t->nodes_n; i++)
        hash = hash_text(hash, t->node[i].cpus);
    snprintf(ret, IDENTITY_BYTES, "%s%s%016llx", mixed ? "mixed" : first, first[0] ? " " : "",
             (unsigned long long)hash);
}

static void put_nccl(char ret[IDENTITY_BYTES], int version)
{
    if (version > 0)
        snprintf(ret, IDENTITY_BYTES, "%d.%d.%d", version / 10000, version / 100 % 100,
                 version % 100);
}

/* What a file gives back as it was, whatever a driver calls its device. */
static void make_plain(char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

void identity_read(struct identity *ret, const struct bench_run *run, const struct topology *t)
{
    struct gpus gpus = gpus_of(run);
    *ret = (struct identity){.part = {{0}}};
    put_models(ret->part[IDENTITY_GPUS], &gpus);
    if (gpus.n) {
        uint64_t hash = IDENTITY_HASH;
        for (unsigned i = 0; i < gpus.n; i++)
            hash = hash_text(hash, gpus.of[i]->uuid);
        snprintf(ret->part[IDENTITY_UUIDS], IDENTITY_BYTES, "%016llx", (unsigned long long)hash);
        snprintf(ret->part[IDENTITY_DRIVER], IDENTITY_BYTES, "%s", t->driver);
        put_nccl(ret->part[IDENTITY_NCCL], run->nccl_library);
    }
    snprintf(ret->part[IDENTITY_CPU], IDENTITY_BYTES, "%s, %u CPUs",
             t->cpu_name[0] ? t->cpu_name : "unknown model", t->cpus_n);
    put_links(ret->part[IDENTITY_LINKS], &gpus, t);
    for (enum identity_part part = 0; part < IDENTITY_PARTS_N; part++)
        make_plain(ret->part[part]);
}
