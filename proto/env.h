/* SPDX-License-Identifier: MIT */
/* The name of every variable that the agent sets and a worker reads. Values: agent/environ.c. */
#ifndef LAUNCH_PROTO_ENV_H
#define LAUNCH_PROTO_ENV_H

/* Ours. None may be the LAUNCH_<NAME> of a setting: a launch inside a worker would take it for its own. */
#define ENV_BOARD_FD "LAUNCH_BOARD_FD" /* descriptor number of the board (a memfd) */
#define ENV_BELL_FD "LAUNCH_BELL_FD"   /* eventfd a worker writes when its stage changes */
#define ENV_SLOT "LAUNCH_SLOT"         /* index of this worker's slot; a standby's is a spare one */
#define ENV_GENERATION "LAUNCH_GENERATION" /* generation at start; heals go on from there */
/* In a standby, where RANK is set by launch_join(): 1; 2: it makes its GPU's context before it waits, 3: it loads NCCL, too */
#define ENV_STANDBY "LAUNCH_SPARE"
#define ENV_SHARE_GPUS "LAUNCH_GPUS_SHARED"    /* 1 with --share-gpus */
#define ENV_TOPO_DRAFT "LAUNCH_TOPOLOGY_DRAFT" /* where a standby has NCCL write what it finds */
#define ENV_SYSROOT "LAUNCH_SYSROOT" /* put before every /proc, /sys and /dev path, and NVML's */

/* sd_notify's, with --hang-timeout. */
#define ENV_NOTIFY_SOCKET "NOTIFY_SOCKET" /* where to send WATCHDOG=1 */
#define ENV_WATCHDOG_USEC "WATCHDOG_USEC" /* --hang-timeout; send at half of it */
#define ENV_WATCHDOG_PID "WATCHDOG_PID"   /* removed: not the worker's */

/* torchrun's, read by PyTorch and by frameworks on top of it. */
#define ENV_RANK "RANK"
#define ENV_LOCAL_RANK "LOCAL_RANK"
#define ENV_WORLD_SIZE "WORLD_SIZE"
#define ENV_LOCAL_WORLD_SIZE "LOCAL_WORLD_SIZE"
#define ENV_GROUP_RANK "GROUP_RANK"
#define ENV_GROUP_WORLD_SIZE "GROUP_WORLD_SIZE"
#define ENV_ROLE_NAME "ROLE_NAME"
#define ENV_ROLE_RANK "ROLE_RANK"
#define ENV_ROLE_WORLD_SIZE "ROLE_WORLD_SIZE"
#define ENV_MASTER_ADDR "MASTER_ADDR"
#define ENV_MASTER_PORT "MASTER_PORT"
#define ENV_RESTART_COUNT "TORCHELASTIC_RESTART_COUNT"
#define ENV_MAX_RESTARTS "TORCHELASTIC_MAX_RESTARTS"
#define ENV_RUN_ID "TORCHELASTIC_RUN_ID"
#define ENV_USE_AGENT_STORE "TORCHELASTIC_USE_AGENT_STORE" /* removed: rank 0 hosts the store */
#define ENV_ERROR_FILE "TORCHELASTIC_ERROR_FILE"
#define ENV_LINE_PREFIX "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE" /* read by the agent */
#define ENV_PYTHON_EXEC "PYTHON_EXEC"                           /* read by the agent */
#define ENV_SIGNALS_TO_HANDLE "TORCHELASTIC_SIGNALS_TO_HANDLE"
#define ENV_NCCL_ASYNC "TORCH_NCCL_ASYNC_ERROR_HANDLING"
#define ENV_OMP "OMP_NUM_THREADS"

/* CUDA's, ROCm's and NCCL's. */
#define ENV_CUDA_VISIBLE "CUDA_VISIBLE_DEVICES"
#define ENV_CUDA_ORDER "CUDA_DEVICE_ORDER"
#define ENV_HIP_VISIBLE "HIP_VISIBLE_DEVICES"
#define ENV_NCCL_IFNAME "NCCL_SOCKET_IFNAME"
#define ENV_NCCL_RAS "NCCL_RAS_ADDR"
#define ENV_NCCL_TOPO "NCCL_TOPO_FILE"
#define ENV_NCCL_TOPO_DUMP "NCCL_TOPO_DUMP_FILE"

/* What the agent decides for every worker: an outer job's value never reaches one, and a job file can't set it. */
#define ENV_DECIDED                                                                                \
    ENV_BOARD_FD, ENV_BELL_FD, ENV_SLOT, ENV_GENERATION, ENV_STANDBY, ENV_SHARE_GPUS,              \
        ENV_TOPO_DRAFT, ENV_RANK, ENV_LOCAL_RANK, ENV_WORLD_SIZE, ENV_LOCAL_WORLD_SIZE,            \
        ENV_GROUP_RANK, ENV_GROUP_WORLD_SIZE, ENV_ROLE_NAME, ENV_ROLE_RANK, ENV_ROLE_WORLD_SIZE,   \
        ENV_MASTER_ADDR, ENV_MASTER_PORT, ENV_RESTART_COUNT, ENV_MAX_RESTARTS, ENV_RUN_ID,         \
        ENV_USE_AGENT_STORE, ENV_ERROR_FILE, ENV_SIGNALS_TO_HANDLE

#endif
