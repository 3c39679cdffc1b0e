/* SPDX-License-Identifier: MIT */
/* Monotonic time. Wall-clock time is never compared: it jumps. */
#ifndef LAUNCH_PROTO_CLOCK_H
#define LAUNCH_PROTO_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull

/* A deadline that never comes. */
#define CLOCK_NEVER UINT64_MAX

/* CLOCK_MONOTONIC in nanoseconds. */
static inline uint64_t clock_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* The deadline `ms` from now; ms 0, or more than the clock can hold, means never. */
static inline uint64_t clock_deadline_ns(uint64_t ms)
{
    uint64_t now = clock_now_ns();
    return ms && ms < (CLOCK_NEVER - now) / NS_PER_MS ? now + ms * NS_PER_MS : CLOCK_NEVER;
}

#endif
