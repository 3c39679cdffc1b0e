/* SPDX-License-Identifier: MIT */
/* Numbers of system calls and flags that are younger than the C library's or the kernel's headers may be. From Linux
 * 5.1 on new calls have the same number on every architecture. */
#ifndef LAUNCH_AGENT_SYSCALLS_H
#define LAUNCH_AGENT_SYSCALLS_H

#include <sys/syscall.h>

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

#endif
