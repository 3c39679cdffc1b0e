/* SPDX-License-Identifier: MIT */
/* RCCL has NCCL's interface; the includer has HIP's names (worker/gpu_api.h). */
#include "../nccl.h"
