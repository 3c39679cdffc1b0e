/* SPDX-License-Identifier: MIT */
/* See nvml_health.h. Any of the calls may be missing from a library. */
#include "nvml_health.h"

#include "nvml_facts.h"

#include <dlfcn.h>
#include <string.h>

#define FIELD_RECOVERY 230
#define UNCORRECTED 1
#define VOLATILE 0
#define AGGREGATE 1
#define SENSOR_GPU 0

static void *find(void *library, const char *name)
{
    return dlsym(library, name);
}

static int ask_int(void *library, const char *name, nvml_device device)
{
    int value;
    int (*call)(nvml_device, int *);
    *(void **)&call = find(library, name);
    return call && call(device, &value) == NVML_SUCCESS ? value : -1;
}

static int ask_pending(void *library, const char *name, nvml_device device)
{
    int now, pending;
    int (*call)(nvml_device, int *, int *);
    *(void **)&call = find(library, name);
    return call && call(device, &now, &pending) == NVML_SUCCESS ? pending : -1;
}

static long long ask_ecc(void *library, nvml_device device, int counter)
{
    unsigned long long n;
    int (*call)(nvml_device, int, int, unsigned long long *);
    *(void **)&call = find(library, "nvmlDeviceGetTotalEccErrors");
    return call && call(device, UNCORRECTED, counter, &n) == NVML_SUCCESS ? (long long)n : -1;
}

static void ask_rows(void *library, nvml_device device, struct nvml_health *h)
{
    unsigned corrected, lost, pending, failed;
    int (*call)(nvml_device, unsigned *, unsigned *, unsigned *, unsigned *);
    *(void **)&call = find(library, "nvmlDeviceGetRemappedRows");
    if (!call || call(device, &corrected, &lost, &pending, &failed) != NVML_SUCCESS)
        return;
    h->rows_lost = (int)lost;
    h->rows_pending = (int)pending;
    h->rows_failed = (int)failed;
}

static long long ask_slowed(void *library, nvml_device device)
{
    unsigned long long reasons;
    int (*call)(nvml_device, unsigned long long *);
    *(void **)&call = find(library, "nvmlDeviceGetCurrentClocksEventReasons");
    if (!call) /* its name before driver 535 */
        *(void **)&call = find(library, "nvmlDeviceGetCurrentClocksThrottleReasons");
    return call && call(device, &reasons) == NVML_SUCCESS ? (long long)reasons : -1;
}

static int ask_celsius(void *library, nvml_device device)
{
    unsigned celsius;
    int (*call)(nvml_device, int, unsigned *);
    *(void **)&call = find(library, "nvmlDeviceGetTemperature");
    return call && call(device, SENSOR_GPU, &celsius) == NVML_SUCCESS ? (int)celsius : -1;
}

static long long ask_used(void *library, nvml_device device)
{
    unsigned long long total_free_used[3];
    int (*call)(nvml_device, unsigned long long *);
    *(void **)&call = find(library, "nvmlDeviceGetMemoryInfo");
    return call && call(device, total_free_used) == NVML_SUCCESS ? (long long)total_free_used[2]
                                                                 : -1;
}

static int ask_recovery(void *library, nvml_device device)
{
    struct nvml_field field = {.id = FIELD_RECOVERY};
    int (*call)(nvml_device, int, struct nvml_field *);
    *(void **)&call = find(library, "nvmlDeviceGetFieldValues");
    if (!call || call(device, 1, &field) != NVML_SUCCESS || field.result != NVML_SUCCESS)
        return -1;
    return (int)field.value.u32;
}

void nvml_health_ask(void *library, nvml_device device, struct nvml_health *ret)
{
    memset(ret, -1, sizeof *ret);
    ret->ecc_now = ask_ecc(library, device, VOLATILE);
    ret->ecc_ever = ask_ecc(library, device, AGGREGATE);
    ret->slowed = ask_slowed(library, device);
    ret->used_bytes = ask_used(library, device);
    ask_rows(library, device, ret);
    ret->pages_pending = ask_int(library, "nvmlDeviceGetRetiredPagesPendingStatus", device);
    ret->recovery = ask_recovery(library, device);
    ret->celsius = ask_celsius(library, device);
    ret->mig_pending = ask_pending(library, "nvmlDeviceGetMigMode", device);
    ret->ecc_pending = ask_pending(library, "nvmlDeviceGetEccMode", device);
    ret->now_gen = ask_int(library, "nvmlDeviceGetCurrPcieLinkGeneration", device);
    ret->now_width = ask_int(library, "nvmlDeviceGetCurrPcieLinkWidth", device);
}
