/* SPDX-License-Identifier: MIT */
/* What is wrong with this machine: one table of checks, each of which looks at one thing and says what it found, where it
 * saw that, what follows and what to do. Reads only, needs no privileges, starts nothing but NVML's helper. Must never
 * print: show.c does. */
#ifndef LAUNCH_AGENT_DOCTOR_DOCTOR_H
#define LAUNCH_AGENT_DOCTOR_DOCTOR_H

#include "../../proto/err.h"
#include "../topology.h"

#include <stdbool.h>
#include <stdint.h>

enum verdict { VERDICT_OK, VERDICT_WARNING, VERDICT_BROKEN, VERDICT_BLIND, VERDICTS_N };

#define FINDING_EVIDENCE_BYTES 512
#define FINDINGS_MAX 256
#define DOCTOR_GROUPS_MAX 64

struct doctor;

/* On which machines a check makes sense, a set; 0: on all. */
#define ON_NVIDIA 1u
#define ON_AMD 2u
#define ON_GPUS (ON_NVIDIA | ON_AMD)
#define ON_HOST 4u /* without a GPU */

struct check {
    const char *name;  /* one word, the same in text, JSON and help */
    const char *about; /* what it looks at */
    unsigned on;
    void (*look)(struct doctor *d); /* has at least one finding */
};

/* In the order of their cost and of what depends on what. */
extern const struct check CHECKS[];
extern const size_t CHECKS_N;

struct finding {
    const struct check *check;
    enum verdict verdict;
    char evidence[FINDING_EVIDENCE_BYTES]; /* what was seen, and where; plain text */
    const char *consequence, *fix;         /* NULL: it is all right, or it could not be looked at */
};

/* GPUs and switches as the PCI bus has them, with or without a driver. */
struct doctor_pci {
    unsigned switches_n, gpus_n; /* of both vendors; those beyond GPU_MAX are left out */
    struct doctor_pci_gpu {
        char address[PCI_ADDRESS_BYTES];
        enum gpu_vendor vendor;
        bool lent; /* to a virtual machine, on purpose: vfio-pci has it */
    } gpu[GPU_MAX];
};

struct doctor_shm {
    int error; /* 0, or a negative errno: it can't be looked at */
    unsigned mode;
    bool writable;
    uint64_t total_bytes, free_bytes;
};

/* The machine and its findings. doctor_open() fills the first half, which tests change as they like; what is not in it
 * is read below sysroot. */
struct doctor {
    const char *sysroot;      /* borrowed */
    char *const *environment; /* borrowed */
    const char *home;         /* where NCCL looks for its file; NULL: nowhere */
    struct topology *t;       /* owned */
    enum gpu_vendor
        vendor; /* also of GPUs that have no driver or no device node; not of lent ones */
    struct doctor_pci pci;
    struct doctor_shm shm;
    int numa_error; /* of get_mempolicy(): 0, or a negative errno */
    bool is_root;

    const struct check *check; /* the one that looks now */
    unsigned n;
    struct finding finding[FINDINGS_MAX]; /* those beyond are left out */
};

/* Reads the machine below sysroot; `nvml_limit_ms`: how long NVML may take. Errors: those of topology_read(). */
MUST_CHECK int doctor_open(struct doctor **ret, const char *sysroot, char *const *environment,
                           unsigned nvml_limit_ms, struct err *err);

/* NULL is fine. */
void doctor_close(struct doctor *d);

/* All checks of this machine. */
void doctor_look(struct doctor *d);

/* One of them, on any machine: for tests. */
void doctor_look_at(struct doctor *d, const char *name);

/* The worst of the findings; what could not be looked at is not bad. */
enum verdict doctor_verdict(const struct doctor *d);
unsigned doctor_count(const struct doctor *d, enum verdict verdict);

const char *verdict_name(enum verdict verdict);

/* ---- for the checks ---- */

/* A text about NCCL; AMD's GPUs have RCCL in its place. */
#define NCCL_OR_RCCL(d, rest) ((d)->vendor == GPU_AMD ? "RCCL" rest : "NCCL" rest)

void doctor_ok(struct doctor *d, const char *evidence, ...) PRINTF_LIKE(2, 3);
void doctor_blind(struct doctor *d, const char *why, ...) PRINTF_LIKE(2, 3);
void doctor_find(struct doctor *d, enum verdict verdict, const char *consequence, const char *fix,
                 const char *evidence, ...) PRINTF_LIKE(5, 6);

/* Value of a variable; NULL: it is not set. */
const char *doctor_variable(const struct doctor *d, const char *name);

/* The kernel module that has a PCI device; "": none has. */
void doctor_module(const struct doctor *d, const char *address, char ret[64]);

/* NVML told nothing at all: says so once, as what a check could not look at. */
bool doctor_lacks_nvml(struct doctor *d);

/* A list that grows in a text of fixed size: adds the separator and the words, or "..." once they do not fit. */
struct doctor_list {
    char text[320];
    unsigned n; /* also those that did not fit */
};
void doctor_list_add(struct doctor_list *list, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
