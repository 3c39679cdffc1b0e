/* SPDX-License-Identifier: MIT */
/* What goes wrong with a job's NVIDIA GPUs while it runs: from the kernel's log, and from NVML, by a helper process (nvml.h) that
 * begins when the workers have run for a while. Faults are kept, to be joined to ranks that fail: by the process that the
 * driver names, or by the GPU and the time. A GPU with a fatal one goes into quarantine (quarantine.h) at once. */
#ifndef LAUNCH_AGENT_GPU_WATCH_H
#define LAUNCH_AGENT_GPU_WATCH_H

#include "../config/spec.h"
#include "gpu_fault.h"
#include "nvml.h"
#include "plan.h"
#include "rank.h"

#include <uv.h>

#define GPU_WATCH_FAULTS 64 /* that are kept, the latest */

struct gpu_watch {
    uv_loop_t *loop;
    const struct job_spec *spec;
    const struct plan *plan;
    const char *sysroot;
    unsigned used; /* the first GPUs of the set are; 0: nothing is watched */

    int log_fd; /* owned; -1: not open, or not to be had */
    struct watch *log_watch;
    uv_timer_t timer; /* the helper's start */
    int uvm_fd;       /* owned: inotify, while nobody has CUDA open; else -1 */
    struct watch *uvm_watch;
    int fd, pidfd; /* owned: of the helper */
    struct watch *watch;
    uint8_t index[GPU_MAX]; /* GPU of the list of each that the helper was given */
    unsigned asked;

    struct gpu_watch_fault {
        struct gpu_fault fault;
        int gpu; /* of the list; -1: none of them */
        char pci[24];
        pid_t pid; /* 0: ascribed to none */
        uint64_t at_ns;
    } faults[GPU_WATCH_FAULTS];
    unsigned faults_n; /* ever */
    uint64_t out,
        noted; /* GPUs of the list: with a fatal fault; of these, those whose quarantine was written down */
};

/* Borrows all. Does nothing yet. */
void gpu_watch_init(struct gpu_watch *w, uv_loop_t *loop, const struct job_spec *spec,
                    const struct plan *plan, const char *sysroot);

/* Workers are about to be started: what the kernel's log tells from now on counts. Does nothing for a job without NVIDIA GPUs,
 * and if it was called before. */
void gpu_watch_open(struct gpu_watch *w);

/* The workers run: NVML is listened to in a moment. After gpu_watch_open(). */
void gpu_watch_start(struct gpu_watch *w);

/* Takes what has been told until now, and ends the helper, until the next start. */
void gpu_watch_stop(struct gpu_watch *w);

/* After gpu_watch_stop(). */
void gpu_watch_finish(struct gpu_watch *w);

/* A rank has failed. Appends ", after Xid 31 (...) of GPU 0000:18:00" to how, if there was a fault while it ran. */
void gpu_watch_explain(struct gpu_watch *w, const struct rank *rank, char *what, size_t size);

/* The GPU of the rank, or of any of `n` ranks, has had a fatal fault in this job, and is in quarantine still. Never with --force. */
bool gpu_watch_is_out(struct gpu_watch *w, uint32_t rank);
bool gpu_watch_any_out(struct gpu_watch *w, uint32_t n);

#endif
