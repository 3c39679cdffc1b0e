/* SPDX-License-Identifier: MIT */
/* Workers' output: from their pipes to our stdout and stderr, whole lines, never mixed, and to log files.
 *
 * A relay owns the read ends of the workers' pipes ("streams") and writes to one or two "outlets".
 * Bytes pass unchanged, line by line; a line of one stream is never cut by another stream's. A
 * partial line (a prompt, a progress bar that ends in \r) is written after RELAY_IDLE_MS of
 * silence; from then on that stream owns the outlet until its line ends, for at most RELAY_HOLD_MS
 * while others wait (then a newline is put in; at once, if the partial line holds a \r, because it
 * will be redrawn anyway). A line longer than RELAY_LINE_MAX is cut only when it has not moved for
 * RELAY_HOLD_MS while others wait. A last line without a newline gets one only when something
 * follows it. A stream may have a prefix: it stands before each of its lines on the outlet, once, and
 * again where the rest of a cut line begins. Log files get every byte as it was read.
 *
 * The loop never blocks on an outlet: pipes and terminals are written through a non-blocking open
 * file description of our own. When the reader is slow, streams are no longer read (back-pressure):
 * memory stays below RELAY_LINE_MAX per stream (and 8 times that for all workers that are gone).
 * When the reader is gone (EPIPE), see on_outlet_gone. A log file's full queue does the same to the
 * streams that go there.
 *
 * Uses the loop only; all callbacks run on it, from a timer (never from inside a call), and may
 * call anything here, relay_destroy too. Idle means idle: no timer runs when nothing is pending. */
#ifndef LAUNCH_AGENT_RELAY_H
#define LAUNCH_AGENT_RELAY_H

#include "logfile.h"
#include "prefix.h"
#include "sieve.h"

#define RELAY_IDLE_MS 100
#define RELAY_HOLD_MS 1000
#define RELAY_CHUNK_BYTES (256u * 1024u) /* a widened pipe, see pipe.h */
#define RELAY_LINE_MAX (1024u * 1024u) /* a longer line keeps the outlet to itself until it ends */
#define RELAY_TAIL_BYTES 4096u /* of each stream, kept for the failure report and for who asks */

enum relay_stream_kind { RELAY_STDOUT, RELAY_STDERR, RELAY_KINDS_N };

struct relay; /* opaque; heap */

struct relay_callbacks {
    /* All streams of `rank` are at their end or were closed by relay_rank_drain(). */
    void (*on_rank_end)(void *user, unsigned rank);
    /* Our stdout or stderr has no reader any more (EPIPE, EIO); called once for each, for both
     * when they are one file. Later output for it is read and dropped. A full disk is not the
     * end: what does not fit is dropped and counted. */
    void (*on_outlet_gone)(void *user, enum relay_stream_kind kind);
    void *user;
};

/* Where a stream goes. All zero: to the outlet as it is, to no file. */
struct relay_route {
    bool hidden; /* the outlet does not get it */
    struct prefix prefix;
    struct logfile *file;          /* gets every byte; the stream takes a reference */
    struct logfile *matches;       /* gets lines that hold a needle, with the prefix; likewise */
    const struct needles *needles; /* borrowed for the life of the relay */
};

/* out_fd, err_fd: where to write, borrowed, usually 1 and 2; when both are the same file they
 * share one outlet, so that their lines never mix either. */
MUST_CHECK int relay_create(struct relay **ret, uv_loop_t *loop, unsigned nranks, int out_fd,
                            int err_fd, const struct relay_callbacks *callbacks, struct err *err);

/* Starts reading a pipe. fd: taken, made non-blocking. route: copied; NULL: all zero. A rank may get one
 * stream of each kind; after on_rank_end it may get new ones (next attempt). */
MUST_CHECK int relay_add(struct relay *r, unsigned rank, enum relay_stream_kind kind, int fd,
                         const struct relay_route *route, struct err *err);

/* Log files have room again (writer's on_room). */
void relay_files_ready(struct relay *r);

/* The worker is gone: what is in its pipes is still read, until end of file or until `ms` have
 * passed (a grandchild may hold the pipe open for ever); then on_rank_end. Without any stream,
 * on_rank_end comes at once (from the loop). */
void relay_rank_drain(struct relay *r, unsigned rank, unsigned ms);

/* The worker is gone and the rank gets another one: what is in its pipes is read now, and they are closed. on_rank_end does
 * not come. */
void relay_rank_cut(struct relay *r, unsigned rank);

/* Last bytes of the rank's stderr of this attempt, as they were: at most RELAY_TAIL_BYTES,
 * starting at a line start where possible. Valid until the next call on r. *ret_n: length. */
const char *relay_tail(const struct relay *r, unsigned rank, size_t *ret_n);

/* The same for either stream. */
const char *relay_tail_of(const struct relay *r, unsigned rank, enum relay_stream_kind kind,
                          size_t *ret_n);

/* Which stream of this attempt was written to last, and when (uv_now()). False: none was. */
bool relay_last(const struct relay *r, unsigned rank, enum relay_stream_kind *ret_kind,
                uint64_t *ret_ms);

/* Bytes read from the rank's pipes so far, in all attempts. */
uint64_t relay_bytes(const struct relay *r, unsigned rank);

/* Output waits for whoever reads it. */
bool relay_waits(const struct relay *r);

/* Bytes that were read and could not be written (outlet gone, flush deadline). */
uint64_t relay_dropped(const struct relay *r);

/* A line that stands unfinished on the outlet of stderr gets its newline, if there is room: somebody else is about to
 * write there. relay: void for log_call_before(). */
void relay_end_line(void *relay);

/* Writes what is pending, for at most ms (blocking with poll; after the loop has ended), drops
 * the rest and counts it. */
void relay_flush(struct relay *r, unsigned ms);

/* Stops everything, drops what is pending; handles are closed on the loop, memory goes with the
 * last close callback. NULL is fine. */
void relay_destroy(struct relay *r);

#endif
