/* SPDX-License-Identifier: MIT */
/* Ranks that were lost with their GPU come back when its quarantine is over (launch gpus --clear). Nothing is watched before
 * a rank is lost for good. Whether the job can grow is heal.c's to say. */
#ifndef LAUNCH_AGENT_REGROW_H
#define LAUNCH_AGENT_REGROW_H

#include "quarantine.h"

struct job;
struct watch;

struct regrow {
    int fd;              /* owned: becomes readable when a quarantine may have changed; -1 */
    struct watch *watch; /* owned: of fd; NULL: nothing is watched */
    struct units *
        units; /* owned: lock files, open while we watch, as closing them would be news; NULL: none */
    bool *barred; /* owned: of each missing rank: its GPU has been seen in quarantine */
};

/* -ENOMEM. */
MUST_CHECK int regrow_init(struct regrow *r, uint32_t world_size);
void regrow_finish(struct regrow *r);

/* The rank was lost for good. */
void regrow_watch(struct job *job, uint32_t rank);

/* Nobody is missing any more. */
void regrow_stop(struct regrow *r);

/* The rank's GPU is in quarantine, as *ret says. */
bool regrow_is_barred(struct job *job, uint32_t rank, struct quarantine *ret);

#endif
