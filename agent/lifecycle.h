/* SPDX-License-Identifier: MIT */
/* The states of a job, the events that move it, the table of edges between them, and the one function that goes along an
 * edge. Knows nothing of jobs: tests walk every pair and drive it at random. What a state does when it is entered: job.c. */
#ifndef LAUNCH_AGENT_LIFECYCLE_H
#define LAUNCH_AGENT_LIFECYCLE_H

#include <stdbool.h>

enum job_state {
    JOB_LAUNCH,     /* starts an attempt */
    JOB_RUN,        /* workers run */
    JOB_RENDEZVOUS, /* some have called launch_join(), some have not yet */
    JOB_HEAL,       /* a rank was lost and is replaced; the others keep their processes */
    JOB_STOP,       /* the group is asked to end, and given time */
    JOB_KILL,       /* the group is killed */
    JOB_SWEEP,      /* no worker is left; what they left behind is asked to end */
    JOB_PURGE,      /* what they left behind is killed */
    JOB_RESTART,    /* waits before the next attempt */
    JOB_DONE,
    JOB_STATES_N
};

enum job_event {
    EVENT_SPAWNED,      /* all workers exist and were let go */
    EVENT_SPAWN_FAILED, /* an attempt could not be started: our error */
    EVENT_JOINING,      /* the first rank called launch_join() */
    EVENT_JOINED,       /* the last one did */
    EVENT_RANK_LOST,    /* a rank ended that should not have */
    EVENT_HEAL,         /* likewise, and the job can heal; or there is more to be done for it */
    EVENT_HANG,         /* ranks give no sign of life (--hang-timeout) */
    EVENT_ENDED,        /* no worker is left and their output is read */
    EVENT_STOP,         /* a signal asks the job to end */
    EVENT_NOW,          /* ... and does not want to wait */
    EVENT_RESTART,      /* asked for: all ranks again */
    EVENT_DEADLINE,     /* the state's timer */
    EVENT_RETRY,        /* decided: another attempt */
    EVENT_GIVE_UP,      /* decided: the job is over */
    JOB_EVENTS_N
};

/* The table of edges, for its test: the state after an event, JOB_STAYS for "no news here", JOB_BUG for a pair
 * that can't be. */
#define JOB_STAYS (JOB_STATES_N + 0)
#define JOB_BUG (JOB_STATES_N + 1)
unsigned lifecycle_next(enum job_state state, enum job_event event);
const char *lifecycle_state_name(enum job_state state);
const char *lifecycle_event_name(enum job_event event);

#define LIFECYCLE_EVENTS_MAX 16

/* Where a job is, and what is still to be taken. Zeroed it is in LAUNCH, which nothing enters. */
struct lifecycle {
    enum job_state state; /* changed by lifecycle.c alone */
    enum job_event events[LIFECYCLE_EVENTS_MAX];
    unsigned events_n;
    bool taking;
    /* The state is left for `next`: state is the old one still when it is called, and the new one when it returns. */
    void (*on_leave)(void *user, enum job_state next, enum job_event why);
    void (*on_enter)(void *user); /* state has just become another one, or the same one again */
    void (*on_bug)(void *user,
                   enum job_event event); /* that can't be in this state: nothing changes */
    void *user;
};

/* Takes the event now or, when it is posted by a callback of another one, right after that. */
void lifecycle_post(struct lifecycle *life, enum job_event event);

/* Between the two, events are kept. */
void lifecycle_hold(struct lifecycle *life);
void lifecycle_release(struct lifecycle *life);

#endif
