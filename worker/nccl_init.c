/* SPDX-License-Identifier: MIT */
/* How the ranks of a generation come by a communicator: the unique id goes round through the board, and then all are in
 * ncclCommInitRank. Must never wait without looking at the deadline, the generation and the stop flag.
 *
 * A communicator that does not block has NCCL make a thread for every call on it: 90 us instead of 11 for a small all-reduce on
 * two H200. So only jobs whose processes outlive a rank have one; for the others a thread of ours waits in the one call that
 * a rank which never comes would hold for ever. */
#include "nccl_inside.h"

#include "../proto/clock.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

bool nccl_outlives(const struct launch *l)
{
    return launch_device_board(l)->head->flags & BOARD_FLAG_OUTLIVES;
}

/* NCCL takes the variable's word before ours. */
static bool user_blocks(void)
{
    const char *text = getenv("NCCL_COMM_BLOCKING");
    return text && strtol(text, NULL, 0) == 1;
}

static void call_init(struct init *init)
{
    init->result =
        ncclCommInitRankConfig(&init->comm, init->nranks, init->id, init->rank, &init->config);
}

static void *init_thread(void *arg)
{
    struct init *init = arg;
    pthread_setname_np(pthread_self(), "launch-init");
    cudaSetDevice(init->device);
    call_init(init);
    atomic_store(&init->done, 1);
    board_wake(&init->done);
    return NULL;
}

int nccl_start_comm(struct nccl *n, uint64_t deadline_ns)
{
    struct line *line = n->line;
    struct init *init = &line->init;
    int r = unique_id(n, &init->id, deadline_ns);
    if (r != LAUNCH_OK)
        return r;
    init->config = (ncclConfig_t)NCCL_CONFIG_INITIALIZER;
    init->config.blocking = !nccl_outlives(n->l);
    init->threaded = init->config.blocking || user_blocks();
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
    init->config.commName = line->name;
#endif
    init->rank = launch_rank(n->l);
    init->nranks = launch_world_size(n->l);
    init->device = launch_device(n->l);
    if (!init->threaded) {
        call_init(init);
        line->comm = init->comm;
        return LAUNCH_OK;
    }
    int rc = nccl_thread(&init->thread, init_thread, init);
    init->threaded = rc == 0;
    return rc ? launch_fail(n->l, LAUNCH_FAILED, "a thread: %s", strerror(rc)) : LAUNCH_OK;
}

static int await_thread(struct nccl *n, uint64_t deadline_ns)
{
    const struct board *b = launch_device_board(n->l);
    struct init *init = &n->line->init;
    for (;;) {
        uint32_t epoch = atomic_load_explicit(&b->head->epoch, memory_order_acquire);
        if (atomic_load(&init->done))
            break;
        int r = nccl_verdict(n->l, launch_check(n->l));
        if (r != LAUNCH_OK)
            return r;
        if (board_wait(b, &init->done, 0, epoch, deadline_ns) == -ETIMEDOUT)
            return LAUNCH_TIMEOUT;
    }
    pthread_join(init->thread, NULL);
    init->threaded = false;
    n->line->comm = init->comm;
    return LAUNCH_OK;
}

int nccl_finish_comm(struct nccl *n, uint64_t deadline_ns)
{
    struct init *init = &n->line->init;
    int r = init->threaded ? await_thread(n, deadline_ns) : LAUNCH_OK;
    if (r == LAUNCH_OK)
        r = nccl_await_call(n, "ncclCommInitRankConfig", init->result, deadline_ns);
    return r == LAUNCH_TIMEOUT ? fail_timeout(n) : r;
}
