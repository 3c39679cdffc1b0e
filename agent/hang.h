/* SPDX-License-Identifier: MIT */
/* Pure: which rank hangs, and which one holds up the others. Facts and times in, a verdict out; no clock, no
 * process, no file; tests walk its domain.
 *
 * A rank shows life whenever one of its counters moves. One that has ever told a step (launch_step()) or sent
 * WATCHDOG=1 is judged by what liblaunch counts and by WATCHDOG=1 alone; every other rank by its output as well.
 * A rank that has not even written anything so far (in many jobs only rank 0 prints) is silent no longer than all
 * of them together are: it can't be told from one that has nothing to say.
 *
 * The verdict does not name the first rank that timed out, which often is one that waits, but the one furthest
 * behind: stopped by a signal; has not joined; lowest step; fewest collectives; longest silence. */
#ifndef LAUNCH_AGENT_HANG_H
#define LAUNCH_AGENT_HANG_H

#include "../proto/clock.h"
#include "../proto/status.h"

#include <stdbool.h>
#include <stddef.h>

/* What is known of a rank at one moment. Counters only need to differ when something happened. */
struct hang_facts {
    bool alive;
    bool ended_well; /* ended with 0: legal, but worth a word when others wait for it */
    enum stage stage;
    uint64_t step, heartbeat, entered, finished; /* from the board */
    uint64_t watchdogs, messages;                /* WATCHDOG=1 that came; any other that came */
    uint64_t output;                             /* bytes read */
};

struct hang_rank {
    struct hang_facts seen;
    uint64_t life_ns; /* last sign */
    bool tells;       /* has given a step or WATCHDOG=1 */
    bool spoke;       /* has given those, or output */
};

struct hang {
    uint64_t timeout_ns;
    uint64_t looked_ns; /* when the facts were taken last */
    uint64_t life_ns;   /* last sign of any rank */
    uint32_t n;
    struct hang_rank *ranks; /* borrowed: n of them */
};

/* All ranks are taken to show life now. */
void hang_begin(struct hang *h, struct hang_rank *ranks, uint32_t n, uint64_t timeout_ns,
                uint64_t now_ns);

/* What is there already when watching begins, such as output of an attempt before: no sign of life of this one, but a step
 * tells that it gives some. */
void hang_seen(struct hang *h, uint32_t rank, const struct hang_facts *facts);

/* Everybody's time begins anew: the group or this process was stopped, or could not be watched. */
void hang_again(struct hang *h, uint64_t now_ns);

/* Heads each look at the ranks. A look that comes much later than the one before means that this process was
 * held up (stopped, suspended machine): then everybody's time begins anew. */
void hang_look(struct hang *h, uint64_t now_ns);

/* What a look found about a rank. */
void hang_note(struct hang *h, uint32_t rank, const struct hang_facts *facts);

/* How long a rank has given no sign; 0 for one that has ended. At the last look. */
uint64_t hang_silence_ns(const struct hang *h, uint32_t rank);

/* Silent for the timeout or longer, and alive. */
bool hang_hangs(const struct hang *h, uint32_t rank);

/* Whether any does. */
bool hang_any(const struct hang *h);

/* Time between two looks. */
uint64_t hang_period_ms(uint64_t timeout_ms);

enum hang_why {
    HANG_STOPPED,    /* stopped by a signal (state T) */
    HANG_NOT_JOINED, /* others wait for it in launch_join(), or have got past that */
    HANG_STEP,       /* at a lower step than others */
    HANG_COLLECTIVE, /* has entered or finished fewer collectives than others */
    HANG_SILENT,     /* nothing to compare: silent longest */
    HANG_WHYS_N
};

struct hang_verdict {
    uint32_t rank;
    enum hang_why why;
};

/* The rank that holds up the others; some rank must hang. stopped: one flag a rank, NULL: none is stopped. */
struct hang_verdict hang_judge(const struct hang *h, const bool *stopped);

/* Where it is, as what comes after "rank 3 ": "hangs at step 4, others have reached 5". */
void hang_describe_why(const struct hang *h, const struct hang_verdict *v, char *text, size_t size);

/* The verdict as what comes after "rank 3 of 8 failed first: it ". */
void hang_describe(const struct hang *h, const struct hang_verdict *verdict, char *text,
                   size_t size);

#endif
