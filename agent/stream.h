/* SPDX-License-Identifier: MIT */
/* The two ends of the relay: a stream is one pipe of a worker, a sink is one of our outputs with
 * the streams that want to write to it. Private to the relay; knows lines and turns, but not
 * ranks' lives. */
#ifndef LAUNCH_AGENT_STREAM_H
#define LAUNCH_AGENT_STREAM_H

#include "alarm.h"
#include "outlet.h"
#include "relay.h"
#include "watch.h"

#define STREAM_PREFIXED_BYTES                                                                      \
    (2 * RELAY_CHUNK_BYTES) /* lines with their prefixes, a turn at a time */

/* What all streams and sinks of a relay share. */
struct stream_set {
    struct alarm alarm;
    struct stream *first;
    uint64_t dropped; /* without what the outlets count */
    bool flushing;    /* the loop has ended: no more reading, unfinished lines go out as well */
    bool closing;
    char *chunk;                                                   /* RELAY_CHUNK_BYTES */
    char *prefixed;                                                /* STREAM_PREFIXED_BYTES */
    void (*on_data)(struct stream *s, const char *data, size_t n); /* every byte that was read */
    void (*on_end)(struct stream *s);                              /* nothing more will be read */
    void (*on_freed)(struct stream_set *set);                      /* a stream's memory is gone */
};

/* At any time one of: polled; in line at its sink; at its end. Only a stream whose turn it is
 * reads. So when the receiver is slow, data stays in the pipes, and a stream holds no more than
 * one unfinished line and what a short write left. */
struct stream {
    struct stream_set *set;
    struct sink *sink;
    unsigned rank;
    enum relay_stream_kind kind;
    int fd; /* -1: at its end; what is held is still to be written */
    struct watch *watch;
    struct relay_route route;
    struct sieve sieve;
    bool polling;
    bool draining; /* its worker is gone: what it wrote is taken, room or not */
    bool in_line;
    bool widened;   /* was full once; see pipe_widen() */
    bool mid_line;  /* what was read ends inside a line; for the prefix */
    bool cut;       /* its line was cut on the outlet: the rest needs the prefix again */
    bool impatient; /* silent for RELAY_IDLE_MS: the unfinished line is to be shown */
    bool overlong;  /* owns the sink with a line longer than RELAY_LINE_MAX */
    bool has_cr;    /* owns the sink with a line that holds a \r */
    char *held;     /* read, not written; NULL when there is nothing */
    size_t held_at, n_held, held_bytes;
    struct deadline idle;
    struct stream *next_in_line;
    struct stream *next, *prev;
};

struct sink {
    struct stream_set *set;
    struct outlet outlet;
    struct stream *owner; /* its line is open on the outlet and nobody else's turn may come */
    bool open_line; /* the last byte was no newline. Without an owner: the next stream puts it */
    struct stream *first, *last; /* in line */
    struct deadline hold;        /* until the owner is cut */
    struct deadline gone;        /* the outlet's end is to be reported */
    bool is_gone;
};

/* Starts reading; fd: taken, also on failure. */
MUST_CHECK int stream_create(struct stream **ret, struct stream_set *set, struct sink *sink,
                             unsigned rank, enum relay_stream_kind kind, int fd,
                             const struct relay_route *route);

/* Its log file may have room again. */
void stream_resume(struct stream *s);

/* After its idle deadline: asks for a turn that shows the unfinished line. */
void stream_lose_patience(struct stream *s);

/* Takes what lies in the pipe, though the outlet may not be ready for it, and ends the stream. */
void stream_drain(struct stream *s);

/* Ends the stream and forgets what it holds. */
void stream_discard(struct stream *s);

/* outlet_init's errors. */
MUST_CHECK int sink_init(struct sink *k, struct stream_set *set, int fd, struct err *err);

/* Gives turns until nobody waits or nothing can be written. */
void sink_settle(struct sink *k);

/* The owner's line is cut: who comes next begins with a newline. */
void sink_disown(struct sink *k);

/* Puts the newline now, for somebody who writes past us; not while the outlet has no room. */
void sink_end_line(struct sink *k);

/* Forgets what those in line hold; counted as dropped. */
void sink_drop(struct sink *k);

#endif
