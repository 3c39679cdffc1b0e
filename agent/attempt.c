/* SPDX-License-Identifier: MIT */
#include "attempt.h"

#include "deathwatch.h"
#include "log.h"
#include "placement.h"
#include "port.h"

#include <fcntl.h>
#include <string.h>

/* How long a waiting rank looks before it sleeps, when every rank can have a CPU to itself: about what a
 * sleeping core takes to wake up. */
#define SPIN_NS 50000u

static int open_board(struct attempt *a, struct attempt_config *c, struct err *err)
{
    const struct environ_job *job = &c->job;
    const struct job_spec *spec = job->spec;
    struct board_config board = {
        .world_size = job->world_size,
        .generation = job->generation,
        .rendezvous_timeout_ms = (uint32_t)spec->rendezvous_timeout_ms,
        .spin_ns = job->cpus >= job->world_size ? SPIN_NS : 0,
        .restart_count = job->restart_count,
        .max_restarts = spec->max_restarts,
        .gpu_count = job->gpu_set->n,
        .flags = spec->share_gpus ? BOARD_FLAG_SHARE_GPUS : 0,
        .run_id = job->run_id,
    };
    int rc = host_board_open(&a->board, c->loop, &board, c->on_stage, c->user, err);
    if (rc < 0)
        return rc;
    for (uint32_t rank = 0; rank < job->world_size; rank++)
        board_slot(&a->board.board, rank)->device = environ_device(job, rank);
    c->job.board_fd = a->board.board.fd;
    c->job.bell_fd = a->board.bell;
    return 0;
}

/* The read end goes to the relay at once; the write end is the worker's. */
static int open_pipe(const struct attempt_config *c, uint32_t rank, enum relay_stream_kind kind,
                     int *ret_write, struct err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set_errno(err, -errno, "pipe");
    int rc = relay_add(c->relay, rank, kind, ends[0], logs_route(c->logs, rank, kind), err);
    if (rc < 0)
        close_fd(&ends[1]);
    else
        *ret_write = ends[1];
    return rc;
}

/* Ours goes to whom --stdin says, without our ever reading it; by default to a worker that is alone. */
static bool gets_stdin(const struct attempt_config *c, uint32_t rank)
{
    const struct job_spec *spec = c->job.spec;
    switch (spec->stdin_mode) {
    case STDIN_NONE:
        return false;
    case STDIN_ALL:
        return true;
    case STDIN_RANK:
        return rank == spec->stdin_rank;
    default:
        return c->job.world_size == 1;
    }
}

static int start_rank(struct attempt *a, struct attempt_config *c, uint32_t rank, int null_fd,
                      struct err *err)
{
    AUTO_FD out = -1;
    AUTO_FD errors = -1;
    int rc = 0;
    if (c->relay) {
        rc = open_pipe(c, rank, RELAY_STDOUT, &out, err);
        if (rc == 0)
            rc = open_pipe(c, rank, RELAY_STDERR, &errors, err);
    }
    if (rc < 0)
        return rc;
    c->job.error_file = logs_error_file(c->logs, rank);
    struct spawn_request request = {
        .file = c->program->file,
        .argv = program_argv(c->program, rank),
        .envp = environ_of(c->environ, &c->job, rank),
        .stdio = {gets_stdin(c, rank) ? -1 : null_fd, out, errors},
        .keep_fd = {c->job.board_fd, c->job.bell_fd},
        .traceable = c->job.notify != NULL, /* stacks of ranks that hang */
        .place = placement_spawn(c->job.placement, rank),
        .cgroup_fd = c->cgroup_fd,
        .inherited = c->inherited,
    };
    return rank_start(&c->ranks[rank], c->loop, a->group, &request, err);
}

/* Seccomp filters of containers refuse such calls; the job runs nevertheless. Told once. */
static void tell_refusal(struct attempt *a, const struct environ_job *job)
{
    struct spawn_refusal refusal;
    if (!spawn_refused(a->group, job->world_size, &refusal) || job->restart_count > 0)
        return;
    if (refusal.affinity)
        log_warn("rank %u could not be bound to its CPUs (--affinity): %s", refusal.index,
                 strerror(refusal.affinity));
    if (refusal.mempolicy)
        log_warn("rank %u could not be given its memory policy (--mem-policy): %s", refusal.index,
                 strerror(refusal.mempolicy));
}

int attempt_start(struct attempt *a, struct attempt_config *c, struct err *err)
{
    *a = (struct attempt){.port_fd = -1, .ras_fd = -1};
    const struct job_spec *spec = c->job.spec;
    AUTO_FD null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null_fd < 0)
        return err_set_errno(err, -errno, "/dev/null");
    logs_begin(c->logs, c->job.restart_count);
    int rc = port_reserve(spec->master_addr, spec->master_port, &a->port_fd, &a->port, err);
    if (rc == 0 && c->job.gpu_set->n) /* NCCL's own choice is the same one for all jobs */
        rc = port_reserve("127.0.0.1", 0, &a->ras_fd, &c->job.ras_port, err);
    if (rc == 0) {
        c->job.master_port = a->port;
        rc = open_board(a, c, err);
    }
    if (rc == 0)
        rc = spawn_group_create(&a->group, c->job.world_size, err);
    for (uint32_t rank = 0; rc == 0 && rank < c->job.world_size; rank++) {
        rc = start_rank(a, c, rank, null_fd, err);
        if (rc < 0)
            err_wrap(err, rc, "rank %u can't be started", rank);
    }
    if (rc == 0)
        spawn_open_gate(a->group);
    else if (a->group)
        spawn_group_dismiss(a->group);
    if (rc == 0)
        tell_refusal(a, &c->job); /* after the gate: nobody waits for that */
    return rc;
}

void attempt_watch(struct attempt *a, uv_loop_t *loop, uint32_t rank,
                   void (*on_lost)(void *user, uint32_t rank), void *user)
{
    struct host_board *hb = &a->board;
    if (!a->deathwatch &&
        deathwatch_start(&a->deathwatch, loop, &hb->board, hb->world_size, on_lost, user) < 0)
        return;
    deathwatch_add(a->deathwatch, rank);
}

void attempt_finish(struct attempt *a)
{
    deathwatch_stop(&a->deathwatch);
    host_board_close(&a->board);
    spawn_group_destroy(a->group);
    a->group = NULL;
    close_fd(&a->port_fd);
    close_fd(&a->ras_fd);
}
