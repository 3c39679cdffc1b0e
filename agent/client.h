/* SPDX-License-Identifier: MIT */
/* The other end of control sockets: which jobs there are, which one a person means, asking it. Believes nothing of what
 * comes. Prints nothing. */
#ifndef LAUNCH_AGENT_CLIENT_H
#define LAUNCH_AGENT_CLIENT_H

#include "../proto/wire.h"
#include "rundir.h"

struct client_job {
    int fd;    /* owned: connected; -1: `trouble` says why not */
    uid_t uid; /* whose it is, as the kernel says */
    struct rundir_place place;
    struct wire_job
        job; /* without an answer: run_id only, from the socket's name. Texts but log_dir are clean */
    struct err trouble;
};

struct client_jobs {
    struct client_job *job; /* owned: oldest first */
    size_t n, room;
    struct err trouble; /* code 0, or why some may be missing: see rundir_walk() */
};

/* All jobs that the caller may ask, each asked once; raises the limit of open files, as each has one. Sockets of jobs that are no more are removed. What can't be asked is
 * in the list, too. */
void client_list(struct client_jobs *ret);
void client_finish(struct client_jobs *jobs);

/* The job of that run id or name, or of the only one that begins so; it is taken out of the list. -ENOENT, -EEXIST:
 * there is none, or more than one; the line says which there are. */
MUST_CHECK int client_pick(struct client_jobs *jobs, const char *wanted, struct client_job *ret,
                           struct err *err);

/* client_list() and client_pick(). */
MUST_CHECK int client_find(const char *wanted, struct client_job *ret, struct err *err);
void client_close(struct client_job *job);

/* Sends a request and takes the packets of the answer, each to on_packet (may be NULL). Returns the code of the wire_end, with
 * its text in err if it is negative; or -EPIPE: the job has ended meanwhile; -ETIMEDOUT: it does not answer. */
MUST_CHECK int client_ask(struct client_job *job, enum wire_verb verb, int rank, int number,
                          void (*on_packet)(void *user, const union wire_packet *packet),
                          void *user, struct err *err);

/* "1 restart", or "0 restarts, 2 healings". */
#define CLIENT_AGAIN_BYTES 48
const char *client_again(const struct wire_job *job, char text[CLIENT_AGAIN_BYTES]);

/* All its ranks (or `rank`) at one moment, in order. */
struct client_look {
    struct wire_rank *ranks; /* owned: free() it. n ranks, then `standbys` of those */
    uint32_t n, standbys, room;
};

/* Asks for them, in the place of those of an earlier look; job->job is taken anew, too. Errors: those of client_ask(). */
MUST_CHECK int client_look(struct client_job *job, int rank, struct client_look *look,
                           struct err *err);

/* Only sends it: the answer of WIRE_WAIT comes some time, on job->fd. */
MUST_CHECK int client_send(struct client_job *job, enum wire_verb verb, int rank, int number,
                           struct err *err);

/* The answer to WIRE_WAIT, once job->fd is readable: the job's exit code; -EPIPE: it was killed, nobody knows. */
MUST_CHECK int client_take_end(struct client_job *job, struct err *err);

#endif
