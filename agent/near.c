/* SPDX-License-Identifier: MIT */
#include "near.h"

void near_read(struct distances *d, const char *sysroot, const struct gpu_list *list)
{
    struct pci_device place[GPU_MAX];
    d->n = list->n;
    for (unsigned i = 0; i < list->n; i++) {
        pci_read_place(&place[i], sysroot, list->gpu[i].pci);
        place[i].numa_node = list->gpu[i].numa_node;
        for (unsigned j = 0; j <= i; j++)
            d->at[i][j] = d->at[j][i] = (uint8_t)pci_near(&place[i], &place[j]);
    }
}
