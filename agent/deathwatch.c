/* SPDX-License-Identifier: MIT */
#include "deathwatch.h"
#include "syscalls.h"

#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>

#define WAIT_MAX 128                    /* FUTEX_WAITV_MAX */
#define SHIFT_RANKS (WAIT_MAX - 1)      /* one word is our own */
#define SINGLES_MAX 64                  /* threads when each can wait for one lock only */
#define STACK_BYTES ((size_t)256 << 10) /* address space; a page or two are used */
#define RESTLESS_MAX 10000              /* somebody scribbles over the locks: stop looking */
#define WAIT_WORD_FLAGS 2u              /* FUTEX2_SIZE_U32, shared between processes */

/* struct futex_waitv of linux/futex.h, which older headers lack. */
struct wait_word {
    uint64_t value;
    uint64_t address;
    uint32_t flags;
    uint32_t reserved;
};

/* Of one rank. The loop sets IDLE and HELD, the thread the other two. */
enum lock_state { LOCK_IDLE, LOCK_HELD, LOCK_FREED, LOCK_DIED };

/* One helper thread and its ranks. */
struct shift {
    struct deathwatch *watch;
    uint32_t first, n;
    pthread_t thread;
    bool running;          /* to be joined */
    _Atomic uint32_t kick; /* futex: there is a new rank to watch, or it is time to go */
    _Atomic bool stop;
    _Atomic bool done; /* of a thread without futex_waitv: it is about to return */
};

struct deathwatch {
    uv_async_t async;
    const struct board *board;
    uint32_t world_size;
    void (*on_lost)(void *user, uint32_t rank);
    void *user;
    bool many; /* one thread waits for many locks (futex_waitv) */
    bool closing;
    _Atomic uint32_t *state; /* owned: enum lock_state, one per rank */
    struct shift *shifts;    /* owned */
    uint32_t shifts_n;
};

bool deathwatch_one_by_one;

static long futex(_Atomic uint32_t *word, int op, uint32_t value)
{
    return syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

/* The word the kernel knows as the robust lock. glibc keeps it first in the mutex; it is what its own
 * robust list points at. */
static _Atomic uint32_t *lock_word(const struct deathwatch *w, uint32_t rank)
{
    return (_Atomic uint32_t *)&board_slot(w->board, rank)->lock.__data.__lock;
}

/* ---- the helper thread: no malloc, no log, nothing but futexes and the loop's bell ---- */

/* Makes sure that the kernel (or the C library, for a worker that leaves) wakes us when the lock is freed.
 * False: it is free already. */
static bool arm(_Atomic uint32_t *word, uint32_t *ret_value)
{
    uint32_t value = atomic_load(word);
    while (value & FUTEX_TID_MASK) {
        if ((value & FUTEX_WAITERS) ||
            atomic_compare_exchange_strong(word, &value, value | FUTEX_WAITERS)) {
            *ret_value = value | FUTEX_WAITERS;
            return true;
        }
    }
    *ret_value = value;
    return false;
}

/* True if the rank's lock is held and armed; else the loop is told what became of it. */
static bool look(struct deathwatch *w, uint32_t rank, uint32_t *ret_value)
{
    if (atomic_load(&w->state[rank]) != LOCK_HELD)
        return false;
    if (arm(lock_word(w, rank), ret_value))
        return true;
    atomic_store(&w->state[rank], *ret_value & FUTEX_OWNER_DIED ? LOCK_DIED : LOCK_FREED);
    uv_async_send(&w->async);
    return false;
}

static void *watch_many(void *arg)
{
    struct shift *s = arg;
    struct deathwatch *w = s->watch;
    unsigned restless = 0;
    while (restless < RESTLESS_MAX) {
        struct wait_word words[WAIT_MAX];
        uint32_t kick = atomic_load(&s->kick);
        if (atomic_load(&s->stop))
            break;
        words[0] = (struct wait_word){
            .value = kick, .address = (uintptr_t)&s->kick, .flags = WAIT_WORD_FLAGS};
        unsigned n = 1;
        for (uint32_t rank = s->first; rank < s->first + s->n; rank++) {
            uint32_t value;
            if (look(w, rank, &value))
                words[n++] = (struct wait_word){.value = value,
                                                .address = (uintptr_t)lock_word(w, rank),
                                                .flags = WAIT_WORD_FLAGS};
        }
        long rc = syscall(SYS_futex_waitv, words, n, 0, NULL, CLOCK_MONOTONIC);
        restless = rc >= 0 ? 0 : restless + 1;
    }
    return NULL;
}

static void *watch_one(void *arg)
{
    struct shift *s = arg;
    uint32_t value;
    for (unsigned restless = 0; restless < RESTLESS_MAX && !atomic_load(&s->stop);) {
        if (!look(s->watch, s->first, &value))
            break;
        restless = futex(lock_word(s->watch, s->first), FUTEX_WAIT, value) == 0 ? 0 : restless + 1;
    }
    atomic_store(&s->done, true);
    return NULL;
}

/* ---- on the loop ---- */

static void on_news(uv_async_t *async)
{
    struct deathwatch *w = CONTAINER_OF(async, struct deathwatch, async);
    for (uint32_t rank = 0; rank < w->world_size && !w->closing; rank++) {
        uint32_t state = atomic_load(&w->state[rank]);
        if (state != LOCK_DIED && state != LOCK_FREED)
            continue;
        atomic_store(&w->state[rank], LOCK_IDLE);
        if (state == LOCK_DIED)
            w->on_lost(w->user, rank);
    }
}

static bool has_futex_waitv(void)
{
    return !deathwatch_one_by_one &&
           syscall(SYS_futex_waitv, NULL, 0, 0, NULL, CLOCK_MONOTONIC) < 0 && errno == EINVAL;
}

static void free_memory(struct deathwatch *w)
{
    free(w->state);
    free(w->shifts);
    free(w);
}

int deathwatch_start(struct deathwatch **ret, uv_loop_t *loop, const struct board *board,
                     uint32_t world_size, void (*on_lost)(void *user, uint32_t rank), void *user)
{
    struct deathwatch *w = calloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    w->board = board;
    w->world_size = world_size; /* not the head's: that is in shared memory */
    w->on_lost = on_lost;
    w->user = user;
    w->many = has_futex_waitv();
    uint32_t each = w->many ? SHIFT_RANKS : 1;
    w->shifts_n = (w->world_size + each - 1) / each;
    w->shifts = calloc(w->shifts_n, sizeof *w->shifts);
    w->state = calloc(w->world_size, sizeof *w->state);
    int rc = w->shifts && w->state ? uv_async_init(loop, &w->async, on_news) : -ENOMEM;
    if (rc < 0) {
        free_memory(w);
        return rc;
    }
    for (uint32_t i = 0; i < w->shifts_n; i++) {
        uint32_t first = i * each, rest = w->world_size - first;
        w->shifts[i] = (struct shift){.watch = w, .first = first, .n = rest < each ? rest : each};
    }
    *ret = w;
    return 0;
}

static void start_thread(struct shift *s)
{
    pthread_attr_t attr;
    atomic_store(&s->done, false);
    if (pthread_attr_init(&attr) != 0)
        return;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    s->running = pthread_create(&s->thread, &attr, s->watch->many ? watch_many : watch_one, s) == 0;
    pthread_attr_destroy(&attr);
}

static void join_thread(struct shift *s)
{
    pthread_join(s->thread, NULL);
    s->running = false;
}

void deathwatch_add(struct deathwatch *w, uint32_t rank)
{
    struct shift *s = &w->shifts[w->many ? rank / SHIFT_RANKS : rank];
    if (!w->many && rank >= SINGLES_MAX)
        return;
    uint32_t before = atomic_exchange(&w->state[rank], LOCK_HELD);
    if (before == LOCK_HELD && s->running)
        return; /* its process stays the same in a new generation */
    if (!w->many && s->running)
        join_thread(s); /* it has told what it had to tell and is on its way out */
    if (!s->running) {
        start_thread(s);
        return;
    }
    atomic_fetch_add(&s->kick, 1);
    futex(&s->kick, FUTEX_WAKE, 1);
}

/* A single waiter looks at the stop flag and then sleeps on the lock: between the two a wake-up would be lost, so it
 * is repeated. */
static void stop_single(struct shift *s)
{
    while (!atomic_load(&s->done)) {
        futex(lock_word(s->watch, s->first), FUTEX_WAKE, INT32_MAX);
        sched_yield();
    }
}

static void stop_thread(struct shift *s)
{
    if (!s->running)
        return;
    atomic_store(&s->stop, true);
    atomic_fetch_add(&s->kick, 1);
    futex(&s->kick, FUTEX_WAKE, 1);
    if (!s->watch->many)
        stop_single(s);
    join_thread(s);
}

static void on_closed(uv_handle_t *handle)
{
    free_memory(CONTAINER_OF((uv_async_t *)handle, struct deathwatch, async));
}

void deathwatch_stop(struct deathwatch **watch)
{
    struct deathwatch *w = *watch;
    *watch = NULL;
    if (!w)
        return;
    w->closing = true;
    for (uint32_t i = 0; i < w->shifts_n; i++)
        stop_thread(&w->shifts[i]);
    uv_close((uv_handle_t *)&w->async, on_closed);
}
