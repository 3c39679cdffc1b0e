/* SPDX-License-Identifier: MIT */
/* What happened: the callbacks of a job. Each writes down what it saw and posts an event; none changes the state. */
#ifndef LAUNCH_AGENT_NEWS_H
#define LAUNCH_AGENT_NEWS_H

#include "../proto/wire.h"
#include "job_inside.h"

/* For the modules below; user: the struct job. */
void news_on_rank_exit(void *user, struct rank *rank);
void news_on_rank_drained(void *user, unsigned rank);
void news_on_stage(void *user, uint32_t rank, enum stage stage);
void news_on_bell(void *user);
void news_on_buried(void *user); /* a process that is no rank's is gone */
void news_on_hang(void *user, uint32_t rank, const char *what, const char *evidence);
void news_on_outlet_gone(void *user, enum relay_stream_kind kind);
void news_on_signal(void *user, const struct signalfd_siginfo *info);
void news_on_guard_gone(void *user);
void news_on_limit(uv_timer_t *timer); /* --timeout */

/* From the control socket: WIRE_STOP to WIRE_SIGNAL; rank and number are not looked at before. who: pid of the client.
 * 0, or a negative errno with one line: this can't be done, or not now. */
MUST_CHECK int news_on_request(struct job *job, const struct wire_request *request, pid_t who,
                               struct err *err);

/* The rank has not called launch_join() in this attempt. */
bool news_never_joined(const struct job *job, uint32_t rank);

/* Writes down that a rank others wait for has ended with 0. */
void news_note_early_leaver(struct job *job, const struct rank *rank);

/* Reaps what became ours. Whatever dies below us makes its children ours: while killing, those are killed as well. */
void news_look_after_leftovers(struct job *job);

#endif
