/* SPDX-License-Identifier: MIT */
#include "ranklist.h"

#include <stdio.h>

void ranklist_begin(struct ranklist *list, char *text, size_t size, uint32_t most)
{
    *list = (struct ranklist){.text = text, .size = size, .most = most};
    text[0] = '\0';
}

void ranklist_add(struct ranklist *list, uint32_t rank)
{
    if (list->n++ < list->most && list->used < list->size)
        list->used += (size_t)snprintf(list->text + list->used, list->size - list->used, "%s%u",
                                       list->n > 1 ? ", " : "", rank);
}

uint32_t ranklist_end(struct ranklist *list)
{
    if (list->n > list->most && list->used < list->size)
        snprintf(list->text + list->used, list->size - list->used, " and %u more",
                 list->n - list->most);
    return list->n;
}
