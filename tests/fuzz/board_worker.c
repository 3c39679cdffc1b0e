/* SPDX-License-Identifier: MIT */
/* A worker beside a broken agent and broken peers: the input says what is in the board when it joins, which calls of the
 * library it makes, and what the others write whenever it sleeps. When they have nothing more to write, the job is
 * stopped; from then on nothing may take long.
 *
 * Sleeping, the clock and the process's number are ours: the library calls the functions below instead of the C library's. */
#include "../../proto/clock.h"
#include "../../proto/env.h"
#include "../../worker/worker.h"

#include "fuzz.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>

#define PLACES 3u
#define SPARES 1u
#define FRONT (sizeof(struct board_head) + (PLACES + SPARES) * sizeof(struct board_slot))
#define SLEEPS_MAX 64 /* after the stop; a call sleeps a few times for each peer */
#define CALLS_MAX 32
#define BUFFER_BYTES 20000u

static struct board board; /* as the others see it */
static struct launch *self;
static struct fuzz_in in;
static unsigned sleeps;
static pid_t number = 100;
static uint64_t now_ns;

/* ---- what the others do ---- */

static void scribble(void)
{
    size_t bytes = 1u << in_u8(&in) % 4, at = in_u64(&in, 2) % (FRONT - 8);
    uint64_t value = in_u64(&in, bytes);
    memcpy((char *)board.head + at, &value, bytes);
}

static void spoil_data(void)
{
    uint32_t place = in_u8(&in) % PLACES;
    size_t at = in_u64(&in, 3) % (BOARD_DATA_BYTES - 8);
    uint64_t value = in_u64(&in, 8);
    memcpy((char *)board_data(&board, place) + at, &value, sizeof value);
}

/* All peers have come, and say that they make the call that we make. */
static void agree(void)
{
    uint32_t mine = self ? (uint32_t)(self->slot - board_slot(&self->board, 0)) : 0;
    for (uint32_t place = 0; place < PLACES; place++) {
        for (unsigned k = 0; k < BOARD_BARRIER_ROUNDS && place != mine; k++)
            atomic_store(&board_slot(&board, place)->arrive[k], 1000);
        for (size_t half = 0; half < 2 && place != mine; half++)
            memcpy((char *)board_data(&board, place) + half * BOARD_DATA_BYTES / 2,
                   (char *)board_data(&board, mine) + half * BOARD_DATA_BYTES / 2,
                   sizeof(struct board_call));
    }
}

/* The upper bits: whose state all take. */
static void run_generation(uint8_t value)
{
    uint32_t generation = value % 32, root = value / 32 % (PLACES + 1);
    atomic_store(&board.head->root, root);
    atomic_store(&board.head->root_state, root ? 5 : 0);
    atomic_store(&board.head->restore, root != 0);
    atomic_store(&board.head->generation, generation);
    atomic_store(&board.head->running, generation);
    atomic_fetch_add(&board.head->epoch, 1);
}

static void assign(void)
{
    atomic_store(&board_slot(&board, PLACES)->assigned, in_u8(&in) % (PLACES + 2));
}

static void stop_job(void)
{
    atomic_store(&board.head->stop, 15);
    atomic_fetch_add(&board.head->epoch, 1);
}

/* A pause ends with a 0. */
static void pass_time(void)
{
    while (in_left(&in)) {
        switch (in_u8(&in) % 9) {
        case 0:
            return;
        case 1:
            spoil_data();
            break;
        case 2:
        case 3:
            agree();
            break;
        case 4:
            run_generation(in_u8(&in));
            break;
        case 5:
            assign();
            break;
        case 8:
            now_ns += 5 * NS_PER_S;
            break;
        default:
            scribble();
            break;
        }
    }
    stop_job();
    must(++sleeps < SLEEPS_MAX, "a wait without an end");
}

/* ---- the C library's, as the worker's library sees them ---- */

static long (*real_syscall)(long call, ...);

long syscall(long call, ...)
{
    va_list ap;
    va_start(ap, call);
    (void)va_arg(ap, void *);
    int op = va_arg(ap, int);
    va_end(ap);
    if (call == SYS_futex && (op & FUTEX_CMD_MASK) == FUTEX_WAKE)
        return 0;
    must(call == SYS_futex || call == 449 /* futex_waitv */, "a system call of somebody else");
    pass_time();
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    (void)clock;
    now_ns += 300000;
    now->tv_sec = (time_t)(now_ns / NS_PER_S);
    now->tv_nsec = (long)(now_ns % NS_PER_S);
    return 0;
}

pid_t getpid(void)
{
    return number;
}

pid_t gettid(void)
{
    return number;
}

/* ---- the worker ---- */

static void collect(uint8_t what, size_t bytes)
{
    static _Alignas(CACHE_LINE) unsigned char from[BUFFER_BYTES], to[PLACES * BUFFER_BYTES];
    int rc = LAUNCH_OK;
    switch (what % 6) {
    case 0:
        rc = launch_barrier(self);
        break;
    case 1:
        rc = launch_broadcast(self, to, bytes, what / 6 % PLACES);
        break;
    case 2:
        rc = launch_all_gather(self, from, to, bytes);
        break;
    case 3:
        rc = launch_all_reduce(self, from, to, bytes / 8, what / 6 % 10, what / 64);
        break;
    case 4:
        rc = launch_meet(self);
        break;
    default:
        rc = launch_commit(self, what / 6);
        break;
    }
    if (rc != LAUNCH_OK && what % 6 < 5)
        must(launch_error(self)[0] != '\0', "an error without words");
    check_clean(launch_error(self));
}

static void work(void)
{
    static char kept[700];
    must(launch_rank(self) >= 0 && launch_rank(self) < launch_world_size(self), "no rank");
    must(launch_world_size(self) <= (int)PLACES, "more ranks than there are");
    must(launch_keep(self, kept, sizeof kept) == LAUNCH_OK, "nothing is kept");
    for (unsigned i = 0; in_left(&in) && i < CALLS_MAX; i++) {
        uint8_t what = in_u8(&in);
        collect(what, in_u64(&in, 2) % BUFFER_BYTES);
        must(launch_state_root(self) >= -1 && launch_state_root(self) < launch_world_size(self),
             "a root that is no rank");
        (void)launch_is_fresh(self, what);
    }
}

static void open_board(void)
{
    static int bell = -1;
    char fd[16];
    struct err err;
    const struct board_config config = {
        .world_size = PLACES, .spares = SPARES, .generation = 1, .rendezvous_timeout_ms = 1000};
    must(board_create(&board, &config, &err) == 0, err.text);
    if (bell < 0) {
        bell = eventfd(0, EFD_NONBLOCK);
        snprintf(fd, sizeof fd, "%d", bell);
        setenv(ENV_BELL_FD, fd, 1);
    }
    snprintf(fd, sizeof fd, "%d", board.fd);
    setenv(ENV_BOARD_FD, fd, 1);
    run_generation(1);
}

/* A membership whose lock was spoilt stays mapped. Not here, or there would soon be thousands. */
static void forget_what_stays(int fd)
{
    struct robust_list_head *held;
    size_t bytes;
    char line[512];
    if (fcntl(fd, F_GETFD) < 0)
        return;
    close(fd);
    must(real_syscall(SYS_get_robust_list, 0, &held, &bytes) == 0, "no list of locks");
    held->list.next = &held->list;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        if (strstr(line, "memfd:launch-board") && sscanf(line, "%lx-%lx", &from, &to) == 2)
            munmap((void *)from, to - from);
    }
    must(maps != NULL, "no maps");
    fclose(maps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const slots[] = {"0", "1", "2", "3", "4"};
    in = (struct fuzz_in){data, data + n};
    number++;
    sleeps = 0;
    now_ns = 0;
    if (!real_syscall)
        real_syscall = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    open_board();
    setenv(ENV_SLOT, slots[in_u8(&in) % ARRAY_LEN(slots)], 1);
    if (in_left(&in))
        pass_time();
    int next_fd = fcntl(board.fd, F_DUPFD_CLOEXEC, 3); /* the number that the worker's will have */
    close(next_fd);
    if (launch_join(&self, 0) == LAUNCH_OK) {
        work();
        launch_leave(self);
    } else {
        must(launch_error(NULL)[0] != '\0', "an error without words");
        check_clean(launch_error(NULL));
    }
    self = NULL;
    board_close(&board);
    forget_what_stays(next_fd);
    return 0;
}
