/* SPDX-License-Identifier: MIT */
/* What follows from a failed attempt: who is named, whether there is another one, what a person and a program are told.
 * Puts together culprit, restart, hints and report; changes no state of the job and ends no process. */
#ifndef LAUNCH_AGENT_AFTERMATH_H
#define LAUNCH_AGENT_AFTERMATH_H

#include "group.h"
#include "host_board.h"
#include "relay.h"
#include "report.h"
#include "restart.h"

struct aftermath {
    /* Borrowed, for the whole job. */
    const struct job_spec *spec;
    uint32_t world_size;
    struct relay *relay; /* NULL: the worker's stderr went past us */
    const char *logs;    /* the run's log directory; NULL: there is none */
    int logs_fd;         /* the same, open; -1 */
    /* The worker's error file of this attempt: at most `size` bytes; returns how many. NULL: none are kept. */
    size_t (*read_error)(void *user, uint32_t rank, char *bytes, size_t size);
    void *user;

    struct restart_policy policy;
    struct restart_history history; /* owned */
    struct restart_verdict verdict; /* the last one */
    struct failure last;            /* of the attempt before */
    uint64_t best_step;             /* that any attempt has reached */
    uint32_t healings;              /* heal.c's to count: losses after which the others went on */

    /* Of this attempt. */
    bool reported;
    bool told_parent; /* what is in the error file of whoever started us is the end */
    bool started;     /* it had shown some progress */
    uint64_t step;    /* highest of any rank so far */
    uint32_t stopped; /* ranks that were ended because of the failure */
    struct report_other others[REPORT_OTHERS];
    uint32_t others_n;
    bool oom; /* there is proof that memory ran out: the hint says so */
};

void aftermath_init(struct aftermath *a, const struct job_spec *spec, uint32_t world_size);
void aftermath_finish(struct aftermath *a);

/* A new attempt begins; `failure` ended the one before. */
void aftermath_begin(struct aftermath *a, const struct failure *failure);

/* Writes down a rank's failure. board: of the attempt, for what the rank said. */
void aftermath_blame(struct failure *ret, const struct rank *rank, const struct board *board,
                     enum reason reason, int exit_code);

/* A new generation is about to begin, in which ranks count their steps anew. */
void aftermath_note_steps(struct aftermath *a, const struct board *board);

/* All ranks have ended, the board is still there: a better culprit than the first one may be known now, and how far the
 * attempt came is read. joined: ranks that called launch_join(). */
void aftermath_settle(struct aftermath *a, struct failure *failure, const struct group *group,
                      const struct board *board, uint32_t joined);

/* Fills a->verdict. stopping: the job was asked to end. Returns whether there is another attempt. */
bool aftermath_decide(struct aftermath *a, const struct failure *failure, bool stopping);

/* A rank was lost and may be replaced: as aftermath_decide(), and, if it is, counts that as a restart and forgets the
 * failure, as the next one is another's. started: the rank had met the others; retried: it had been replaced before, and
 * the job has got no further since. */
bool aftermath_heal(struct aftermath *a, const struct failure *failure, const struct board *board,
                    bool started, bool retried);

/* The restart that was decided is made. */
void aftermath_note_restart(struct aftermath *a);

/* Tells: on stderr, in failure.json of the log directory and, when the job is over, in the error file that whoever
 * started us asked for. attempt: from 0. exit_code: -1 when the job is started again; why: the end of the last line. */
void aftermath_report(struct aftermath *a, const struct failure *failure, uint32_t attempt,
                      int exit_code, const char *why);

/* The job is over because a signal asked for it: that goes into that error file, unless a failure is there. */
void aftermath_tell_stop(const struct aftermath *a, int sig);

#endif
