/* SPDX-License-Identifier: MIT */
/* The places of a job's ranks on this machine: made once, before anything is started, then handed to those who fork and who
 * write environments. Who belongs where is place.c's. */
#ifndef LAUNCH_AGENT_PLACEMENT_H
#define LAUNCH_AGENT_PLACEMENT_H

#include "place.h"
#include "plan.h"
#include "spawn.h"

struct placement {
    enum affinity affinity; /* what AFFINITY_AUTO came to */
    enum mem_policy mem_policy;
    uint32_t n;
    struct place *places;        /* owned: of n ranks; NULL: nobody is placed, nothing was read */
    int lock;                    /* owned: keeps exclusive CPUs ours; -1: nothing to keep */
    struct bitset allowed;       /* CPUs of ranks that are not bound */
    char note[PLACE_NOTE_BYTES]; /* one line for the user; empty: none */
};

/* Reads of the machine what the settings need: nothing by default in a job without GPUs, one file with them.
 * Exclusive CPUs are locked, until the last process that inherits this one's files has ended.
 * -EINVAL: more exclusive ranks than cores, or a description of a machine that hwloc does not take (machine.h); one line that
 * names setting or variable. placement_finish() takes it in any case. */
MUST_CHECK int placement_make(struct placement *p, const struct job_spec *spec,
                              const struct plan *plan, const char *sysroot, struct err *err);
void placement_finish(struct placement *p);

/* For all three, p may be NULL: nobody is placed. */
bool placement_binds(const struct placement *p);
struct spawn_place placement_spawn(const struct placement *p, uint32_t rank); /* points into p */
unsigned placement_threads(const struct placement *p, uint32_t rank, unsigned fair_share);

/* In placement_report.c: a table to stderr, and the same as placement.json to the directory, if there is one (-1: none).
 * For a placement with --report-placement. */
void placement_report(const struct placement *p, const struct plan *plan, const char *sysroot,
                      int dir_fd);

#endif
