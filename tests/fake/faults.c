/* SPDX-License-Identifier: MIT */
/* Preloaded, it lets calls of the C library fail as a short-handed kernel lets them fail: which ones is a function of a seed, the
 * process and the how-manieth call it is, so that a run can be had again.
 *
 *     FAULTS='KIND ...'   memory       ENOMEM of malloc, calloc, realloc, mmap
 *                         interrupt    EINTR of what can wait: the caller has to try again
 *                         descriptors  EMFILE or ENFILE of what opens something
 *                         disk         ENOSPC, EDQUOT or EIO of what writes to, makes or syncs a file
 *                         short        a write that takes less than it was given
 *                         fork         EAGAIN of fork()
 *                         clone        EAGAIN of every clone3(), the ones past the C library too
 *                         slow         up to 2 ms before a call
 *                         clock        CLOCK_REALTIME jumps, by up to a day; CLOCK_MONOTONIC does not
 *     FAULTS_SEED=N  FAULTS_RATE=N    of 10000 calls, so many are hit
 *     FAULTS_WHERE=   guard, agent, launch (both) or workers; a launcher's later children are agents */
#undef _FORTIFY_SOURCE /* its inline functions are those that are defined here */

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

enum kind { MEMORY, INTERRUPT, DESCRIPTORS, DISK, SHORT, FORK, CLONE, SLOW, CLOCK, KINDS_N };
static const char *const kind_names[KINDS_N] = {
    "memory", "interrupt", "descriptors", "disk", "short", "fork", "clone", "slow", "clock"};

static unsigned wanted; /* bit: kind */
static uint64_t seed, rate, who;
static atomic_ulong counts[KINDS_N];
static atomic_llong jump_s;
static int depth; /* forks since the program began */
static bool in_guard, in_agent, in_workers, is_launch;

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Is this call of the kind hit? *dice: a number drawn for it. */
static bool hits(enum kind kind, uint64_t *dice)
{
    if (!(wanted & 1u << kind) || !(is_launch ? (depth ? in_agent : in_guard) : in_workers))
        return false;
    uint64_t n = atomic_fetch_add(&counts[kind], 1);
    *dice = mix(mix(seed + who + 1000u * (unsigned)depth + kind) + n);
    bool hit = *dice % 10000 < rate;
    *dice /= 10000;
    return hit;
}

static void rest(void)
{
    uint64_t dice;
    if (!hits(SLOW, &dice))
        return;
    struct timespec t = {.tv_nsec = (long)(dice % 2000000)};
    int before = errno;
    nanosleep(&t, NULL);
    errno = before;
}

static bool fails(enum kind kind, const int *errors, unsigned errors_n)
{
    uint64_t dice;
    if (!hits(kind, &dice))
        return false;
    errno = errors[dice % errors_n];
    return true;
}

static bool no_memory(void)
{
    return fails(MEMORY, (const int[]){ENOMEM}, 1);
}

static bool interrupted(void)
{
    rest();
    return fails(INTERRUPT, (const int[]){EINTR}, 1);
}

static bool no_descriptor(void)
{
    rest();
    return fails(DESCRIPTORS, (const int[]){EMFILE, ENFILE}, 2);
}

static bool no_disk(void)
{
    return fails(DISK, (const int[]){ENOSPC, EDQUOT, EIO}, 3);
}

/* With a name: what is in memory only needs no disk. The three standard streams are spared, or nobody could read what is said. */
static bool is_file(int fd)
{
    struct stat st;
    int before = errno;
    bool file = fd > 2 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink;
    errno = before;
    return file;
}

static void refuse_clone(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 435 /* clone3 */, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void on_fork(void)
{
    depth++;
}

static uint64_t number(const char *name)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *kinds = getenv("FAULTS"), *where = getenv("FAULTS_WHERE");
    if (!kinds || !where)
        return;
    is_launch = strcmp(program_invocation_short_name, "launch") == 0;
    in_guard = strcmp(where, "guard") == 0 || strcmp(where, "launch") == 0;
    in_agent = strcmp(where, "agent") == 0 || strcmp(where, "launch") == 0;
    in_workers = strcmp(where, "workers") == 0;
    seed = number("FAULTS_SEED") << 16;
    rate = number("FAULTS_RATE");
    who = is_launch ? 0 : 1 + number("RANK");
    pthread_atfork(NULL, NULL, on_fork);
    unsigned asked = 0;
    for (enum kind k = 0; k < KINDS_N; k++)
        asked |= strstr(kinds, kind_names[k]) ? 1u << k : 0;
    wanted = asked;
    if (is_launch && in_agent && (asked & 1u << CLONE) && mix(seed + CLONE) % 10000 < rate)
        refuse_clone();
}

/* The C library's own; looked up once for each place where it stands. */
#define REAL(name)                                                                                 \
    (__extension__({                                                                               \
        static void *found;                                                                        \
        if (!found)                                                                                \
            found = dlsym(RTLD_NEXT, #name);                                                       \
        (__typeof__(name) *)found;                                                                 \
    }))

/* ---- memory ---- */

void *malloc(size_t size)
{
    return no_memory() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return no_memory() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return no_memory() ? NULL : __libc_realloc(old, size);
}

void *mmap(void *at, size_t size, int access, int flags, int fd, off_t offset)
{
    return no_memory() ? MAP_FAILED : REAL(mmap)(at, size, access, flags, fd, offset);
}

/* ---- what opens something ---- */

static bool cannot_open(int flags)
{
    return no_descriptor() || ((flags & O_CREAT) && no_disk());
}

#define MODE_OF(flags)                                                                             \
    (__extension__({                                                                               \
        mode_t asked = 0;                                                                          \
        if ((flags) & (O_CREAT | __O_TMPFILE)) {                                                   \
            va_list list;                                                                          \
            va_start(list, flags);                                                                 \
            asked = va_arg(list, mode_t);                                                          \
            va_end(list);                                                                          \
        }                                                                                          \
        asked;                                                                                     \
    }))

int open(const char *path, int flags, ...)
{
    mode_t mode = MODE_OF(flags);
    return cannot_open(flags) ? -1 : REAL(open)(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    mode_t mode = MODE_OF(flags);
    return cannot_open(flags) ? -1 : REAL(open64)(path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
    mode_t mode = MODE_OF(flags);
    return cannot_open(flags) ? -1 : REAL(openat)(dir, path, flags, mode);
}

int openat64(int dir, const char *path, int flags, ...)
{
    mode_t mode = MODE_OF(flags);
    return cannot_open(flags) ? -1 : REAL(openat64)(dir, path, flags, mode);
}

/* What the checked headers make of open() and openat() without a mode. */
int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
    return open(path, flags);
}

int __openat_2(int dir, const char *path, int flags);
int __openat_2(int dir, const char *path, int flags)
{
    return openat(dir, path, flags);
}

/* All that is asked of it takes one argument, of a word's size. */
int fcntl(int fd, int what, ...)
{
    va_list list;
    va_start(list, what);
    long argument = va_arg(list, long);
    va_end(list);
    bool opens = what == F_DUPFD || what == F_DUPFD_CLOEXEC;
    return opens && no_descriptor() ? -1 : REAL(fcntl)(fd, what, argument);
}

int fcntl64(int fd, int what, ...) __attribute__((alias("fcntl")));

FILE *fopen(const char *path, const char *how)
{
    return no_descriptor() ? NULL : REAL(fopen)(path, how);
}

DIR *opendir(const char *path)
{
    return no_descriptor() ? NULL : REAL(opendir)(path);
}

int socket(int domain, int type, int protocol)
{
    return no_descriptor() ? -1 : REAL(socket)(domain, type, protocol);
}

int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    return interrupted() || no_descriptor() ? -1 : REAL(accept4)(fd, address, size, flags);
}

int pipe2(int ends[2], int flags)
{
    return no_descriptor() ? -1 : REAL(pipe2)(ends, flags);
}

int memfd_create(const char *name, unsigned flags)
{
    return no_descriptor() ? -1 : REAL(memfd_create)(name, flags);
}

int eventfd(unsigned value, int flags)
{
    return no_descriptor() ? -1 : REAL(eventfd)(value, flags);
}

int inotify_init1(int flags)
{
    return no_descriptor() ? -1 : REAL(inotify_init1)(flags);
}

int epoll_create1(int flags)
{
    return no_descriptor() ? -1 : REAL(epoll_create1)(flags);
}

int signalfd(int fd, const sigset_t *mask, int flags)
{
    return no_descriptor() ? -1 : REAL(signalfd)(fd, mask, flags);
}

/* ---- what writes ---- */

/* How many of n bytes are written; < 0: none, errno says why. */
static ssize_t room(int fd, size_t n)
{
    uint64_t dice;
    bool file = is_file(fd);
    if (file ? no_disk() : interrupted())
        return -1;
    if ((file || n > PIPE_BUF) && n > 1 && hits(SHORT, &dice))
        return (ssize_t)(1 + dice % (n - 1));
    return (ssize_t)n;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    ssize_t some = room(fd, n);
    return some < 0 ? -1 : REAL(write)(fd, bytes, (size_t)some);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    ssize_t some = room(fd, n);
    return some < 0 ? -1 : REAL(pwrite)(fd, bytes, (size_t)some, at);
}

ssize_t writev(int fd, const struct iovec *parts, int parts_n)
{
    if (is_file(fd) ? no_disk() : interrupted())
        return -1;
    uint64_t dice;
    bool less = parts_n > 1 && is_file(fd) && hits(SHORT, &dice);
    return REAL(writev)(fd, parts, less ? 1 : parts_n);
}

int fsync(int fd)
{
    return is_file(fd) && no_disk() ? -1 : REAL(fsync)(fd);
}

int ftruncate(int fd, off_t size)
{
    return is_file(fd) && no_disk() ? -1 : REAL(ftruncate)(fd, size);
}

int mkdir(const char *path, mode_t mode)
{
    return no_disk() ? -1 : REAL(mkdir)(path, mode);
}

int mkdirat(int dir, const char *path, mode_t mode)
{
    return no_disk() ? -1 : REAL(mkdirat)(dir, path, mode);
}

/* ---- what waits ---- */

ssize_t read(int fd, void *bytes, size_t n)
{
    return !is_file(fd) && interrupted() ? -1 : REAL(read)(fd, bytes, n);
}

ssize_t __read_chk(int fd, void *bytes, size_t n, size_t size);
ssize_t __read_chk(int fd, void *bytes, size_t n, size_t size)
{
    return n > size ? (abort(), -1) : read(fd, bytes, n);
}

int poll(struct pollfd *fds, nfds_t n, int ms)
{
    return interrupted() ? -1 : REAL(poll)(fds, n, ms);
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *limit, const sigset_t *mask)
{
    return interrupted() ? -1 : REAL(ppoll)(fds, n, limit, mask);
}

int epoll_wait(int fd, struct epoll_event *events, int n, int ms)
{
    return interrupted() ? -1 : REAL(epoll_wait)(fd, events, n, ms);
}

int epoll_pwait(int fd, struct epoll_event *events, int n, int ms, const sigset_t *mask)
{
    return interrupted() ? -1 : REAL(epoll_pwait)(fd, events, n, ms, mask);
}

/* Without WNOHANG, and then only: who does not wait can't be interrupted. */
int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    return !(options & WNOHANG) && interrupted() ? -1 : REAL(waitid)(type, id, info, options);
}

pid_t waitpid(pid_t pid, int *status, int options)
{
    return !(options & WNOHANG) && interrupted() ? -1 : REAL(waitpid)(pid, status, options);
}

int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
    return interrupted() ? -1 : REAL(sigwaitinfo)(set, info);
}

int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *limit)
{
    return interrupted() ? -1 : REAL(sigtimedwait)(set, info, limit);
}

/* ---- the rest ---- */

pid_t fork(void)
{
    rest();
    return fails(FORK, (const int[]){EAGAIN, ENOMEM}, 2) ? -1 : REAL(fork)();
}

long syscall(long number, ...)
{
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    int op = (int)a[1] & FUTEX_CMD_MASK;
    bool waits = number == 449 /* futex_waitv */ ||
                 (number == SYS_futex && (op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET));
    if ((number == 434 /* pidfd_open */ && no_descriptor()) || (waits && interrupted()))
        return -1;
    return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static time_t jump(void)
{
    uint64_t dice;
    if (hits(CLOCK, &dice))
        atomic_store(&jump_s, (long long)(dice % 172800) - 86400);
    return (time_t)atomic_load(&jump_s);
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
    int rc = REAL(clock_gettime)(id, ret);
    if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        ret->tv_sec += jump();
    return rc;
}

time_t time(time_t *ret)
{
    time_t now = REAL(time)(NULL) + jump();
    if (ret)
        *ret = now;
    return now;
}
