/* SPDX-License-Identifier: MIT */
/* One attempt at running the group: its port, board, pipes and worker processes, all fresh, so that nothing
 * of an earlier attempt can be seen by a later one. Starts and gives back; decides nothing. */
#ifndef LAUNCH_AGENT_ATTEMPT_H
#define LAUNCH_AGENT_ATTEMPT_H

#include "environ.h"
#include "host_board.h"
#include "logs.h"
#include "nccl_topo.h"
#include "program.h"
#include "rank.h"
#include "relay.h"

struct deathwatch;

struct attempt {
    struct host_board board;
    struct deathwatch *deathwatch; /* owned; NULL until a rank has joined */
    struct spawn_group *group;     /* owned */
    int port_fd;                   /* owned: keeps MASTER_PORT ours */
    uint16_t port;
    int null_fd; /* owned: /dev/null */
    int ras_fd;  /* owned: of NCCL's RAS, likewise; -1: no GPU */
};

struct attempt_config {
    uv_loop_t *loop;
    const struct program *program;
    const struct spawn_inherited *inherited;
    struct environ *environ;
    struct environ_job job; /* port, board_fd, bell_fd, and the files are filled in */
    struct rank *ranks;     /* world_size of them, without processes */
    struct rank *spares;    /* spares_n of them */
    uint32_t spares_n;
    struct relay *relay; /* NULL: workers inherit our stdout and stderr */
    struct logs *logs;
    struct nccl_topo *topo;
    int cgroup_fd; /* the workers' cgroup; 0 or -1: ours */
    void (*on_stage)(void *user, uint32_t rank, enum stage stage);
    void (*on_bell)(void *user); /* as in host_board.h */
    void *user;
};

/* Starts all workers; they run when it returns 0. On failure the text names the rank, and workers that had been started
 * end at their gate without having run anything; they are still to be reaped. */
MUST_CHECK int attempt_start(struct attempt *a, struct attempt_config *config, struct err *err);

/* Starts another process for a rank that has none. A failure costs nothing but that. */
MUST_CHECK int attempt_start_rank(struct attempt *a, struct attempt_config *config, uint32_t rank,
                                  struct err *err);

/* Starts standby i. ret_pipes: read ends of its stdout and stderr, the caller's; -1 without a relay. */
MUST_CHECK int attempt_start_spare(struct attempt *a, struct attempt_config *config, uint32_t i,
                                   int ret_pipes[RELAY_KINDS_N], struct err *err);

/* Makes standby i the process of a rank that has none; takes its pipes. */
MUST_CHECK int attempt_use_spare(struct attempt *a, struct attempt_config *config, uint32_t i,
                                 int pipes[RELAY_KINDS_N], uint32_t rank, struct err *err);

/* Lets NCCL read in all ranks what standbys have found out, if that is known of all, else in none. Every rank has its process,
 * and none uses NCCL yet: attempt_start() does it, and whoever lets a later generation go. */
void attempt_tell_topology(struct attempt *a, struct attempt_config *config);

/* A rank has joined: on_lost(user, rank) will be called when the lock of its slot is freed by a death (deathwatch.h).
 * Without memory or descriptors there is no early news. */
void attempt_watch(struct attempt *a, uv_loop_t *loop, uint32_t rank,
                   void (*on_lost)(void *user, uint32_t rank), void *user);

/* Gives everything back. Takes a zeroed or half-started one too; no worker may be left. */
void attempt_finish(struct attempt *a);

#endif
