/* SPDX-License-Identifier: MIT */
/* The log directory of a run and where each worker's output goes. Layout and names are torchrun's:
 *
 *   <log dir>/<run id>_<8 random characters>/attempt_<n>/<local rank>/{stdout.log,stderr.log,error.json}
 *                                            attempt_<n>/{filtered_stdout.log,filtered_stderr.log}
 *
 * Before anything starts, what is wrong is an error. Later nothing is: what can't be written costs log lines,
 * which is told once a file, and never the job. Directories are the owner's only (0700), files 0600. */
#ifndef LAUNCH_AGENT_LOGS_H
#define LAUNCH_AGENT_LOGS_H

#include "../config/spec.h"
#include "relay.h"

struct logs_rank;

struct logs {
    const struct job_spec *spec; /* borrowed */
    uint32_t world_size;
    char *dir;               /* owned: absolute path of the run's directory; NULL: there is none */
    int dir_fd;              /* owned; -1 likewise */
    bool announce;           /* the user did not choose the place */
    char attempt[24];        /* "attempt_0": the present one's name */
    struct logs_rank *ranks; /* owned: world_size of them */
    struct needles needles[RELAY_KINDS_N];
    struct logfile *matches[RELAY_KINDS_N];
    struct writer *writer; /* owned; NULL: no files */
    struct relay *relay;   /* borrowed */
};

/* Checks the settings and makes the run's directory. spec: with its run id. 0; -EINVAL and the errors of
 * logdir.h with one line that names the setting and the path. logs_finish() takes it in any case. */
MUST_CHECK int logs_prepare(struct logs *logs, const struct job_spec *spec, uint32_t world_size,
                            struct err *err);

/* Workers' output must pass through a relay: there are several, or a file, a prefix or a filter is asked for. */
bool logs_want_relay(const struct logs *logs);

/* Log files that are open at once for each worker. */
unsigned logs_files_per_rank(const struct logs *logs);

/* In the agent's process: starts what writes files. relay: borrowed; NULL if none is wanted. */
MUST_CHECK int logs_start(struct logs *logs, uv_loop_t *loop, struct relay *relay, struct err *err);

/* A new attempt: fresh directories, files and places for errors; those of the one before are closed. */
void logs_begin(struct logs *logs, uint32_t restart_count);

/* A rank gets another process within the attempt: its files go on, with a line of ours in them; its place for errors is
 * empty again. */
void logs_renew(struct logs *logs, uint32_t rank, const char *line);

/* Where a stream goes; valid until the next logs_begin(). */
const struct relay_route *logs_route(const struct logs *logs, uint32_t rank,
                                     enum relay_stream_kind kind);

/* Where a worker may leave its error as JSON: a path, "" if there is none. Below the log directory, or, without
 * one, a file in our memory that goes away with us. Valid until the next logs_begin(). */
const char *logs_error_file(const struct logs *logs, uint32_t rank);

/* What the rank of the present attempt left there, at most size - 1 bytes and a NUL; it may be anything. Returns the
 * bytes; 0: nothing; negative errno: it could not be read. */
MUST_CHECK ssize_t logs_read_error(const struct logs *logs, uint32_t rank, char *buf, size_t size);

/* Waits until files are written, at most ms, and tells what was lost. */
void logs_flush(struct logs *logs, unsigned ms);

/* Closes all; with files, after logs_flush(): when that has not written everything, a few are left to the end of
 * the process. Takes a zeroed one. */
void logs_finish(struct logs *logs);

#endif
