/* SPDX-License-Identifier: MIT */
/* Log files, written by a thread of their own: a slow or hung disk holds up the writing, never the loop. Bytes
 * are copied and queued; they reach the file in order, each once. When WRITER_MAX_BYTES wait, the owner is to
 * stop producing until on_room.
 *
 * What a disk does not take (full, over quota, an error, a directory that was removed) is counted and told once
 * a file; a full disk is tried again, other errors end the file. Knows bytes, not ranks.
 *
 * All functions belong to the loop's thread. */
#ifndef LAUNCH_AGENT_LOGFILE_H
#define LAUNCH_AGENT_LOGFILE_H

#include "../proto/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define WRITER_MAX_BYTES (4u * 1024u * 1024u) /* queued; more is taken all the same */

struct writer; /* opaque; heap: the thread and its queue */
struct logfile;

struct writer_callbacks {
    void (*on_room)(void *user); /* after writer_full() was true: it is no more */
    /* Something of the file was lost; once a file. path: for messages. error: negative errno. */
    void (*on_trouble)(void *user, const char *path, int error);
    void *user;
};

/* Starts the thread. Does not keep the loop alive. */
MUST_CHECK int writer_create(struct writer **ret, uv_loop_t *loop,
                             const struct writer_callbacks *callbacks, struct err *err);

bool writer_full(struct writer *w);

/* Bytes that were handed over and are on no file. */
uint64_t writer_lost(struct writer *w);

/* Waits until everything is written, at most ms. */
bool writer_flush(struct writer *w, unsigned ms);

/* Ends the thread once it has written everything: writer_flush() first, and leave the writer alone if that was
 * false. All files must have been closed. Memory goes with the handle's close callback. NULL is fine. */
void writer_destroy(struct writer *w);

/* Creates a file that must not be there yet. dir_fd: borrowed, until the writer is destroyed. name: below it.
 * dir: its name for messages. rotate_bytes: a file that would become larger becomes name.1
 * and so on, `keep` of them, cut between lines where that can be; 0: never.
 * Returns NULL with errno. */
struct logfile *logfile_create(struct writer *w, int dir_fd, const char *dir, const char *name,
                               uint64_t rotate_bytes, unsigned keep);

/* One more that will close it; returns f. NULL is fine for both. */
struct logfile *logfile_ref(struct logfile *f);

/* The last one closes the file, behind what is queued. */
void logfile_close(struct logfile *f);

void logfile_write(struct logfile *f, const char *data, size_t n);

/* As writer_full() of its writer. */
bool logfile_full(struct logfile *f);

#endif
