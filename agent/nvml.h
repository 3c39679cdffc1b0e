/* SPDX-License-Identifier: MIT */
/* Which processes use which GPU, again and again, from a helper process that talks through a pipe; see gpu_wait.c for the
 * other end. */
#ifndef LAUNCH_AGENT_NVML_H
#define LAUNCH_AGENT_NVML_H

#define NVML_PAUSE_MS 20 /* between two lists */

/* In the helper process; never returns to the caller. Writes to fd, again and again until it is killed or nobody reads,
 *     "use <index> <pid> <bytes>\n"   for every compute process on the GPU at pci[index]
 *     "end\n"                         after each list
 * or "fail <text>\n", and exits. */
_Noreturn void nvml_helper(int fd, const char *sysroot, const char *const *pci, unsigned n);

/* Likewise, once:
 *     "mig <index> <PCI address>\n"  for every name ("MIG-<uuid>") that is an instance of the GPU there
 *     "end\n" */
_Noreturn void nvml_mig_helper(int fd, const char *sysroot, const char *const *name, unsigned n);

#endif
