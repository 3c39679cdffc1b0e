/* SPDX-License-Identifier: MIT */
/* The control socket of a running job: who may speak, how much at once, and that nobody who connects can hold the job up.
 * What is answered comes from the job, by callbacks. Costs nothing while nobody asks.
 *
 * Packets are made one by one as the other side takes them, so a client that does not read costs a descriptor and no
 * memory; beyond CONTROL_CLIENTS the oldest one goes. */
#ifndef LAUNCH_AGENT_CONTROL_H
#define LAUNCH_AGENT_CONTROL_H

#include "../proto/wire.h"
#include "rundir.h"

#include <uv.h>

#define CONTROL_CLIENTS 16

struct control; /* opaque; heap */

/* Answers of the job. Packets come empty, with their head. */
struct control_source {
    void (*describe)(void *user, struct wire_job *job);
    /* From world_size on: of a standby. */
    void (*describe_rank)(void *user, uint32_t index, struct wire_rank *rank);
    /* The last bytes of a stream: 1 stdout, 2 stderr. */
    void (*show_output)(void *user, uint32_t index, unsigned stream, struct wire_output *output);
    /* WIRE_STOP to WIRE_SIGNAL. 0, or a negative errno with one line for who asked. who: pid of the client. */
    int (*act)(void *user, const struct wire_request *request, pid_t who, struct err *err);
    uint32_t world_size, standbys;
    void *user;
};

/* Makes directory and socket, and listens. place: copied. source: copied. */
MUST_CHECK int control_start(struct control **ret, uv_loop_t *loop,
                             const struct rundir_place *place, const struct control_source *source,
                             struct err *err);

/* The job is over: tells those that wait for it, removes the socket. Memory goes with the last close callback. NULL is
 * fine. */
void control_stop(struct control *control, int exit_code);

#endif
