/* SPDX-License-Identifier: MIT */
/* The fake CUDA's interface under HIP's names, and what only HIP has. Names agree with HIP's own header, not all values and
 * layouts do: what is to run with the fake library is compiled against this. */
#ifndef LAUNCH_FAKE_HIP_RUNTIME_API_H
#define LAUNCH_FAKE_HIP_RUNTIME_API_H

#include "../../../../worker/gpu_api.h"

#include "../cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hipUUID_t {
    char bytes[16];
} hipUUID;

hipError_t hipDeviceGetUuid(hipUUID *uuid, int device);

#ifdef __cplusplus
}
#endif

#endif
