/* SPDX-License-Identifier: MIT */
/* What a job that outlives the loss of a rank asks of its membership: what is kept, commits, meeting again, and the wait of
 * a standby. Must never know how a generation comes together (worker.c), nor decide who is lost: the agent does. */
#include "worker.h"

#include "../proto/clock.h"
#include "../proto/env.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define OOM_ADJ "/proc/self/oom_score_adj"
#define OOM_ADJ_FIRST "1000"
#define OOM_ADJ_BYTES 8
#define WARM_NICE 10 /* while a standby warms up, beside ranks that work */

/* A slot's state: 0, as all begin, then the commits, of which the first may be number 0. */
#define STATE_NONE 0
#define STATE_BEGIN 1
#define STATE_COMMIT 2

static const struct device_offer *offer; /* NULL: no backend is linked */

/* Of the job's own memory. */
struct piece {
    void *data;
    size_t bytes;
    void *to;    /* where root's goes while it is copied; NULL: nowhere */
    bool device; /* memory of the backend's */
};

static int keep(struct launch *l, void *data, size_t bytes, bool device)
{
    if (!data)
        return launch_fail(l, LAUNCH_INVALID, "launch_keep: data is NULL");
    size_t i = 0;
    while (i < l->kept_n && l->kept[i].data != data)
        i++;
    if (i == l->kept_n) {
        struct piece *kept = realloc(l->kept, (i + 1) * sizeof *kept);
        if (!kept)
            return launch_fail(l, LAUNCH_FAILED, "launch_keep: out of memory");
        l->kept = kept;
        l->kept_n++;
    }
    l->kept[i] = (struct piece){.data = data, .bytes = bytes, .device = device};
    return LAUNCH_OK;
}

int launch_keep(struct launch *l, void *data, size_t bytes)
{
    return keep(l, data, bytes, false);
}

int launch_device_keep(struct launch *l, void *data, size_t bytes)
{
    return keep(l, data, bytes, true);
}

/* Release: whoever sees the number sees a whole state; NONE goes before the first byte that spoils it. */
static void set_state(struct launch *l, uint64_t state)
{
    atomic_store_explicit(&l->slot->state, state, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
}

int launch_commit(struct launch *l, uint64_t n)
{
    atomic_store_explicit(&l->slot->state, n + STATE_COMMIT, memory_order_release);
    return launch_step(l, n);
}

/* A broadcast over host memory compares what the ranks want; one over a device's would only hang. */
static int copy_device(struct launch *l, const struct piece *piece)
{
    uint64_t bytes = piece->bytes;
    int rc = collective_broadcast(l, &bytes, sizeof bytes, (uint32_t)l->root);
    if (rc)
        return rc;
    if (bytes != piece->bytes)
        return launch_fail(l, LAUNCH_INVALID, "launch_nccl_keep: %zu bytes here, %llu on rank %d",
                           piece->bytes, (unsigned long long)bytes, l->root);
    return l->ops->memory->broadcast(l->backend, piece->to, piece->bytes, l->root);
}

static int copy_from_root(struct launch *l)
{
    for (size_t i = 0; i < l->kept_n; i++) {
        struct piece *piece = &l->kept[i];
        int rc = piece->device
                     ? copy_device(l, piece)
                     : collective_broadcast(l, piece->to, piece->bytes, (uint32_t)l->root);
        if (rc)
            return rc;
    }
    return LAUNCH_OK;
}

/* Takes the pieces out of the memory beside; use: they are the new state. */
static int unstage(struct launch *l, bool use)
{
    int rc = LAUNCH_OK;
    for (size_t i = 0; i < l->kept_n; i++) {
        struct piece *piece = &l->kept[i];
        if (piece->device) {
            if (use && rc == LAUNCH_OK)
                rc = l->ops->memory->move(l->backend, piece->data, piece->to, piece->bytes);
            l->ops->memory->free(l->backend, piece->to);
        } else {
            if (use)
                memcpy(piece->data, piece->to, piece->bytes);
            free(piece->to);
        }
        piece->to = NULL;
    }
    return rc;
}

/* Memory beside the kept one. False: there is not enough. */
static bool stage(struct launch *l)
{
    bool enough = true;
    for (size_t i = 0; i < l->kept_n; i++) {
        struct piece *piece = &l->kept[i];
        piece->to = piece->device ? l->ops->memory->alloc(l->backend, piece->bytes)
                                  : malloc(piece->bytes + 1);
        enough &= piece->to != NULL;
    }
    if (!enough)
        unstage(l, false);
    return enough;
}

static void set_targets(struct launch *l, bool kept)
{
    for (size_t i = 0; i < l->kept_n; i++)
        l->kept[i].to = kept ? l->kept[i].data : NULL;
}

/* A whole state that is only older is not given up before the new one is here: should root die while it is copied, the
 * group still has one. Without memory for both it is. */
static int catch_up(struct launch *l)
{
    bool staged = atomic_load(&l->slot->state) != STATE_NONE && stage(l);
    if (!staged) {
        set_state(l, STATE_NONE);
        set_targets(l, true);
    }
    int rc = copy_from_root(l);
    if (staged) {
        int unstaged = unstage(l, rc == LAUNCH_OK);
        rc = rc ? rc : unstaged;
    }
    if (rc == LAUNCH_OK)
        set_state(l, l->state);
    return rc;
}

/* All make the same collectives; only those that are behind take what comes. */
static int restore(struct launch *l)
{
    if (atomic_load(&l->slot->state) != l->state)
        return catch_up(l);
    set_targets(l, (int)l->rank == l->root);
    return copy_from_root(l);
}

/* Once in a generation. Root's commit is the step of all then: a new process is no further behind than the others are. */
static int meet(struct launch *l)
{
    if (l->met == l->generation)
        return LAUNCH_OK;
    int rc = LAUNCH_OK;
    if (l->root < 0)
        set_state(l, STATE_BEGIN);
    else if (l->restore)
        rc = restore(l);
    if (rc)
        return rc;
    if (l->root >= 0 && l->state >= STATE_COMMIT)
        atomic_store_explicit(&l->slot->step, l->state - STATE_COMMIT, memory_order_relaxed);
    l->met = l->generation;
    return LAUNCH_OK;
}

/* The agent is told once: it may start standbys now. Only after meet(), so that who consents has a state. */
static void consent(struct launch *l)
{
    if (atomic_fetch_or(&l->slot->join_flags, BOARD_JOIN_CAN_HEAL) & BOARD_JOIN_CAN_HEAL)
        return;
    worker_ring(l);
}

int launch_meet(struct launch *l)
{
    for (;;) {
        int rc = launch_check(l);
        if (rc == LAUNCH_AGAIN)
            rc = worker_rejoin(l);
        else if (rc)
            rc = worker_verdict(l);
        if (rc == LAUNCH_OK)
            rc = meet(l);
        if (rc == LAUNCH_OK)
            consent(l);
        if (rc != LAUNCH_AGAIN)
            return rc;
    }
}

int launch_state_root(const struct launch *l)
{
    return l->root;
}

int launch_is_fresh(const struct launch *l, int rank)
{
    return rank >= 0 && (uint32_t)rank < l->world_size &&
           atomic_load(&worker_peer(l, (uint32_t)rank)->born) == l->generation;
}

/* ---- the wait for the dead ---- */

/* Those that were here before have all used the device, and want it again; what they say of it does not change while they wait. */
static bool all_use_device(const struct launch *l)
{
    bool some = false;
    for (uint32_t rank = 0; rank < l->world_size; rank++) {
        const struct board_slot *slot = worker_peer(l, rank);
        if (atomic_load_explicit(&slot->born, memory_order_relaxed) == l->generation)
            continue;
        if (!(atomic_load(&slot->join_flags) & BOARD_JOIN_USES_DEVICE))
            return false;
        some = true;
    }
    return some;
}

/* A cold process takes its time when the job asks for it, and not in launch_join(): others begin without it. */
static bool has_used_device(const struct launch *l)
{
    return l->backend || l->warm == l->device + 1;
}

_Atomic uint32_t *heal_begin_early(struct launch *l, uint32_t *seen)
{
    if (!offer || l->device < 0 || !has_used_device(l) || !all_use_device(l))
        return NULL;
    l->early = true;
    _Atomic uint32_t *word = offer->begin(l, seen);
    l->early = false;
    return word;
}

/* ---- a standby ---- */

void launch_device_offer(const struct device_offer *offered)
{
    offer = offered;
}

struct warming {
    const struct launch *l;
    int device;
    enum warmth warmth;
};

static void *warm_up(void *arg)
{
    const struct warming *w = arg;
    (void)!setpriority(PRIO_PROCESS, (id_t)gettid(), WARM_NICE);
    offer->warm(w->l, w->device, w->warmth);
    return NULL;
}

/* On a thread of its own: who lowers its priority may not be allowed to raise it again. */
static void get_warm(struct launch *l, const struct board_slot *slot)
{
    const char *how = getenv(ENV_STANDBY);
    long level = how ? strtol(how, NULL, 10) : 0;
    struct warming w = {l, slot->device, level == 3 ? WARM_ALL : WARM_DRIVER};
    pthread_t thread;
    if (!offer || w.device < 0 || (level != 2 && level != 3))
        return;
    if (pthread_create(&thread, NULL, warm_up, &w) != 0)
        return;
    pthread_join(thread, NULL);
    l->warm = w.device + 1;
}

/* The kernel's out-of-memory killer takes a standby before any rank. ret: what it was, for the way back; "": not known. */
static void offer_to_oom_killer(char ret[OOM_ADJ_BYTES])
{
    int fd = open(OOM_ADJ, O_RDWR | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : pread(fd, ret, OOM_ADJ_BYTES - 1, 0);
    ret[n > 0 ? n : 0] = '\0';
    if (n > 0 && pwrite(fd, OOM_ADJ_FIRST, sizeof OOM_ADJ_FIRST - 1, 0) < 0)
        ret[0] = '\0';
    if (fd >= 0)
        close(fd);
}

static void withdraw_from_oom_killer(const char *before)
{
    int fd = *before ? open(OOM_ADJ, O_WRONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    (void)!write(fd, before, strlen(before));
    close(fd);
}

/* It is not in the way of anybody any more: the agent may raise its priority again. */
static void tell_warm(const struct launch *l, struct board_slot *slot)
{
    atomic_store_explicit(&slot->stage, STAGE_JOINED, memory_order_release);
    worker_ring(l);
}

static void set_variable(const char *name, uint32_t value, int overwrite)
{
    char text[16];
    snprintf(text, sizeof text, "%u", value);
    setenv(name, text, overwrite);
}

/* LOCAL_RANK stays what it is where all ranks have the same (each sees its own GPU only). */
static void set_variables(uint32_t place)
{
    set_variable(ENV_RANK, place, 1);
    set_variable(ENV_ROLE_RANK, place, 1);
    set_variable(ENV_LOCAL_RANK, place, 0);
}

int heal_await_place(struct launch *l, uint32_t spare, uint32_t *ret)
{
    _Atomic uint32_t *assigned = &board_slot(&l->board, spare)->assigned;
    const struct board_head *head = l->board.head;
    char oom_adj[OOM_ADJ_BYTES];
    offer_to_oom_killer(oom_adj);
    get_warm(l, board_slot(&l->board, spare));
    tell_warm(l, board_slot(&l->board, spare));
    for (;;) {
        uint32_t epoch = atomic_load_explicit(&head->epoch, memory_order_acquire);
        uint32_t place = atomic_load_explicit(assigned, memory_order_acquire);
        if (place > l->places)
            return launch_fail(l, LAUNCH_FAILED, "board: a standby can't go to place %u", place);
        if (place) {
            *ret = place - 1;
            withdraw_from_oom_killer(oom_adj);
            set_variables(place - 1);
            return LAUNCH_OK;
        }
        if (atomic_load_explicit(&head->stop, memory_order_acquire))
            return launch_fail(l, LAUNCH_STOP, "the launcher asks the job to end");
        (void)!board_wait(&l->board, assigned, 0, epoch, CLOCK_NEVER); /* whatever woke us: look */
    }
}
