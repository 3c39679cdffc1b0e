/* SPDX-License-Identifier: MIT */
/* Before a restart: waits until no process of the old group is on the job's NVIDIA GPUs any more, for a bounded time,
 * and names who still is. Its processes have been reaped by then; what remains is the driver at work, or somebody who was
 * handed a descriptor. All NVML is in a helper process (nvml.h). */
#ifndef LAUNCH_AGENT_GPU_WAIT_H
#define LAUNCH_AGENT_GPU_WAIT_H

#include "group.h"
#include "plan.h"

#include <uv.h>

struct gpu_wait;

/* Before the group is ended: whether a wait will be due when it is gone, because a worker (or a process below it)
 * has an NVIDIA device open, or because no worker is left to tell. Asking NVML takes 12 ms. */
bool gpu_wait_is_due(const char *sysroot, const struct plan *plan, const struct group *ranks);

/* Waits for what is on the GPUs of plan and belonged to `ranks` (all borrowed): by their last pids, or by run_id in its
 * environment; and until after_ms have passed. Then on_done is called once, with `user` as its timer's data; a
 * warning has been logged if the GPUs are not free. False, and nothing was started: no NVIDIA GPU, no process of
 * this machine has CUDA open, or no helper can be had. */
bool gpu_wait_start(struct gpu_wait **ret, uv_loop_t *loop, const char *sysroot,
                    const struct plan *plan, const char *run_id, const struct group *ranks,
                    uint64_t after_ms, uv_timer_cb on_done, void *user);

/* Ends the helper (whoever reaps children reaps it); no call comes any more. NULL is fine. */
void gpu_wait_stop(struct gpu_wait **w);

/* For tests: the limit, 5000 ms. */
extern unsigned gpu_wait_limit_ms;

#endif
