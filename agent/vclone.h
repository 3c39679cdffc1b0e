/* SPDX-License-Identifier: MIT */
/* A child that shares our memory until it execs, like vfork()'s, but that does not hold us up: it runs on a stack of its own.
 * Copying the page tables of a small process is what most of a fork costs (measured: see tests/bench, start).
 *
 * The rule for such a child: it writes nowhere but to its stack and to what is meant for it. That rules out the C library,
 * because errno is ours: only raw_call() below. */
#ifndef LAUNCH_AGENT_VCLONE_H
#define LAUNCH_AGENT_VCLONE_H

#include "syscalls.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* struct clone_args of Linux 5.7, which older headers lack the end of. */
struct clone_request {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
        set_tid_size, cgroup;
};

/* Sanitizers keep shadow state in the memory that would be shared. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define VCLONE_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VCLONE_SANITIZED 1
#endif

#if defined(__x86_64__) && !defined(VCLONE_SANITIZED)
#define VCLONE_USABLE 1

/* A system call that leaves errno alone: the result or a negative errno. */
static inline long raw_call(long number, long a, long b, long c, long d, long e)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
}

/* clone3() with CLONE_VM and a stack in args; the child calls entry(arg), which must not return. The child's pid, or
 * a negative errno. */
static inline long vclone(const struct clone_request *args, size_t size, void (*entry)(void *arg),
                          void *arg)
{
    long result;
    register void *r8 __asm__("r8") = (void *)entry;
    register void *r9 __asm__("r9") = arg;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %%r9, %%rdi\n\t"
                     "call *%%r8\n\t"
                     "ud2\n"
                     "1:"
                     : "=a"(result)
                     : "a"(SYS_clone3), "D"(args), "S"(size), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory", "cc");
    return result;
}

#else
#define VCLONE_USABLE 0

/* Elsewhere the child has a copy of our memory, errno included. */
static inline long raw_call(long number, long a, long b, long c, long d, long e)
{
    long result = syscall(number, a, b, c, d, e);
    return result < 0 ? -errno : result;
}
#endif

#endif
