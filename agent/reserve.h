/* SPDX-License-Identifier: MIT */
/* Standbys: processes of the job's program that wait in launch_join() for the place of a lost rank (--standby). Started in
 * the background at low priority, the first that go when memory runs out, never counted as ranks, and gone when the job stops. Knows no policy: who is lost, and when to start
 * more, is told from outside. */
#ifndef LAUNCH_AGENT_RESERVE_H
#define LAUNCH_AGENT_RESERVE_H

#include "attempt.h"
#include "group.h"
#include "oom.h"

struct reserve {
    struct attempt *attempt;       /* borrowed, likewise: */
    struct attempt_config *config; /* of the present attempt */
    struct group *group;
    struct oom *oom;
    uv_timer_t again;            /* the kernel wants to be asked later for somebody's priority */
    int (*pipes)[RELAY_KINDS_N]; /* owned: read ends of each standby's output */
    void (*on_gone)(void *user); /* a standby that was not used has been reaped */
    void *user;
};

/* -ENOMEM. For the group's spares; without any, all the others do nothing. */
MUST_CHECK int reserve_init(struct reserve *r, struct attempt *attempt,
                            struct attempt_config *config, struct group *group, struct oom *oom,
                            uv_loop_t *loop, void (*on_gone)(void *user), void *user);

/* Starts those that are missing. What can't be started is told, and tried again the next time. */
void reserve_fill(struct reserve *r);

/* A standby may have become warm: it is of low priority only until then. */
void reserve_look(struct reserve *r);

/* A standby becomes the process of a rank that has none. False: there is none that could. */
bool reserve_use(struct reserve *r, uint32_t rank);

/* Kills all. They are the group's until they are reaped. */
void reserve_dismiss(struct reserve *r);

void reserve_finish(struct reserve *r);

#endif
