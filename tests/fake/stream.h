/* SPDX-License-Identifier: MIT */
/* How the fake NCCL puts work on a stream of the fake CUDA runtime. Nothing else includes
 * this. */
#ifndef LAUNCH_FAKE_STREAM_H
#define LAUNCH_FAKE_STREAM_H

#include <cuda_runtime_api.h>

#include <stdbool.h>

/* Work on a stream; embedded in its owner's struct. */
struct fake_work {
    /* Goes on as far as it can without waiting; true when it is finished. */
    bool (*progress)(struct fake_work *work);
    /* Frees it: finished, or the stream was destroyed under it. */
    void (*drop)(struct fake_work *work);
    struct fake_work *next;
};

/* One lock for both libraries, which a thread may take again: a thread of liblaunch's aborts while the job's waits. */
int fake_lock(void);
void fake_unlock(int *locked);
/* Lets other threads in for a moment. */
void fake_yield(void);
/* Has this process a context on any device, which takes a part of its memory? */
bool fake_has_context(void);
bool fake_has_streams(void);
#define LOCKED __attribute__((cleanup(fake_unlock), unused)) int locked = fake_lock()

/* Appends to the stream, which owns the work from here on. */
void fake_stream_push(cudaStream_t stream, struct fake_work *work);

#endif
