/* SPDX-License-Identifier: MIT */
#include "board.h"

#include "clock.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* The layout is a contract between two binaries that may be built years apart. */
#define AT(type, member, offset) static_assert(offsetof(type, member) == (offset), #member " moved")
AT(struct board_head, magic, 0);
AT(struct board_head, version, 8);
AT(struct board_head, slots_offset, 24);
AT(struct board_head, total_bytes, 48);
AT(struct board_head, epoch, 64);
AT(struct board_head, running, 72);
AT(struct board_head, flags, 100);
AT(struct board_head, root_state, 120);
AT(struct board_head, gathered, 128);
AT(struct board_head, run_id, 192);
AT(struct board_head, id_generation, 256);
AT(struct board_head, id, 272);
static_assert(sizeof(struct board_head) == 448, "head size changed");
AT(struct board_slot, rank, 0);
AT(struct board_slot, assigned, 12);
AT(struct board_slot, stage, 64);
AT(struct board_slot, obeyed, 80);
AT(struct board_slot, lock, 128);
AT(struct board_slot, step, 192);
AT(struct board_slot, state, 232);
AT(struct board_slot, arrive, 256);
AT(struct board_slot, error_bytes, 320);
static_assert(sizeof(struct board_slot) == 832, "slot size changed");
static_assert(sizeof(pthread_mutex_t) <= CACHE_LINE, "the lock outgrew its line");
static_assert(1u << BOARD_BARRIER_ROUNDS >= BOARD_MAX_RANKS, "too few barrier rounds");
static_assert(sizeof(_Atomic uint64_t) == 8, "64-bit atomics must be lock-free");

#define PAGE_BYTES 4096ull
#define ID_SPIN_NS (2 * NS_PER_MS)
#define EPOCH_POLL_NS (50 * NS_PER_MS)

/* Of head and slots, whole pages. */
static uint64_t front_bytes(uint64_t places)
{
    uint64_t bytes = sizeof(struct board_head) + places * sizeof(struct board_slot);
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

int board_init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attr;
    int rc = pthread_mutexattr_init(&attr);
    if (rc)
        return -rc;
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    rc = pthread_mutex_init(lock, &attr);
    pthread_mutexattr_destroy(&attr);
    return -rc;
}

static int fill(struct board *b, const struct board_config *config, struct err *err)
{
    struct board_head *h = b->head;
    h->version = BOARD_VERSION;
    h->head_bytes = sizeof *h;
    h->slot_bytes = sizeof(struct board_slot);
    uint32_t places = config->world_size + config->spares;
    h->world_size = config->world_size;
    h->spares = config->spares;
    h->slots_offset = sizeof *h;
    h->data_offset = front_bytes(places);
    h->data_bytes = BOARD_DATA_BYTES;
    h->total_bytes = b->bytes;
    h->rendezvous_timeout_ms = config->rendezvous_timeout_ms;
    h->spin_ns = config->spin_ns;
    h->restart_count = config->restart_count;
    h->max_restarts = config->max_restarts;
    h->gpu_count = config->gpu_count;
    h->flags = config->flags;
    snprintf(h->run_id, sizeof h->run_id, "%s", config->run_id ? config->run_id : "none");
    atomic_store(&h->generation, config->generation);
    atomic_store(&h->members, config->world_size);
    for (uint32_t i = 0; i < places; i++) {
        struct board_slot *slot = board_slot(b, i);
        atomic_store(&slot->rank, i < config->world_size ? i : BOARD_NO_RANK);
        slot->local_rank = i;
        slot->device = -1;
        int rc = board_init_lock(&slot->lock);
        if (rc < 0)
            return err_set_errno(err, rc, "board: robust lock");
    }
    atomic_store_explicit(&h->magic, BOARD_MAGIC, memory_order_release);
    return 0;
}

static int map(struct board *b, size_t bytes, struct err *err)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
    if (base == MAP_FAILED)
        return err_set_errno(err, -errno, "board: mmap of %zu bytes", bytes);
    b->head = base;
    b->bytes = bytes;
    /* From the size, which the kernel vouches for, and not from the head, which peers can write. */
    b->places =
        (bytes - sizeof(struct board_head)) / (BOARD_DATA_BYTES + sizeof(struct board_slot));
    return 0;
}

/* Undoes a half-done create or open: board_close() takes a board without a map for a closed one. */
static void discard(struct board *b)
{
    if (!b->head)
        close_fd(&b->fd);
    board_close(b);
}

/* Claims the pages of head and slots. A file size limit would raise SIGXFSZ, which is blocked for the
 * call and taken out again, so that the caller sees EFBIG. */
static int claim(int fd, uint64_t total, uint64_t claimed)
{
    sigset_t xfsz, old;
    sigemptyset(&xfsz);
    sigaddset(&xfsz, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &xfsz, &old);
    int rc = ftruncate(fd, (off_t)total) < 0 ? -errno : 0;
    if (rc == 0)
        rc = -posix_fallocate(fd, 0, (off_t)claimed);
    struct timespec zero = {0};
    if (rc == -EFBIG)
        sigtimedwait(&xfsz, NULL, &zero);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}

int board_create(struct board *b, const struct board_config *config, struct err *err)
{
    *b = (struct board){.fd = -1};
    if (config->world_size < 1 || config->world_size > BOARD_MAX_RANKS)
        return err_set(err, -EINVAL, "board: %u ranks, can hold 1 to %d", config->world_size,
                       BOARD_MAX_RANKS);
    if (config->spares > BOARD_MAX_RANKS)
        return err_set(err, -EINVAL, "board: %u spares, can hold %d", config->spares,
                       BOARD_MAX_RANKS);
    if (config->generation < 1)
        return err_set(err, -EINVAL, "board: generations start at 1");

    uint64_t places = (uint64_t)config->world_size + config->spares;
    uint64_t front = front_bytes(places);
    uint64_t total = front + places * BOARD_DATA_BYTES;
    b->fd = memfd_create("launch-board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (b->fd < 0)
        return err_set_errno(err, -errno, "board: memfd_create");
    int rc = claim(b->fd, total, front);
    if (rc < 0)
        err_set_errno(err, rc, "board: no memory for %" PRIu64 " bytes of shared memory", total);
    else if (fcntl(b->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        rc = err_set_errno(err, -errno, "board: sealing");
    if (rc == 0)
        rc = map(b, total, err);
    if (rc == 0)
        rc = fill(b, config, err);
    if (rc < 0)
        discard(b);
    return rc;
}

/* Everything in the head is checked against numbers that the kernel vouches for. */
static int check_head(const struct board *b, struct err *err)
{
    const struct board_head *h = b->head;
    if (atomic_load_explicit(&h->magic, memory_order_acquire) != BOARD_MAGIC)
        return err_set(err, -EPROTO, "board: this is no board (wrong magic)");
    if (h->version != BOARD_VERSION)
        return err_set(err, -EPROTO,
                       "board: version %u, this liblaunch speaks %d: use the launch and "
                       "the liblaunch of one release",
                       h->version, BOARD_VERSION);
    uint32_t world = h->world_size, spares = h->spares;
    uint64_t places = (uint64_t)world + spares;
    uint64_t front = front_bytes(places);
    if (h->head_bytes != sizeof *h || h->slot_bytes != sizeof(struct board_slot) || world < 1 ||
        world > BOARD_MAX_RANKS || spares > BOARD_MAX_RANKS || h->slots_offset != sizeof *h ||
        h->data_offset != front || h->data_bytes != BOARD_DATA_BYTES ||
        h->total_bytes != b->bytes || front + places * BOARD_DATA_BYTES != b->bytes)
        return err_set(err, -EPROTO, "board: the sizes in its head contradict each other");
    return 0;
}

/* A file that can still be cut would let any holder of it kill us by SIGBUS. Also the proof that it is a memfd:
 * other files have no seals. */
static bool cannot_shrink(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK);
}

int board_open(struct board *b, int fd, struct err *err)
{
    *b = (struct board){.fd = -1};
    b->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (b->fd < 0)
        return err_set_errno(err, -errno, "board: descriptor %d", fd);
    struct stat st;
    int rc = 0;
    if (fstat(b->fd, &st) < 0)
        rc = err_set_errno(err, -errno, "board: fstat");
    else if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size < sizeof(struct board_head))
        rc = err_set(err, -EPROTO, "board: descriptor %d is no board (too short)", fd);
    else if ((uint64_t)st.st_size > SIZE_MAX / 2)
        rc = err_set(err, -EPROTO, "board: descriptor %d is no board (too long)", fd);
    else if (!cannot_shrink(b->fd))
        rc = err_set(err, -EPROTO, "board: descriptor %d is no board (not sealed)", fd);
    else
        rc = map(b, (size_t)st.st_size, err);
    if (rc == 0)
        rc = check_head(b, err);
    if (rc < 0)
        discard(b);
    return rc;
}

void board_close(struct board *b)
{
    if (b->head) {
        munmap(b->head, b->bytes);
        close_fd(&b->fd);
    }
    *b = (struct board){.fd = -1};
}

struct board_slot *board_slot(const struct board *b, uint32_t place)
{
    assert(place < b->places);
    char *slots = (char *)b->head + sizeof(struct board_head);
    return (struct board_slot *)(void *)(slots + (size_t)place * sizeof(struct board_slot));
}

void *board_data(const struct board *b, uint32_t place)
{
    assert(place < b->places);
    return (char *)b->head + (b->bytes - b->places * BOARD_DATA_BYTES) + place * BOARD_DATA_BYTES;
}

static long sys_futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *t)
{
    return syscall(SYS_futex, word, op, value, t, NULL, FUTEX_BITSET_MATCH_ANY);
}

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

/* Own copies of the kernel's struct and flag: older headers lack them. */
struct waitv {
    uint64_t value, address;
    uint32_t flags, reserved;
};
#define WAITV_SIZE_U32 2

static void sleep_on(_Atomic uint32_t *word, uint32_t seen, _Atomic uint32_t *epoch_word,
                     uint32_t epoch, uint64_t deadline_ns)
{
    struct timespec until = {.tv_sec = (time_t)(deadline_ns / NS_PER_S),
                             .tv_nsec = (long)(deadline_ns % NS_PER_S)};
    struct waitv both[2] = {
        {.value = seen, .address = (uintptr_t)word, .flags = WAITV_SIZE_U32},
        {.value = epoch, .address = (uintptr_t)epoch_word, .flags = WAITV_SIZE_U32},
    };
    struct timespec *limit = deadline_ns == CLOCK_NEVER ? NULL : &until;
    if (syscall(SYS_futex_waitv, both, 2, 0, limit, CLOCK_MONOTONIC) >= 0 || errno == EAGAIN ||
        errno == EINTR || errno == ETIMEDOUT)
        return;
    /* ENOSYS of an old kernel, or whatever a seccomp filter says to a call it does not know. */
    uint64_t next = clock_now_ns() + EPOCH_POLL_NS;
    if (next > deadline_ns)
        next = deadline_ns;
    until =
        (struct timespec){.tv_sec = (time_t)(next / NS_PER_S), .tv_nsec = (long)(next % NS_PER_S)};
    sys_futex(word, FUTEX_WAIT_BITSET, seen, &until);
}

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Bounds in shared memory are anybody's: whatever it says, 1 ms is the most. */
static uint32_t spin_of(const struct board *b)
{
    uint32_t spin_ns = *(volatile uint32_t *)&b->head->spin_ns;
    return spin_ns < NS_PER_MS ? spin_ns : (uint32_t)NS_PER_MS;
}

static int wait_for(const struct board *b, _Atomic uint32_t *word, uint32_t seen, uint32_t epoch,
                    uint64_t deadline_ns, uint64_t spin_ns)
{
    struct board_head *h = b->head;
    uint64_t spin_until = spin_ns ? clock_now_ns() + spin_ns : 0;
    for (unsigned turn = 0;; turn++) {
        if (atomic_load_explicit(word, memory_order_acquire) != seen)
            return 0;
        if (atomic_load_explicit(&h->epoch, memory_order_acquire) != epoch)
            return -ECANCELED;
        if (spin_until) {
            cpu_relax();
            if (turn % 16 == 15 && clock_now_ns() >= spin_until)
                spin_until = 0;
            continue;
        }
        if (deadline_ns != CLOCK_NEVER && clock_now_ns() >= deadline_ns)
            return -ETIMEDOUT;
        sleep_on(word, seen, &h->epoch, epoch, deadline_ns);
    }
}

int board_wait(const struct board *b, _Atomic uint32_t *word, uint32_t seen, uint32_t epoch,
               uint64_t deadline_ns)
{
    return wait_for(b, word, seen, epoch, deadline_ns, spin_of(b));
}

int board_await_id(const struct board *b, uint32_t generation, uint32_t epoch, uint64_t deadline_ns)
{
    _Atomic uint32_t *word = &b->head->id_generation;
    for (;;) {
        uint32_t seen = atomic_load_explicit(word, memory_order_acquire);
        if (seen == generation)
            return 0;
        int rc = wait_for(b, word, seen, epoch, deadline_ns, spin_of(b) ? ID_SPIN_NS : 0);
        if (rc < 0)
            return rc;
    }
}

void board_wake(_Atomic uint32_t *word)
{
    sys_futex(word, FUTEX_WAKE_BITSET, INT32_MAX, NULL);
}

void board_bump_epoch(const struct board *b)
{
    atomic_fetch_add(&b->head->epoch, 1);
    board_wake(&b->head->epoch);
}

/* One printable line: the text ends up on somebody's terminal. Each byte is read once, or a peer could change it
 * between the look and the copy. */
static void copy_printable(char *to, const volatile char *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = from[i];
        to[i] = c >= ' ' && c < 127 ? c : '?';
    }
}

void board_put_error(struct board_slot *slot, const char *text)
{
    size_t n = strnlen(text, BOARD_ERROR_BYTES);
    copy_printable(slot->error, text, n);
    atomic_store_explicit(&slot->error_bytes, (uint32_t)n, memory_order_release);
}

size_t board_get_error(const struct board_slot *slot, char *text, size_t size)
{
    if (size == 0)
        return 0;
    size_t n = atomic_load_explicit(&slot->error_bytes, memory_order_acquire);
    if (n > BOARD_ERROR_BYTES)
        n = BOARD_ERROR_BYTES;
    if (n > size - 1)
        n = size - 1;
    copy_printable(text, slot->error, n);
    text[n] = '\0';
    return n;
}
