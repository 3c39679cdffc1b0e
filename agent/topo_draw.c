/* SPDX-License-Identifier: MIT */
/* What the pictures of a topology share: which devices are drawn together. */
#include "topo.h"

#include <string.h>

#define SWITCHED_STEPS 4 /* host bridge, root port, a bridge of the switch, the device */

void topo_put_xml(FILE *out, const char *text)
{
    static const char *const escapes[][2] = {
        {"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}};
    for (; *text; text++) {
        size_t i = 0;
        while (i < ARRAY_LEN(escapes) && *escapes[i][0] != *text)
            i++;
        if (i < ARRAY_LEN(escapes))
            fputs(escapes[i][1], out);
        else /* names come from drivers: what is not plain text is not passed on */
            fputc(*text >= ' ' && *text < 127 ? *text : '?', out);
    }
}

unsigned topo_devices(const struct topology *t)
{
    return t->list.n + t->nics_n;
}

bool topo_is_gpu(const struct topology *t, unsigned device)
{
    return device < t->list.n;
}

const struct pci_device *topo_device(const struct topology *t, unsigned device)
{
    return topo_is_gpu(t, device) ? &t->gpu[device].pci : &t->nic[device - t->list.n].pci;
}

/* Host bridge and the first bridge below it, as the beginning of the path; 0: there is no such bridge. */
static size_t branch_bytes(const struct pci_device *device)
{
    const char *step[3];
    size_t bytes[3];
    if (pci_steps(device, step, bytes, 3) < 3)
        return 0;
    return (size_t)(step[1] - step[0]) + bytes[1];
}

bool topo_one_branch(const struct topology *t, unsigned a, unsigned b)
{
    const struct pci_device *x = topo_device(t, a), *y = topo_device(t, b);
    size_t n = branch_bytes(x);
    return a == b || (n && n == branch_bytes(y) && memcmp(x->path, y->path, n) == 0);
}

bool topo_opens_branch(const struct topology *t, unsigned device)
{
    for (unsigned other = 0; other < device; other++)
        if (topo_one_branch(t, device, other))
            return false;
    return true;
}

bool topo_is_switch(const struct topology *t, unsigned device)
{
    const char *step[SWITCHED_STEPS];
    size_t bytes[SWITCHED_STEPS];
    unsigned n = 0;
    for (unsigned other = 0; other < topo_devices(t); other++)
        n += topo_one_branch(t, device, other) &&
             pci_steps(topo_device(t, other), step, bytes, SWITCHED_STEPS) == SWITCHED_STEPS;
    return n > 1;
}

enum topo_middle topo_middle(const struct topology *t)
{
    const struct nvml_gpu *gpu = t->list.n ? topology_nvml(t, 0) : NULL;
    for (unsigned i = 0; i < t->list.n; i++)
        for (unsigned j = 0; j < t->list.n; j++)
            if (i != j && !t->links[i][j])
                return TOPO_NO_MIDDLE;
    if (t->list.n < 2)
        return TOPO_NO_MIDDLE;
    if (gpu && gpu->switched)
        return TOPO_SWITCHES;
    return t->list.n > 2 ? TOPO_MESH : TOPO_NO_MIDDLE;
}

void topo_put_speed(const struct topology *t, unsigned i, unsigned j, char ret[40])
{
    double gbytes = t->link_mbps[i][j] / 1000.0;
    if (!t->link_mbps[i][j])
        snprintf(ret, 40, "%u links", t->links[i][j]);
    else if (t->links[i][j] == 1)
        snprintf(ret, 40, "%.1f GB/s", gbytes);
    else
        snprintf(ret, 40, "%u x %.1f GB/s", t->links[i][j], gbytes);
}

const char *topo_short_name(const char *name)
{
    static const char *const makers[] = {"NVIDIA ", "AMD Instinct ", "AMD "};
    for (size_t i = 0; i < ARRAY_LEN(makers); i++)
        if (strncmp(name, makers[i], strlen(makers[i])) == 0)
            return name + strlen(makers[i]);
    return name;
}
