/* SPDX-License-Identifier: MIT */
/* Healing: a lost rank is replaced while the others keep their processes (--on-failure=heal, shrink). Decides whether that
 * can be, opens generations, replaces. The states are job.c's: RUN ─► HEAL ─► RUN, and HEAL ─► HEAL when one more is lost.
 *
 * At the news of a death the board's generation goes up at once, so that survivors leave their collectives; then the dead
 * rank's place gets a standby or a new process, and all meet. Whoever does not come within --heal-timeout is killed and
 * replaced as well. Every loss counts as a restart. */
#ifndef LAUNCH_AGENT_HEAL_H
#define LAUNCH_AGENT_HEAL_H

#include "../proto/err.h"
#include "regrow.h"

#include <stdbool.h>
#include <stdint.h>

struct job;

enum loss {
    LOSS_NONE,
    LOSS_PENDING, /* is to get another process */
    LOSS_FOR_GOOD /* the job goes on without it, until it grows or is started again as a whole */
};

enum fresh { FRESH_NO, FRESH_COLD, FRESH_WARM /* it was a standby */ };

struct heal {
    uint8_t *loss;  /* owned: enum loss of each rank */
    uint8_t *fresh; /* owned: enum fresh, of each rank that was replaced in this healing */
    bool *retried;  /* owned: was replaced, and the job has got no further since */
    struct regrow regrow;
    bool consented;    /* in this attempt all ranks have called launch_meet() */
    bool stale;        /* somebody was lost, or is to come back, since the generation was opened */
    bool grows;        /* this healing is for nothing else than ranks that come back */
    uint64_t since_ns; /* first loss of this healing, or the wish; 0: all is well */
    uint64_t not_before_ns; /* the same failure again: replaced no earlier */
};

/* -ENOMEM. */
int heal_init(struct heal *h, uint32_t world_size);
void heal_finish(struct heal *h);

/* A new attempt: nobody is lost. */
void heal_begin(struct heal *h, uint32_t world_size);

/* job->failure is this rank's. True: it can be healed, and EVENT_HEAL is to be posted; job->failure is empty again. */
bool heal_accept(struct job *job, uint32_t rank);

/* Ranks without which the job goes on come back: in a new generation, with processes of their own and the state of a
 * survivor, at no cost to --max-restarts. rank: that one only; -1: all. -EINVAL: nobody is missing, or that one is not;
 * -EBUSY: not now. Posts EVENT_HEAL. */
MUST_CHECK int heal_grow(struct job *job, int rank, struct err *err);

/* The rank has ended with 0, and its work was done when it left, before it heard that it is needed again. True: it is replaced as
 * those are that had left before; its end is no news. */
bool heal_calls_back(struct job *job, uint32_t rank);

/* The rank's loss is known: its end is no news. */
bool heal_knows(const struct job *job, uint32_t rank);

/* Entry to JOB_HEAL: does what can be done now and sets the timer for the rest. */
void heal_enter(struct job *job);

/* All have met: tells so. */
void heal_done(struct job *job);

/* Whether all ranks have consented; once true, it stays so for the attempt. */
bool heal_consented(struct job *job);

#endif
