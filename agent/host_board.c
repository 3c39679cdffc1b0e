/* SPDX-License-Identifier: MIT */
#include "host_board.h"

#include "../proto/ranklist.h"
#include "watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

/* Workers keep the two descriptors under these numbers' neighbourhood: out of the way of shell scripts
 * (which use 3 to 9) when the worker's descriptor limit allows it. */
#define PARK_FD 100
#define PARK_LIMIT 128
#define MISSING_SHOWN 8

enum stage host_board_stage(const struct host_board *hb, uint32_t rank)
{
    const struct board_slot *slot = board_slot(&hb->board, rank);
    /* In this order: a stage of an old generation is not taken for one of this. */
    uint32_t generation = atomic_load_explicit(&slot->generation, memory_order_acquire);
    uint32_t stage = atomic_load_explicit(&slot->stage, memory_order_acquire);
    return generation == hb->generation && stage < STAGES_N ? (enum stage)stage : STAGE_NONE;
}

struct progress host_board_progress(const struct host_board *hb, uint32_t rank)
{
    const struct board_slot *slot = board_slot(&hb->board, rank);
    /* The stage first: behind one of this generation there are no counts of an old one. */
    enum stage stage = host_board_stage(hb, rank);
    if (stage == STAGE_NONE)
        return (struct progress){.stage = stage};
    return (struct progress){
        .stage = stage,
        .step = atomic_load_explicit(&slot->step, memory_order_relaxed),
        .heartbeat = atomic_load_explicit(&slot->heartbeat, memory_order_relaxed),
        .entered = atomic_load_explicit(&slot->entered, memory_order_relaxed),
        .finished = atomic_load_explicit(&slot->finished, memory_order_relaxed),
    };
}

static bool is_members(unsigned stage)
{
    return stage == STAGE_JOINED || stage == STAGE_RUNNING || stage == STAGE_COMM_INIT;
}

bool host_board_is_member(const struct host_board *hb, uint32_t rank)
{
    return is_members(host_board_stage(hb, rank));
}

bool host_board_can_heal(const struct host_board *hb, uint32_t rank)
{
    return atomic_load(&board_slot(&hb->board, rank)->join_flags) & BOARD_JOIN_CAN_HEAL;
}

/* Of any generation; NONE: its process has told nothing yet. */
static unsigned last_stage(const struct host_board *hb, uint32_t rank)
{
    if (!hb->board.head)
        return STAGE_NONE;
    const struct board_slot *slot = board_slot(&hb->board, rank);
    bool its_own = atomic_load(&slot->generation) >= hb->since[rank];
    return its_own ? atomic_load(&slot->stage) : STAGE_NONE;
}

bool host_board_catches_stop(const struct host_board *hb, uint32_t rank)
{
    return is_members(last_stage(hb, rank)) &&
           (atomic_load(&board_slot(&hb->board, rank)->join_flags) & BOARD_JOIN_CATCHES_STOP);
}

bool host_board_has_left(const struct host_board *hb, uint32_t rank)
{
    return last_stage(hb, rank) == STAGE_LEFT;
}

uint32_t host_board_false_stop(const struct host_board *hb, uint32_t rank)
{
    return hb->board.head && !hb->stopped ? atomic_load(&board_slot(&hb->board, rank)->obeyed) : 0;
}

/* Stages only grow, but for the way back from COMM_INIT, whatever a broken worker writes; nobody skips JOINED. */
static void tell_stage(struct host_board *hb, uint32_t rank, enum stage stage)
{
    enum stage seen = hb->seen[rank];
    if (stage == seen || (stage < seen && stage != STAGE_RUNNING) || seen >= STAGE_LEFT)
        return;
    hb->seen[rank] = (uint8_t)stage;
    if (seen == STAGE_NONE && stage > STAGE_JOINED)
        hb->on_stage(hb->user, rank, STAGE_JOINED);
    hb->on_stage(hb->user, rank, stage);
    /* Those that wait for it in a collective look again, and see that it has gone. */
    if (stage == STAGE_LEFT && hb->board.head)
        board_bump_epoch(&hb->board);
}

void host_board_look_at(struct host_board *hb, uint32_t rank)
{
    if (hb->board.head && !hb->dropped[rank])
        tell_stage(hb, rank, host_board_stage(hb, rank));
}

static void on_bell(void *user)
{
    struct host_board *hb = user;
    eventfd_t count;
    if (eventfd_read(hb->bell, &count) < 0)
        return;
    for (uint32_t rank = 0; rank < hb->world_size; rank++)
        host_board_look_at(hb, rank);
    if (hb->on_bell)
        hb->on_bell(hb->user);
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
                              .members = config->world_size,
                              .generation = config->generation,
                              .on_stage = on_stage,
                              .user = user};
    int rc = board_create(&hb->board, config, err);
    if (rc < 0)
        return rc;
    hb->seen = calloc(config->world_size, sizeof *hb->seen);
    hb->dropped = calloc(config->world_size, sizeof *hb->dropped);
    hb->since = calloc(config->world_size, sizeof *hb->since);
    hb->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!hb->seen || !hb->dropped || !hb->since)
        rc = err_set_errno(err, -ENOMEM, "board");
    else if (hb->bell < 0)
        rc = err_set_errno(err, -errno, "board: eventfd");
    if (rc == 0)
        rc = park(&hb->board.fd, err);
    if (rc == 0)
        rc = park(&hb->bell, err);
    if (rc == 0 && !(hb->watch = watch_start(loop, hb->bell, on_bell, hb)))
        rc = err_set_errno(err, -errno, "board: bell");
    if (rc < 0)
        host_board_close(hb);
    return rc;
}

void host_board_drop(struct host_board *hb, uint32_t place)
{
    hb->members--;
    hb->dropped[place] = true;
}

void host_board_regain(struct host_board *hb, uint32_t place)
{
    hb->members++;
    hb->dropped[place] = false;
}

/* The generation's number first: whoever still reads the old table sees that it is over. */
void host_board_next(struct host_board *hb, uint32_t generation, uint64_t timeout_ms)
{
    struct board_head *h = hb->board.head;
    hb->generation = generation;
    hb->gathered = false;
    memset(hb->seen, STAGE_NONE, hb->world_size);
    if (h->rendezvous_timeout_ms && (timeout_ms == 0 || timeout_ms > h->rendezvous_timeout_ms))
        h->rendezvous_timeout_ms = (uint32_t)timeout_ms;
    atomic_store(&h->generation, generation);
    atomic_store(&h->members, hb->members);
    for (uint32_t i = 0, rank = 0; i < hb->world_size; i++)
        atomic_store(&board_slot(&hb->board, i)->rank, hb->dropped[i] ? BOARD_NO_RANK : rank++);
    board_bump_epoch(&hb->board);
}

void host_board_occupy(struct host_board *hb, uint32_t place)
{
    hb->since[place] = hb->generation;
}

void host_board_vacate(struct host_board *hb, uint32_t spare)
{
    struct board_slot *slot = board_slot(&hb->board, hb->world_size + spare);
    atomic_store(&slot->assigned, 0);
    atomic_store(&slot->stage, STAGE_NONE);
}

bool host_board_is_warm(const struct host_board *hb, uint32_t spare)
{
    const struct board_slot *slot = board_slot(&hb->board, hb->world_size + spare);
    return atomic_load(&slot->stage) == STAGE_JOINED;
}

void host_board_assign(struct host_board *hb, uint32_t spare, uint32_t place)
{
    _Atomic uint32_t *assigned = &board_slot(&hb->board, hb->world_size + spare)->assigned;
    atomic_store_explicit(assigned, place + 1, memory_order_release);
    board_wake(assigned);
}

/* The newest state wins, and of equal ones the lowest rank; ranks are in the order of their places. What the slots say is
 * as untrusted as ever: the worst a broken rank does is to offer its own state. */
static bool choose_root(struct host_board *hb)
{
    struct board_head *h = hb->board.head;
    uint64_t newest = 0;
    uint32_t root = 0, rank = 0, equal = 0;
    bool elders = false;
    for (uint32_t i = 0; i < hb->world_size; i++) {
        const struct board_slot *slot = board_slot(&hb->board, i);
        if (hb->dropped[i])
            continue;
        uint64_t state = atomic_load_explicit(&slot->state, memory_order_acquire);
        elders |= atomic_load(&slot->born) != hb->generation;
        if (state > newest) {
            newest = state;
            root = rank + 1;
            equal = 0;
        }
        equal += state == newest;
        rank++;
    }
    atomic_store(&h->root, root);
    atomic_store(&h->root_state, newest);
    atomic_store(&h->restore, root && equal < hb->members);
    return root || !elders;
}

bool host_board_gather(struct host_board *hb)
{
    if (hb->gathered)
        return true;
    if (!choose_root(hb))
        return false;
    hb->gathered = true;
    atomic_store_explicit(&hb->board.head->gathered, hb->generation, memory_order_release);
    board_bump_epoch(&hb->board);
    return true;
}

bool host_board_release(struct host_board *hb)
{
    if (!hb->gathered && !choose_root(hb))
        return false;
    atomic_store_explicit(&hb->board.head->running, hb->generation, memory_order_release);
    board_wake(&hb->board.head->running);
    if (hb->gathered)
        board_bump_epoch(&hb->board); /* they may wait for other words than `running` */
    return true;
}

void host_board_stop(struct host_board *hb, uint32_t why)
{
    if (!hb->board.head)
        return;
    hb->stopped = true;
    atomic_store(&hb->board.head->stop, why);
    board_bump_epoch(&hb->board);
}

/* Returns how many. */
static uint32_t list_missing(const struct host_board *hb, char *text, size_t size)
{
    struct ranklist list;
    ranklist_begin(&list, text, size, MISSING_SHOWN);
    for (uint32_t i = 0; i < hb->world_size; i++)
        if (host_board_stage(hb, i) == STAGE_NONE)
            ranklist_add(&list, i);
    return ranklist_end(&list);
}

void host_board_describe_missing(const struct host_board *hb, uint64_t timeout_ms, char *text,
                                 size_t size)
{
    char list[128] = "";
    uint32_t missing = list_missing(hb, list, sizeof list);
    snprintf(text, size,
             "rendezvous: rank%s %s never called launch_join() within %g s (--rendezvous-timeout); "
             "%u of %u did",
             missing == 1 ? "" : "s", list, (double)timeout_ms / 1000, hb->world_size - missing,
             hb->world_size);
}

void host_board_close(struct host_board *hb)
{
    if (!hb->board.head)
        return;
    watch_stop(&hb->watch);
    board_close(&hb->board);
    close_fd(&hb->bell);
    free(hb->seen);
    free(hb->dropped);
    free(hb->since);
    hb->seen = NULL;
    hb->dropped = NULL;
    hb->since = NULL;
}
