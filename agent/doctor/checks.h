/* SPDX-License-Identifier: MIT */
/* The functions of the table of checks, by file. */
#ifndef LAUNCH_AGENT_DOCTOR_CHECKS_H
#define LAUNCH_AGENT_DOCTOR_CHECKS_H

#include "doctor.h"

/* driver.c: is it there, and may we use it */
void driver_check_gpus(struct doctor *d);
void driver_check_version(struct doctor *d);
void driver_check_amd(struct doctor *d);
void driver_check_nodes(struct doctor *d);
void driver_check_amd_nodes(struct doctor *d);
void driver_check_nvml(struct doctor *d);
void driver_check_visible(struct doctor *d);

/* fabric.c: between the GPUs */
void fabric_check_manager(struct doctor *d);
void fabric_check_links(struct doctor *d);
void fabric_check_p2p(struct doctor *d);
/* It is known that there is no NVSwitch, and that no pair of GPUs has P2P. */
bool fabric_lacks_switch(const struct doctor *d);
bool fabric_lacks_p2p(const struct doctor *d);

/* health.c: errors of the hardware */
void health_check_xid(struct doctor *d);
void health_check_ecc(struct doctor *d);
void health_check_rows(struct doctor *d);
void health_check_recovery(struct doctor *d);
void health_check_clocks(struct doctor *d);

/* modes.c: how the GPUs are set, and who is on them */
void modes_check_mig(struct doctor *d);
void modes_check_compute(struct doctor *d);
void modes_check_persistence(struct doctor *d);
void modes_check_ecc(struct doctor *d);
void modes_check_users(struct doctor *d);

/* bus.c: PCI Express */
void bus_check_acs(struct doctor *d);
void bus_check_iommu(struct doctor *d);
void bus_check_link(struct doctor *d);

/* host.c: what the kernel and the container give */
void host_check_shm(struct doctor *d);
void host_check_memlock(struct doctor *d);
void host_check_nofile(struct doctor *d);
void host_check_nproc(struct doctor *d);
void host_check_stack(struct doctor *d);
void host_check_cgroup(struct doctor *d);
void host_check_balancing(struct doctor *d);
void host_check_numa_calls(struct doctor *d);

/* settings.c: variables and files that change NCCL */
void settings_check_nccl(struct doctor *d);
void settings_check_amd(struct doctor *d);

/* libraries.c */
void libraries_check_nccl(struct doctor *d);

#endif
