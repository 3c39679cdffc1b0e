/* SPDX-License-Identifier: MIT */
/* Where the kernel put a core dump, as far as its settings tell. Looks at no dump. */
#ifndef LAUNCH_AGENT_COREFILE_H
#define LAUNCH_AGENT_COREFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* From the kernel's core_pattern (untrusted, without its newline) and core_uses_pid: "core.4711 in the directory of the
 * worker", "handed to /usr/lib/systemd/systemd-coredump (coredumpctl lists them)". Returns text. */
const char *corefile_describe(const char *pattern, bool uses_pid, pid_t pid, char *text,
                              size_t size);

/* The same with the settings of this machine, below sysroot; "" when they can't be read. */
const char *corefile_find(const char *sysroot, pid_t pid, char *text, size_t size);

#endif
