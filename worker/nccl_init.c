/* SPDX-License-Identifier: MIT */
/* How the ranks of a generation come by a communicator: the unique id goes round through the board, and then all are in
 * ncclCommInitRank. Must never wait without looking at the deadline, the generation and the stop flag. */
#include "nccl_inside.h"

#include "../proto/clock.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define MISSING_BYTES 160

/* Has that rank come as far as we have? A rank that is done shows STAGE_RUNNING again; that it
 * had this generation's id tells it from one that never came. */
static bool has_come(const struct launch *l, uint32_t rank, unsigned generation)
{
    const struct board_head *head = launch_device_board(l)->head;
    const struct board_slot *slot = launch_device_peer(l, rank);

    if (atomic_load(&slot->generation) != generation)
        return false;
    if (atomic_load(&slot->stage) == STAGE_COMM_INIT)
        return true;
    uint64_t seen_ns = atomic_load(&slot->id_seen_ns);
    return seen_ns && atomic_load(&head->id_generation) == generation &&
           seen_ns >= head->id_published_ns;
}

/* "rank 1, 4, 5" or "ranks ... and 12 more"; returns how many. */
static unsigned missing_ranks(const struct launch *l, unsigned generation, uint32_t nranks,
                              char *text, size_t size)
{
    unsigned missing = 0, listed = 0;
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t rank = 0; rank < nranks; rank++) {
        if (has_come(l, rank, generation))
            continue;
        missing++;
        if (size - used < sizeof(", 4294967295 and 4294967295 more"))
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s%u", listed ? ", " : "rank ", rank);
        listed++;
    }
    if (missing > listed)
        snprintf(text + used, size - used, " and %u more", missing - listed);
    return missing;
}

static int fail_timeout(struct nccl *n)
{
    const struct board *b = launch_device_board(n->l);
    uint32_t nranks = (uint32_t)launch_world_size(n->l);
    char missing[MISSING_BYTES];

    if (missing_ranks(n->l, n->generation, nranks, missing, sizeof(missing)) > 0)
        return launch_fail(n->l, LAUNCH_TIMEOUT,
                           "communicator not set up after %u ms: %s did not ask for it",
                           b->head->rendezvous_timeout_ms, missing);
    return launch_fail(n->l, LAUNCH_TIMEOUT,
                       "communicator not set up after %u ms: all ranks are in "
                       "ncclCommInitRank",
                       b->head->rendezvous_timeout_ms);
}

/* Only rank 0 writes these fields; the number of the generation goes last and hands them over. */
static int publish_id(struct nccl *n, ncclUniqueId *ret)
{
    struct board_head *head = launch_device_board(n->l)->head;

    ncclResult_t e = ncclGetUniqueId(ret);
    if (e != ncclSuccess)
        return nccl_fail(n, "ncclGetUniqueId", e);

    memcpy(head->id, ret, sizeof(head->id));
    head->id_nranks = (uint32_t)launch_world_size(n->l);
    head->id_published_ns = clock_now_ns();
    atomic_store_explicit(&head->id_generation, n->generation, memory_order_release);
    board_wake(&head->id_generation);
    return LAUNCH_OK;
}

static int await_id(struct nccl *n, ncclUniqueId *ret, uint64_t deadline_ns)
{
    const struct board *b = launch_device_board(n->l);
    struct board_head *head = b->head;

    for (;;) {
        /* Epoch before the look at the group: a change behind that look then ends the wait. */
        uint32_t epoch = atomic_load_explicit(&head->epoch, memory_order_acquire);
        int r = nccl_verdict(n->l, launch_check(n->l));
        if (r != LAUNCH_OK)
            return r;
        int rc = board_await_id(b, n->generation, epoch, deadline_ns);
        if (rc == 0)
            break;
        if (rc == -ETIMEDOUT)
            return fail_timeout(n);
    }
    if (head->id_nranks != (uint32_t)launch_world_size(n->l))
        return launch_fail(n->l, LAUNCH_INVALID,
                           "rank 0 made a unique id for %u ranks, this rank counts %d",
                           head->id_nranks, launch_world_size(n->l));
    memcpy(ret, head->id, sizeof(*ret));
    return LAUNCH_OK;
}

static int unique_id(struct nccl *n, ncclUniqueId *ret, uint64_t deadline_ns)
{
    static_assert(sizeof(ncclUniqueId) == BOARD_ID_BYTES, "NCCL's unique id fits the board");

    int r = launch_rank(n->l) == 0 ? publish_id(n, ret) : await_id(n, ret, deadline_ns);
    if (r == LAUNCH_OK)
        atomic_store(&launch_device_slot(n->l)->id_seen_ns, clock_now_ns());
    return r;
}

/* Non-blocking, for only then can a rank that never comes be given up. */
static int init_comm(struct nccl *n, const ncclUniqueId *id, uint64_t deadline_ns)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

    config.blocking = 0;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
    config.commName = n->name;
#endif
    ncclResult_t e =
        ncclCommInitRankConfig(&n->line->comm, launch_world_size(n->l), *id, launch_rank(n->l), &config);
    int r = nccl_await_call(n, "ncclCommInitRankConfig", e, deadline_ns);
    return r == LAUNCH_TIMEOUT ? fail_timeout(n) : r;
}

int nccl_init_comm(struct nccl *n)
{
    uint64_t deadline_ns =
        clock_deadline_ns(launch_device_board(n->l)->head->rendezvous_timeout_ms);
    ncclUniqueId id;

    launch_device_set_stage(n->l, STAGE_COMM_INIT);
    int r = unique_id(n, &id, deadline_ns);
    if (r == LAUNCH_OK)
        r = init_comm(n, &id, deadline_ns);
    if (r == LAUNCH_OK)
        launch_device_set_stage(n->l, STAGE_RUNNING);
    return r;
}
