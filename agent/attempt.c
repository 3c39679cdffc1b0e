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
        .spares = c->spares_n,
        .generation = job->generation,
        .rendezvous_timeout_ms = (uint32_t)spec->rendezvous_timeout_ms,
        .spin_ns = job->cpus >= job->world_size ? SPIN_NS : 0,
        .restart_count = job->restart_count,
        .max_restarts = spec->max_restarts,
        .gpu_count = job->gpu_set->n,
        .flags = (spec->share_gpus ? BOARD_FLAG_SHARE_GPUS : 0) |
                 (spec_heals(spec) ? BOARD_FLAG_OUTLIVES : 0),
        .run_id = job->run_id,
    };
    int rc = host_board_open(&a->board, c->loop, &board, c->on_stage, c->user, err);
    if (rc < 0)
        return rc;
    a->board.on_bell = c->on_bell;
    for (uint32_t rank = 0; rank < job->world_size; rank++)
        board_slot(&a->board.board, rank)->device = environ_device(job, rank);
    for (uint32_t i = job->world_size; i < job->world_size + c->spares_n; i++)
        board_slot(&a->board.board, i)->device = environ_device(job, environ_rank_of(job, i));
    c->job.board_fd = a->board.board.fd;
    c->job.bell_fd = a->board.bell;
    return 0;
}

static int make_pipe(int *ret_read, int *ret_write, struct err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set_errno(err, -errno, "pipe");
    *ret_read = ends[0];
    *ret_write = ends[1];
    return 0;
}

/* The read end goes to the relay at once; the write end is the worker's. */
static int open_pipe(const struct attempt_config *c, uint32_t rank, enum relay_stream_kind kind,
                     int *ret_write, struct err *err)
{
    int read_end = -1;
    int rc = make_pipe(&read_end, ret_write, err);
    if (rc == 0)
        rc = relay_add(c->relay, rank, kind, read_end, logs_route(c->logs, rank, kind), err);
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

/* Of a rank, or of a standby behind them. out, errors: -1: ours. */
static int start_process(struct attempt *a, struct attempt_config *c, struct rank *rank, int out,
                         int errors, struct err *err)
{
    bool is_rank = rank->index < c->job.world_size;
    uint32_t like = environ_rank_of(&c->job, rank->index);
    char file[NCCL_TOPO_PATH_BYTES], draft[NCCL_TOPO_PATH_BYTES];
    c->job.topo_file = nccl_topo_file(c->topo, like, file);
    c->job.topo_draft =
        is_rank ? NULL : nccl_topo_draft(c->topo, rank->index - c->job.world_size, draft);
    c->job.error_file = is_rank ? logs_error_file(c->logs, rank->index) : NULL;
    struct spawn_request request = {
        .file = c->program->file,
        .argv = program_argv(c->program, like),
        .envp = environ_of(c->environ, &c->job, rank->index),
        .stdio = {is_rank && gets_stdin(c, rank->index) ? -1 : a->null_fd, out, errors},
        .keep_fd = {c->job.board_fd, c->job.bell_fd},
        .background = !is_rank,
        .traceable = c->job.notify != NULL, /* stacks of ranks that hang */
        .place = placement_spawn(c->job.placement, like),
        .cgroup_fd = c->cgroup_fd,
        .inherited = c->inherited,
    };
    if (is_rank)
        host_board_occupy(&a->board, rank->index);
    int rc = rank_start(rank, c->loop, a->group, &request, err);
    rank->generation = c->job.generation;
    rank->background = request.background;
    return rc;
}

void attempt_tell_topology(struct attempt *a, struct attempt_config *c)
{
    bool all = true;
    for (uint32_t i = 0; all && i < c->job.world_size; i++)
        all = a->board.dropped[i] ||
              nccl_topo_knows(c->topo, i, environ_rank_of(&c->job, c->ranks[i].seat));
    nccl_topo_tell(c->topo, all);
}

int attempt_start_rank(struct attempt *a, struct attempt_config *c, uint32_t rank, struct err *err)
{
    AUTO_FD out = -1;
    AUTO_FD errors = -1;
    int rc = 0;
    if (c->relay) {
        rc = open_pipe(c, rank, RELAY_STDOUT, &out, err);
        if (rc == 0)
            rc = open_pipe(c, rank, RELAY_STDERR, &errors, err);
    }
    return rc < 0 ? rc : start_process(a, c, &c->ranks[rank], out, errors, err);
}

int attempt_start_spare(struct attempt *a, struct attempt_config *c, uint32_t i,
                        int ret_pipes[RELAY_KINDS_N], struct err *err)
{
    AUTO_FD out = -1;
    AUTO_FD errors = -1;
    int rc = 0;
    ret_pipes[RELAY_STDOUT] = ret_pipes[RELAY_STDERR] = -1;
    if (c->relay) {
        rc = make_pipe(&ret_pipes[RELAY_STDOUT], &out, err);
        if (rc == 0)
            rc = make_pipe(&ret_pipes[RELAY_STDERR], &errors, err);
    }
    host_board_vacate(&a->board, i);
    if (rc == 0)
        rc = start_process(a, c, &c->spares[i], out, errors, err);
    if (rc < 0) {
        close_fd(&ret_pipes[RELAY_STDOUT]);
        close_fd(&ret_pipes[RELAY_STDERR]);
    }
    return rc;
}

int attempt_use_spare(struct attempt *a, struct attempt_config *c, uint32_t i,
                      int pipes[RELAY_KINDS_N], uint32_t rank, struct err *err)
{
    int rc = 0;
    for (enum relay_stream_kind kind = 0; rc == 0 && c->relay && kind < RELAY_KINDS_N; kind++)
        rc = relay_add(c->relay, rank, kind, take_fd(&pipes[kind]), logs_route(c->logs, rank, kind),
                       err);
    if (rc < 0)
        return rc;
    rank_move(&c->ranks[rank], &c->spares[i]);
    host_board_occupy(&a->board, rank);
    host_board_assign(&a->board, i, rank);
    return 0;
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
    *a = (struct attempt){.port_fd = -1, .ras_fd = -1, .null_fd = -1};
    const struct job_spec *spec = c->job.spec;
    a->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (a->null_fd < 0)
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
        rc = spawn_group_create(&a->group, c->job.world_size + c->spares_n, err);
    for (uint32_t rank = 0; rc == 0 && rank < c->job.world_size; rank++) {
        rc = attempt_start_rank(a, c, rank, err);
        if (rc < 0)
            err_wrap(err, rc, "rank %u can't be started", rank);
    }
    if (rc == 0) {
        attempt_tell_topology(a, c);
        spawn_open_gate(a->group);
    } else if (a->group) {
        spawn_group_dismiss(a->group);
    }
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
    close_fd(&a->null_fd);
    close_fd(&a->ras_fd);
}
