/* SPDX-License-Identifier: MIT */
#include "host_board.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

/* Workers keep the two descriptors under these numbers' neighbourhood: out of the way of shell scripts
 * (which use 3 to 9) when the worker's descriptor limit allows it. */
#define PARK_FD 100
#define PARK_LIMIT 128

enum stage host_board_stage(const struct host_board *hb, uint32_t rank)
{
    const struct board_slot *slot = board_slot(&hb->board, rank);
    uint32_t stage = atomic_load_explicit(&slot->stage, memory_order_acquire);
    uint32_t generation = atomic_load_explicit(&slot->generation, memory_order_relaxed);
    return generation == hb->generation && stage < STAGES_N ? (enum stage)stage : STAGE_NONE;
}

void host_board_look(struct host_board *hb)
{
    for (uint32_t rank = 0; hb->polling && rank < hb->world_size; rank++) {
        enum stage stage = host_board_stage(hb, rank);
        if (stage == hb->seen[rank])
            continue;
        hb->seen[rank] = (uint8_t)stage;
        hb->on_stage(hb->user, rank, stage);
    }
}

static void on_bell(uv_poll_t *poll, int status, int events)
{
    struct host_board *hb = CONTAINER_OF(poll, struct host_board, poll);
    (void)status;
    (void)events;
    eventfd_t count;
    if (eventfd_read(hb->bell, &count) == 0)
        host_board_look(hb);
}

static int park(int *fd, struct err *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < PARK_LIMIT)
        return 0;
    int parked = fcntl(*fd, F_DUPFD_CLOEXEC, PARK_FD);
    if (parked < 0)
        return err_set_errno(err, -errno, "board: descriptor");
    close_fd(fd);
    *fd = parked;
    return 0;
}

int host_board_open(struct host_board *hb, uv_loop_t *loop, const struct board_config *config,
                    void (*on_stage)(void *user, uint32_t rank, enum stage stage), void *user,
                    struct err *err)
{
    *hb = (struct host_board){.bell = -1,
                              .world_size = config->world_size,
                              .generation = config->generation,
                              .on_stage = on_stage,
                              .user = user};
    int rc = board_create(&hb->board, config, err);
    if (rc < 0)
        return rc;
    hb->seen = calloc(config->world_size, 1);
    hb->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!hb->seen)
        rc = err_set_errno(err, -ENOMEM, "board");
    else if (hb->bell < 0)
        rc = err_set_errno(err, -errno, "board: eventfd");
    if (rc == 0)
        rc = park(&hb->board.fd, err);
    if (rc == 0)
        rc = park(&hb->bell, err);
    if (rc < 0) {
        host_board_close(hb);
        return rc;
    }
    uv_poll_init(loop, &hb->poll, hb->bell);
    uv_poll_start(&hb->poll, UV_READABLE, on_bell);
    hb->polling = true;
    return 0;
}

void host_board_release(struct host_board *hb)
{
    atomic_store_explicit(&hb->board.head->running, hb->generation, memory_order_release);
    board_wake(&hb->board.head->running);
}

void host_board_stop(struct host_board *hb, uint32_t why)
{
    if (!hb->board.head)
        return;
    atomic_store(&hb->board.head->stop, why);
    board_bump_epoch(&hb->board);
}

static void on_closed(uv_handle_t *handle)
{
    struct host_board *hb = CONTAINER_OF((uv_poll_t *)handle, struct host_board, poll);
    close_fd(&hb->bell);
}

void host_board_close(struct host_board *hb)
{
    if (!hb->board.head)
        return;
    board_close(&hb->board);
    free(hb->seen);
    hb->seen = NULL;
    if (hb->polling)
        uv_close((uv_handle_t *)&hb->poll, on_closed);
    else
        close_fd(&hb->bell);
    hb->polling = false;
}
