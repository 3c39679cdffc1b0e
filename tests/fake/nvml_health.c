/* SPDX-License-Identifier: MIT */
/* The calls of libnvidia-ml that tell how well a GPU is: from lines "health GPU NAME VALUE" of FAKE_NVML_MACHINE. A GPU
 * with a line "health GPU told 1" is well unless other lines say so; without any, these calls are not supported. Names: ecc_now
 * ecc_ever rows_lost rows_pending rows_failed pages_pending recovery slowed celsius used_mib mig_pending ecc_pending
 * fabric_health now_gen now_width. */
#include "nvml_machine.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUCCESS 0
#define UNSUPPORTED 3

typedef void *device; /* index + 1 */

int nvmlDeviceGetTotalEccErrors(device d, int kind, int counter, unsigned long long *n);
int nvmlDeviceGetRemappedRows(device d, unsigned *corrected, unsigned *lost, unsigned *pending,
                              unsigned *failed);
int nvmlDeviceGetRetiredPagesPendingStatus(device d, int *pending);
int nvmlDeviceGetCurrentClocksEventReasons(device d, unsigned long long *reasons);
int nvmlDeviceGetTemperature(device d, int sensor, unsigned *celsius);
int nvmlDeviceGetCurrPcieLinkGeneration(device d, int *gen);
int nvmlDeviceGetCurrPcieLinkWidth(device d, int *width);

/* The last such line; false: there is none. */
static bool find(device d, const char *name, long long *ret)
{
    const char *path = getenv("FAKE_NVML_MACHINE");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[2048], word[64];
    unsigned index;
    long long value;
    bool found = false;

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "health %u %63s %lli", &index, word, &value) == 3 &&
            index == (unsigned)((uintptr_t)d - 1) && strcmp(word, name) == 0) {
            *ret = value;
            found = true;
        }
    if (file)
        fclose(file);
    return found;
}

/* 0 for a GPU that is well; -1: not supported. */
long long fake_health(device d, const char *name)
{
    long long value;

    if (find(d, name, &value))
        return value;
    return find(d, "told", &value) ? 0 : -1;
}

int fake_pending(device d, const char *name, int otherwise)
{
    long long value;
    return find(d, name, &value) ? (int)value : otherwise;
}

int nvmlDeviceGetTotalEccErrors(device d, int kind, int counter, unsigned long long *n)
{
    long long value = fake_health(d, counter ? "ecc_ever" : "ecc_now");

    *n = kind == 1 && value > 0 ? (unsigned long long)value : 0;
    return value < 0 ? UNSUPPORTED : SUCCESS;
}

int nvmlDeviceGetRemappedRows(device d, unsigned *corrected, unsigned *lost, unsigned *pending,
                              unsigned *failed)
{
    if (fake_health(d, "rows_lost") < 0)
        return UNSUPPORTED;
    *corrected = 0;
    *lost = (unsigned)fake_health(d, "rows_lost");
    *pending = (unsigned)fake_health(d, "rows_pending");
    *failed = (unsigned)fake_health(d, "rows_failed");
    return SUCCESS;
}

static int tell_int(device d, const char *name, int *ret)
{
    *ret = (int)fake_health(d, name);
    return *ret < 0 ? UNSUPPORTED : SUCCESS;
}

int nvmlDeviceGetRetiredPagesPendingStatus(device d, int *pending)
{
    long long value;

    *pending = find(d, "pages_pending", &value) ? (int)value : 0;
    return find(d, "pages_pending", &value) ? SUCCESS
                                            : UNSUPPORTED; /* Ampere and later have rows */
}

int nvmlDeviceGetCurrentClocksEventReasons(device d, unsigned long long *reasons)
{
    *reasons = (unsigned long long)fake_health(d, "slowed");
    return fake_health(d, "slowed") < 0 ? UNSUPPORTED : SUCCESS;
}

int nvmlDeviceGetTemperature(device d, int sensor, unsigned *celsius)
{
    int value, rc = tell_int(d, "celsius", &value);

    (void)sensor;
    *celsius = rc == SUCCESS ? (unsigned)value : 0;
    return rc;
}

int nvmlDeviceGetCurrPcieLinkGeneration(device d, int *gen)
{
    return tell_int(d, "now_gen", gen);
}

int nvmlDeviceGetCurrPcieLinkWidth(device d, int *width)
{
    return tell_int(d, "now_width", width);
}
