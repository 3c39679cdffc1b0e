/* SPDX-License-Identifier: MIT */
/* Membership of one process in a group: finding the board, joining, the rendezvous, stages, errors, leaving. Knows the agent
 * only through the board and the bell; must never know which device backend is attached, print, or exit. */
#include "worker.h"

#include "../proto/clock.h"
#include "../proto/env.h"
#include "../proto/ranklist.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The agent's deadline comes first and ends us; ours is for an agent that does not. */
#define RENDEZVOUS_SLACK_MS 2000
#define MISSING_SHOWN 8
#define SPIN_MAX_NS (1 * NS_PER_MS)

/* The only state outside a struct launch, but for process.c's: launch_error(NULL) has no object to ask, and a process may join
 * once. Both belong to the main thread. A pid, because a forked child is another process. */
static char join_error[ERR_TEXT_BYTES];
static pid_t joined_pid;

/* ---- errors, stages, bell ---- */

int launch_fail(struct launch *l, enum launch_result result, const char *format, ...)
{
    char text[ERR_TEXT_BYTES]; /* the arguments may point into l->error */
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    memcpy(l->error, text, sizeof text);
    /* That the group ends or changes is no failure of this rank: its report keeps the real one. */
    if (l->locked && !l->early && result != LAUNCH_AGAIN && result != LAUNCH_STOP)
        board_put_error(l->slot, text);
    return result;
}

const char *launch_error(const struct launch *l)
{
    return l ? l->error : join_error;
}

void worker_ring(const struct launch *l)
{
    uint64_t one = 1;
    while (l->bell_fd >= 0 && write(l->bell_fd, &one, sizeof one) < 0 && errno == EINTR)
        continue; /* else the agent is gone; whoever is left of it ends us */
}

void launch_device_set_stage(struct launch *l, enum stage stage)
{
    atomic_store_explicit(&l->slot->stage, stage, memory_order_release);
    if (stage == STAGE_JOINED || stage == STAGE_LEFT || stage == STAGE_FAILED)
        worker_ring(l);
}

/* ---- may this generation go on? ---- */

int launch_check(const struct launch *l)
{
    const struct board_head *h = l->board.head;
    uint32_t stop = atomic_load_explicit(&h->stop, memory_order_acquire);
    if (stop != 0) {
        atomic_store_explicit(&l->slot->obeyed, stop, memory_order_relaxed);
        return LAUNCH_STOP;
    }
    if (atomic_load_explicit(&h->generation, memory_order_acquire) != l->generation)
        return l->generation ? LAUNCH_AGAIN : LAUNCH_INVALID; /* 0: see process.c */
    return LAUNCH_OK;
}

int launch_step(struct launch *l, uint64_t step)
{
    atomic_store_explicit(&l->slot->step, step, memory_order_relaxed);
    return launch_check(l);
}

int worker_verdict(struct launch *l)
{
    int verdict = launch_check(l);
    if (verdict == LAUNCH_STOP)
        return launch_fail(l, LAUNCH_STOP, "the launcher asks the job to end");
    if (verdict == LAUNCH_AGAIN)
        return launch_fail(l, LAUNCH_AGAIN, "generation %u is over", l->generation);
    return verdict ? process_refuse(l) : LAUNCH_OK;
}

static uint32_t load_epoch(const struct launch *l)
{
    return atomic_load_explicit(&l->board.head->epoch, memory_order_acquire);
}

int worker_wait(struct launch *l, _Atomic uint32_t *word, uint32_t seen, uint64_t deadline_ns)
{
    int rc = board_wait(&l->board, word, seen, l->epoch, deadline_ns);
    if (rc != -ECANCELED)
        return rc == 0 ? LAUNCH_OK : LAUNCH_TIMEOUT;
    /* Epoch first: a change behind the verdict then ends the next wait. */
    l->epoch = load_epoch(l);
    return worker_verdict(l);
}

/* ---- finding the board ---- */

static int parse_number(struct launch *l, const char *name, uint32_t max, uint32_t *ret)
{
    const char *text = getenv(name);
    if (!text)
        return launch_fail(l, LAUNCH_FAILED, "%s is not set, but %s is", name, ENV_BOARD_FD);
    uint64_t value = 0;
    const char *c = text;
    for (; *c >= '0' && *c <= '9' && value <= max; c++)
        value = value * 10 + (uint64_t)(*c - '0');
    if (c == text || *c || value > max)
        return launch_fail(l, LAUNCH_FAILED, "%s=%.40s is not a number from 0 to %u", name, text,
                           max);
    *ret = (uint32_t)value;
    return LAUNCH_OK;
}

/* The bell will be written to: make sure that it is not a file which happens to have the number. */
static int adopt_bell(struct launch *l, int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || (st.st_mode & S_IFMT) != 0)
        return launch_fail(l, LAUNCH_FAILED, "%s=%d is no eventfd", ENV_BELL_FD, fd);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    l->bell_fd = fd;
    return LAUNCH_OK;
}

/* Nobody launched us: rank 0 of 1, on a board of our own that already runs. */
static int be_alone(struct launch *l)
{
    struct board_config config = {.world_size = 1, .generation = 1};
    struct err err;
    if (board_create(&l->board, &config, &err) < 0)
        return launch_fail(l, LAUNCH_FAILED, "%s", err.text);
    atomic_store(&l->board.head->running, config.generation);
    l->slot = board_slot(&l->board, 0);
    return LAUNCH_OK;
}

static int open_board(struct launch *l, int fd)
{
    struct err err;
    int rc = board_open(&l->board, fd, &err);
    if (rc == -EBADF)
        return launch_fail(l, LAUNCH_FAILED,
                           "%s=%d is not open: was this process started by a worker?", ENV_BOARD_FD,
                           fd);
    if (rc < 0)
        return launch_fail(l, LAUNCH_FAILED, "%s=%d: %s", ENV_BOARD_FD, fd, err.text);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return LAUNCH_OK;
}

static int find_board(struct launch *l, uint32_t *ret_slot)
{
    uint32_t board_fd = 0, bell_fd = 0;
    *ret_slot = 0;
    if (!getenv(ENV_BOARD_FD))
        return be_alone(l);
    int rc = parse_number(l, ENV_BOARD_FD, INT32_MAX, &board_fd);
    if (!rc)
        rc = parse_number(l, ENV_BELL_FD, INT32_MAX, &bell_fd);
    if (!rc)
        rc = parse_number(l, ENV_SLOT, 2 * BOARD_MAX_RANKS - 1, ret_slot);
    if (!rc)
        rc = open_board(l, (int)board_fd);
    if (!rc)
        rc = adopt_bell(l, (int)bell_fd);
    return rc;
}

static int read_head(struct launch *l, uint32_t slot)
{
    const struct board_head *h = l->board.head;
    uint64_t spares = h->spares;
    l->places = h->world_size;
    l->restart_count = h->restart_count;
    l->spin_ns = h->spin_ns < SPIN_MAX_NS ? h->spin_ns : SPIN_MAX_NS;
    uint64_t least = (l->places + spares) * (BOARD_DATA_BYTES + sizeof(struct board_slot));
    if (l->places < 1 || l->places > BOARD_MAX_RANKS || spares > BOARD_MAX_RANKS ||
        least > l->board.bytes)
        return launch_fail(l, LAUNCH_FAILED, "board: impossible world size %u", l->places);
    if (slot >= l->places + spares)
        return launch_fail(l, LAUNCH_FAILED, "%s=%u, but there are only %u ranks", ENV_SLOT, slot,
                           l->places);
    l->place_of = calloc(2ul * l->places, sizeof *l->place_of);
    return l->place_of ? LAUNCH_OK : launch_fail(l, LAUNCH_FAILED, "out of memory");
}

static int read_place(struct launch *l, uint32_t place)
{
    l->slot = board_slot(&l->board, place);
    l->rank = atomic_load(&l->slot->rank);
    l->local_rank = l->slot->local_rank;
    l->device = l->slot->device;
    if (l->rank >= l->places || l->local_rank >= l->places || l->device < -1)
        return launch_fail(l, LAUNCH_FAILED, "board: slot %u has rank %u, local rank %u, device %d",
                           place, l->rank, l->local_rank, l->device);
    return LAUNCH_OK;
}

/* Which place each rank of the generation has. The agent has written it before it let us go. False: it makes no sense; the
 * table that we have stays. */
static bool read_table(struct launch *l)
{
    uint32_t members = atomic_load_explicit(&l->board.head->members, memory_order_acquire);
    uint32_t *table = l->place_of + l->places, mine = UINT32_MAX, n = 0;
    if (members < 1 || members > l->places)
        return false;
    memset(table, 0xff, l->places * sizeof *table);
    for (uint32_t place = 0; place < l->places; place++) {
        uint32_t rank =
            atomic_load_explicit(&board_slot(&l->board, place)->rank, memory_order_acquire);
        if (rank == BOARD_NO_RANK)
            continue;
        if (rank >= members || table[rank] != UINT32_MAX)
            return false;
        table[rank] = place;
        if (board_slot(&l->board, place) == l->slot)
            mine = rank;
        n++;
    }
    if (n != members || mine == UINT32_MAX)
        return false;
    memcpy(l->place_of, table, l->places * sizeof *table);
    l->rank = mine;
    l->world_size = members;
    return true;
}

static int read_world(struct launch *l)
{
    const struct board_head *h = l->board.head;
    bool sound = read_table(l);
    uint32_t root = atomic_load_explicit(&h->root, memory_order_relaxed); /* + 1 */
    l->state = atomic_load_explicit(&h->root_state, memory_order_relaxed);
    l->restore = atomic_load_explicit(&h->restore, memory_order_relaxed) != 0;
    sound &= root <= l->world_size;
    l->root = sound ? (int)root - 1 : -1;
    int verdict = worker_verdict(l); /* of a generation that is over, nothing need be right */
    if (verdict || sound)
        return verdict;
    l->disagreed = true; /* whatever is called all the same */
    return launch_fail(l, LAUNCH_FAILED, "board: the ranks of generation %u contradict each other",
                       l->generation);
}

struct board_slot *worker_peer(const struct launch *l, uint32_t rank)
{
    return board_slot(&l->board, l->place_of[rank]);
}

/* ---- joining ---- */

static int already_joined(struct launch *l)
{
    return launch_fail(l, LAUNCH_INVALID, "rank %u has already been joined by process %d", l->rank,
                       atomic_load(&l->slot->pid));
}

/* The process that was here before us has died; nothing that it told is ours. */
static void forget_predecessor(struct board_slot *slot)
{
    atomic_store(&slot->join_flags, 0);
    atomic_store(&slot->obeyed, 0);
    atomic_store(&slot->id_seen_ns, 0);
    atomic_store(&slot->state, 0);
    atomic_store(&slot->born, 0);
    atomic_store(&slot->error_bytes, 0);
}

/* The C library follows what a lock says of itself, and peers can write to it: only one that looks like what board_create()
 * made is taken. */
static bool is_our_kind(const pthread_mutex_t *lock)
{
    pthread_mutex_t made;
    return board_init_lock(&made) == 0 &&
           *(volatile const int *)&lock->__data.__kind == made.__data.__kind;
}

/* The lock tells whether another process is this rank now; the slot whether one was, in this
 * generation. A dead owner's lock is always made good: the next generation's process in this
 * slot needs it. */
static int take_slot(struct launch *l)
{
    if (!is_our_kind(&l->slot->lock))
        return launch_fail(l, LAUNCH_FAILED, "board: the lock of rank %u is damaged", l->rank);
    int rc = pthread_mutex_trylock(&l->slot->lock);
    if (rc == EBUSY)
        return already_joined(l);
    if (rc == EOWNERDEAD)
        rc = pthread_mutex_consistent(&l->slot->lock);
    if (rc)
        return launch_fail(l, LAUNCH_FAILED, "board: lock of rank %u: %s", l->rank, strerror(rc));

    uint32_t generation = atomic_load(&l->board.head->generation);
    bool taken = atomic_load(&l->slot->generation) == generation &&
                 atomic_load(&l->slot->stage) != STAGE_NONE;
    if (taken) {
        pthread_mutex_unlock(&l->slot->lock);
        return already_joined(l);
    }
    l->locked = true;
    l->held = l->slot->lock;
    forget_predecessor(l->slot);
    return LAUNCH_OK;
}

unsigned worker_missing(const struct launch *l, char *text, size_t size)
{
    struct ranklist list;
    ranklist_begin(&list, text, size, MISSING_SHOWN);
    for (uint32_t i = 0; i < l->places; i++) {
        const struct board_slot *slot = board_slot(&l->board, i);
        if (atomic_load_explicit(&slot->rank, memory_order_relaxed) == BOARD_NO_RANK ||
            (atomic_load_explicit(&slot->generation, memory_order_acquire) == l->generation &&
             atomic_load_explicit(&slot->stage, memory_order_acquire) != STAGE_NONE))
            continue;
        ranklist_add(&list, i);
    }
    return ranklist_end(&list);
}

static int fail_rendezvous(struct launch *l, uint32_t timeout_ms)
{
    char ranks[128], limit[32];
    unsigned n = worker_missing(l, ranks, sizeof ranks);
    if (timeout_ms % 1000)
        snprintf(limit, sizeof limit, "%u ms", timeout_ms);
    else
        snprintf(limit, sizeof limit, "%u s", timeout_ms / 1000);
    if (n == 0)
        return launch_fail(l, LAUNCH_TIMEOUT,
                           "rendezvous: all ranks joined, but the launcher did not go on within %s",
                           limit);
    return launch_fail(l, LAUNCH_TIMEOUT,
                       "rendezvous: rank%s %s never called launch_join() within %s",
                       n > 1 ? "s" : "", ranks, limit);
}

/* Only what all ranks count from the same moment on can tell who is behind. */
static void count_anew(struct board_slot *slot)
{
    atomic_store_explicit(&slot->step, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->entered, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->finished, 0, memory_order_relaxed);
}

/* Announces this rank in whatever generation is meant to run now. */
static void enter_generation(struct launch *l)
{
    l->epoch = load_epoch(l); /* first: a change after this ends the wait below */
    l->generation = atomic_load_explicit(&l->board.head->generation, memory_order_acquire);
    collective_reset(l);
    if (process_member() != l) /* the job knows of no generation before */
        atomic_store_explicit(&l->slot->born, l->generation, memory_order_relaxed);
    atomic_store_explicit(&l->slot->pid, l->pid, memory_order_relaxed);
    /* In this order: who sees the new generation sees no stage and no count of the old one. */
    atomic_store_explicit(&l->slot->stage, STAGE_NONE, memory_order_relaxed);
    count_anew(l->slot);
    atomic_store_explicit(&l->slot->generation, l->generation, memory_order_release);
    launch_device_set_stage(l, STAGE_JOINED);
}

/* All have come, and the dead are in the way: meanwhile the device begins with what it can. A table that makes no sense is
 * reported once the generation runs. */
static _Atomic uint32_t *begin_early(struct launch *l, uint32_t *seen)
{
    return read_table(l) ? heal_begin_early(l, seen) : NULL;
}

static int await_running(struct launch *l, uint64_t deadline_ns)
{
    _Atomic uint32_t *running = &l->board.head->running, *gathered = &l->board.head->gathered;
    bool early = true;
    for (;;) {
        int rc = worker_verdict(l);
        uint32_t seen = atomic_load_explicit(running, memory_order_acquire);
        if (rc || seen == l->generation)
            return rc;
        bool now = early && atomic_load_explicit(gathered, memory_order_acquire) == l->generation;
        _Atomic uint32_t *word = now ? begin_early(l, &seen) : running;
        early &= word != NULL;
        rc = word ? worker_wait(l, word, seen, deadline_ns) : LAUNCH_OK;
        if (rc)
            return rc;
    }
}

/* A generation that ends meanwhile is no news to the caller: what was begun for it goes back, and we wait for the next. */
static int rendezvous(struct launch *l)
{
    uint32_t timeout_ms;
    int rc;
    do {
        if (l->ops && l->ops->again)
            l->ops->again(l->backend);
        timeout_ms = *(volatile uint32_t *)&l->board.head->rendezvous_timeout_ms;
        uint64_t limit_ms = timeout_ms ? (uint64_t)timeout_ms + RENDEZVOUS_SLACK_MS : 0;
        enter_generation(l);
        rc = await_running(l, clock_deadline_ns(limit_ms));
        if (rc == LAUNCH_OK)
            rc = read_world(l);
    } while (rc == LAUNCH_AGAIN);
    if (rc == LAUNCH_TIMEOUT)
        return fail_rendezvous(l, timeout_ms);
    if (rc == LAUNCH_OK)
        launch_device_set_stage(l, STAGE_RUNNING);
    return rc;
}

int worker_rejoin(struct launch *l)
{
    int rc = rendezvous(l);
    if (rc == LAUNCH_OK)
        l->error[0] = '\0'; /* that the old generation is over is no failure any more */
    return rc;
}

static int join(struct launch *l, unsigned flags)
{
    if (flags)
        return launch_fail(l, LAUNCH_INVALID, "launch_join: unknown flags 0x%x", flags);
    if (gettid() != l->pid)
        return launch_fail(l, LAUNCH_INVALID, "launch_join: not called from the main thread");
    if (joined_pid == l->pid)
        return launch_fail(l, LAUNCH_INVALID, "launch_join: this process has already joined");
    uint32_t slot, place;
    int rc = find_board(l, &slot);
    if (!rc)
        rc = read_head(l, slot);
    place = slot;
    if (!rc && slot >= l->places)
        rc = heal_await_place(l, slot, &place);
    if (!rc)
        rc = read_place(l, place);
    if (!rc)
        rc = take_slot(l);
    if (rc)
        return rc;
    joined_pid = l->pid;
    return rendezvous(l);
}

/* The C library follows the pointers in it. Only its first word, which is the kernel's, changes while we hold it (see
 * agent/deathwatch.c), unless the job holds robust locks of its own. */
static bool lock_is_intact(const struct launch *l)
{
    const size_t word = sizeof(uint32_t);
    return memcmp((const char *)&l->slot->lock + word, (const char *)&l->held + word,
                  sizeof l->held - word) == 0;
}

/* Gives everything back. The mapping stays if the lock in it can't be let go (leaving from
 * another thread, or somebody wrote over it): the C library walks its list of held robust locks, and the list must not
 * point into nowhere. */
static void membership_free(struct launch *l)
{
    if (l->locked && l->pid == getpid() &&
        (!lock_is_intact(l) || pthread_mutex_unlock(&l->slot->lock) != 0))
        l->board = (struct board){.fd = -1};
    board_close(&l->board);
    free(l->place_of);
    free(l->kept);
    free(l);
}

int launch_join(struct launch **ret, unsigned flags)
{
    if (!ret) {
        snprintf(join_error, sizeof join_error, "launch_join: no place for the result (NULL)");
        return LAUNCH_INVALID;
    }
    *ret = NULL;
    struct launch *l = calloc(1, sizeof *l);
    if (!l) {
        snprintf(join_error, sizeof join_error, "launch_join: out of memory");
        return LAUNCH_FAILED;
    }
    *l = (struct launch){.board = {.fd = -1}, .bell_fd = -1, .device = -1, .pid = getpid()};
    int rc = join(l, flags);
    memcpy(join_error, l->error, sizeof join_error);
    if (rc == LAUNCH_OK) {
        l->error[0] = join_error[0] = '\0';
        process_set_member(l);
        *ret = l;
        return LAUNCH_OK;
    }
    if (l->ops)
        l->ops->close(l->backend, false);
    if (l->locked)
        launch_device_set_stage(l, STAGE_FAILED);
    membership_free(l);
    return rc;
}

void launch_leave(struct launch *l)
{
    if (!l)
        return;
    if (process_member() == l)
        process_set_member(NULL);
    /* A forked child only drops its copy: device, lock and stage are its parent's. */
    if (l->pid == getpid()) {
        bool failed = atomic_load(&l->slot->stage) == STAGE_FAILED;
        if (l->ops)
            l->ops->close(l->backend, !failed && launch_check(l) == LAUNCH_OK);
        if (!failed)
            launch_device_set_stage(l, STAGE_LEFT);
    }
    membership_free(l);
}

void launch_catch_stop(struct launch *l)
{
    atomic_fetch_or(&l->slot->join_flags, BOARD_JOIN_CATCHES_STOP);
}

/* ---- what a member may ask ---- */

int launch_rank(const struct launch *l)
{
    return (int)l->rank;
}

int launch_world_size(const struct launch *l)
{
    return (int)l->world_size;
}

int launch_local_rank(const struct launch *l)
{
    return (int)l->local_rank;
}

/* One server: every rank is local. */
int launch_local_world_size(const struct launch *l)
{
    return (int)l->world_size;
}

unsigned launch_generation(const struct launch *l)
{
    return l->generation;
}

unsigned launch_restart_count(const struct launch *l)
{
    return l->restart_count;
}

int launch_device(const struct launch *l)
{
    return l->device;
}

/* ---- for the device backend ---- */

void *launch_device_object(struct launch *l)
{
    return l->backend;
}

void launch_device_attach(struct launch *l, const struct device_ops *ops, void *device)
{
    l->ops = ops;
    l->backend = device;
}

const struct board *launch_device_board(const struct launch *l)
{
    return &l->board;
}

struct board_slot *launch_device_slot(const struct launch *l)
{
    return l->slot;
}

struct board_slot *launch_device_peer(const struct launch *l, uint32_t rank)
{
    return worker_peer(l, rank);
}
