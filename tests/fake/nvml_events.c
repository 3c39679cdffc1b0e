/* SPDX-License-Identifier: MIT */
/* NVML's events, and what the driver wants done about a GPU.
 *
 *   FAKE_NVML_EVENTS=file    lines "device type data" (type in hex) that are appended are events; FILE.ready is made when somebody
 *                            listens. Unset: there are no events.
 *   FAKE_NVML_RECOVERY=file  lines "device action": the recovery action of those devices, read at every call
 *   FAKE_NVML_EVENTS_HANG=1  a wait for events never comes back */
#include "nvml_machine.h"

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SUCCESS 0
#define INVALID 2
#define UNSUPPORTED 3
#define TIMEOUT 10
#define TYPES 0xfc0full /* those of a data centre GPU */
#define TICK_MS 5

typedef void *device; /* index + 1 */

struct event {
    device device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

int nvmlEventSetCreate(void **set);
int nvmlDeviceGetSupportedEventTypes(device d, unsigned long long *types);
int nvmlDeviceRegisterEvents(device d, unsigned long long types, void *set);
int nvmlEventSetWait_v2(void *set, struct event *event, unsigned timeout_ms);

static struct set {
    FILE *file;
    unsigned long long types[FAKE_GPUS_MAX];
} only;

int nvmlEventSetCreate(void **set)
{
    const char *name = getenv("FAKE_NVML_EVENTS");

    if (!name)
        return UNSUPPORTED;
    only.file = fopen(name, "a+");
    if (!only.file)
        return INVALID;
    fseek(only.file, 0, SEEK_END);
    *set = &only;
    return SUCCESS;
}

int nvmlDeviceGetSupportedEventTypes(device d, unsigned long long *types)
{
    (void)d;
    *types = TYPES;
    return SUCCESS;
}

int nvmlDeviceRegisterEvents(device d, unsigned long long types, void *set)
{
    uintptr_t i = (uintptr_t)d - 1;

    if (set != &only || i >= FAKE_GPUS_MAX || types & ~TYPES)
        return INVALID;
    only.types[i] = types;
    return SUCCESS;
}

static void tell_ready(void)
{
    char name[4096];
    FILE *file;

    snprintf(name, sizeof(name), "%s.ready", getenv("FAKE_NVML_EVENTS"));
    file = fopen(name, "w");
    if (file)
        fclose(file);
}

int nvmlEventSetWait_v2(void *set, struct event *event, unsigned timeout_ms)
{
    char line[128];
    unsigned i;

    (void)set;
    tell_ready();
    while (getenv("FAKE_NVML_EVENTS_HANG"))
        pause();
    for (unsigned passed = 0; passed < timeout_ms; passed += TICK_MS) {
        clearerr(only.file);
        while (fgets(line, sizeof(line), only.file)) {
            *event = (struct event){0};
            if (sscanf(line, "%u %llx %llu", &i, &event->type, &event->data) != 3 ||
                i >= FAKE_GPUS_MAX || !(only.types[i] & event->type))
                continue;
            event->device = (device)(uintptr_t)(i + 1);
            return SUCCESS;
        }
        poll(NULL, 0, TICK_MS);
    }
    return TIMEOUT;
}

int fake_recovery(unsigned index, unsigned *action)
{
    const char *name = getenv("FAKE_NVML_RECOVERY");
    FILE *file = name ? fopen(name, "r") : NULL;
    unsigned i, wanted;

    if (!name)
        return UNSUPPORTED;
    *action = 0;
    while (file && fscanf(file, "%u %u", &i, &wanted) == 2)
        if (i == index)
            *action = wanted;
    if (file)
        fclose(file);
    return SUCCESS;
}
