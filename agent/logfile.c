/* SPDX-License-Identifier: MIT */
/* See logfile.h. A file waits in the queue at most once; what comes meanwhile is added to what it has pending,
 * so that many small writes become few large ones. Must never know what the bytes are. */
#include "logfile.h"

#include "../proto/clock.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define THREAD_STACK_BYTES (256u * 1024u)
#define SPARE_MAX_BYTES (1024u * 1024u)

struct buffer {
    char *bytes;
    size_t n, room;
};

struct logfile {
    struct writer *w;
    unsigned refs; /* the loop's */

    /* Under the lock. */
    struct buffer pending;
    bool queued, over;
    struct logfile *next;

    /* The thread's. */
    int fd, dir_fd;
    bool mid_line; /* the file's last byte is no newline */
    bool dead, told;
    uint64_t bytes, rotate_bytes;
    unsigned keep;
    char *path; /* owned: for messages */
    char name[];
};

/* News for the loop. */
struct trouble {
    struct trouble *next;
    int error;
    char path[];
};

struct writer {
    struct writer_callbacks callbacks;
    uv_async_t async; /* wakes the loop */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, idle;

    /* Under the lock. */
    struct logfile *first, *last; /* queued */
    size_t bytes;                 /* queued, and in the thread's hands */
    uint64_t lost;
    struct buffer spare; /* saves an allocation a turn */
    struct trouble *troubles;
    bool busy, was_full, has_room, stop;
};

/* ---- the thread: files ---- */

static void tell(struct logfile *f, int error)
{
    if (f->told)
        return;
    f->told = true;
    size_t n = strlen(f->path) + 1;
    struct trouble *t = malloc(sizeof *t + n);
    if (!t)
        return;
    t->error = -error;
    memcpy(t->path, f->path, n);
    pthread_mutex_lock(&f->w->lock);
    t->next = f->w->troubles;
    f->w->troubles = t;
    pthread_mutex_unlock(&f->w->lock);
    uv_async_send(&f->w->async);
}

static int open_new(int dir_fd, const char *name)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY;
    return openat(dir_fd, name, flags, 0600);
}

/* name becomes name.1, name.1 becomes name.2 and so on; the oldest goes. On failure the file stays open and is
 * never rotated again. */
static void rotate(struct logfile *f)
{
    char from[PATH_MAX], to[PATH_MAX];
    unsigned n = 1; /* the first number that is free, or the last one */
    for (; n < f->keep; n++) {
        snprintf(to, sizeof to, "%s.%u", f->name, n);
        if (faccessat(f->dir_fd, to, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
            break;
    }
    int rc = 0;
    for (; n > 0 && rc == 0; n--) {
        snprintf(from, sizeof from, n > 1 ? "%s.%u" : "%s", f->name, n - 1);
        snprintf(to, sizeof to, "%s.%u", f->name, n);
        rc = renameat(f->dir_fd, from, f->dir_fd, to);
    }
    int fd = rc == 0 ? open_new(f->dir_fd, f->name) : -1;
    if (fd < 0) {
        f->rotate_bytes = 0;
        tell(f, errno);
        return;
    }
    close_fd(&f->fd);
    f->fd = fd;
    f->bytes = 0;
    f->mid_line = false;
}

/* How much of the data belongs into the file as it is: whole lines, as far as they fit; 0: rotate first. */
static size_t portion(const struct logfile *f, const char *data, size_t n)
{
    if (!f->rotate_bytes || n + f->bytes <= f->rotate_bytes)
        return n;
    size_t room = f->bytes < f->rotate_bytes ? (size_t)(f->rotate_bytes - f->bytes) : 0;
    const char *newline = room ? memrchr(data, '\n', room) : NULL;
    if (newline)
        return (size_t)(newline + 1 - data);
    return f->mid_line || f->bytes == 0 ? room : 0; /* a line that is larger than a file is cut */
}

/* A file that nobody can find any more takes no bytes. */
static bool is_gone(const struct logfile *f)
{
    struct stat st;
    return fstat(f->fd, &st) == 0 && st.st_nlink == 0;
}

static bool is_full_disk(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

/* Returns how many bytes were lost. */
static size_t put(struct logfile *f, const char *data, size_t n)
{
    if (!f->dead && is_gone(f)) {
        f->dead = true;
        tell(f, ENOENT);
    }
    while (n && !f->dead) {
        size_t part = portion(f, data, n);
        if (!part) {
            rotate(f);
            continue;
        }
        ssize_t done = write(f->fd, data, part);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            int error = done < 0 ? errno : ENOSPC;
            f->dead = !is_full_disk(error);
            tell(f, error);
            break;
        }
        f->bytes += (uint64_t)done;
        f->mid_line = data[done - 1] != '\n';
        data += done;
        n -= (size_t)done;
    }
    return n;
}

static void logfile_free(struct logfile *f)
{
    close_fd(&f->fd);
    free(f->pending.bytes);
    free(f->path);
    free(f);
}

/* ---- the thread: queue; the lock is held ---- */

static void enqueue(struct logfile *f)
{
    struct writer *w = f->w;
    if (f->queued)
        return;
    f->queued = true;
    f->next = NULL;
    *(w->first ? &w->last->next : &w->first) = f;
    w->last = f;
    if (!w->busy)
        pthread_cond_signal(&w->work);
}

static void give_back(struct writer *w, struct buffer buffer)
{
    if (w->spare.bytes || buffer.room > SPARE_MAX_BYTES) {
        free(buffer.bytes);
        return;
    }
    buffer.n = 0;
    w->spare = buffer;
}

static void take_turn(struct writer *w)
{
    struct logfile *f = w->first;
    w->first = f->next;
    struct buffer buffer = f->pending;
    f->pending = (struct buffer){0};
    f->queued = false;
    pthread_mutex_unlock(&w->lock);

    size_t lost = put(f, buffer.bytes, buffer.n);

    pthread_mutex_lock(&w->lock);
    w->lost += lost;
    w->bytes -= buffer.n;
    if (buffer.bytes)
        give_back(w, buffer);
    if (w->was_full && w->bytes < WRITER_MAX_BYTES / 2) {
        w->was_full = false;
        w->has_room = true;
        uv_async_send(&w->async);
    }
    if (f->over && !f->queued)
        logfile_free(f);
}

static void *writer_main(void *arg)
{
    struct writer *w = arg;
    pthread_mutex_lock(&w->lock);
    while (w->first || !w->stop) {
        w->busy = w->first != NULL;
        if (w->busy) {
            take_turn(w);
            continue;
        }
        pthread_cond_broadcast(&w->idle);
        pthread_cond_wait(&w->work, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- the loop's side ---- */

static void on_async(uv_async_t *async)
{
    struct writer *w = CONTAINER_OF(async, struct writer, async);
    pthread_mutex_lock(&w->lock);
    struct trouble *t = w->troubles;
    bool room = w->has_room;
    w->troubles = NULL;
    w->has_room = false;
    pthread_mutex_unlock(&w->lock);
    for (struct trouble *next; t; t = next) {
        next = t->next;
        w->callbacks.on_trouble(w->callbacks.user, t->path, t->error);
        free(t);
    }
    if (room)
        w->callbacks.on_room(w->callbacks.user);
}

static int start_thread(struct writer *w)
{
    pthread_attr_t attr;
    int rc = pthread_attr_init(&attr);
    if (rc)
        return -rc;
    pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
    rc = pthread_create(&w->thread, &attr, writer_main, w);
    pthread_attr_destroy(&attr);
    return -rc;
}

static void writer_free(struct writer *w)
{
    pthread_cond_destroy(&w->work);
    pthread_cond_destroy(&w->idle);
    pthread_mutex_destroy(&w->lock);
    free(w->spare.bytes);
    free(w);
}

static void on_async_closed(uv_handle_t *handle)
{
    writer_free(CONTAINER_OF(handle, struct writer, async));
}

int writer_create(struct writer **ret, uv_loop_t *loop, const struct writer_callbacks *callbacks,
                  struct err *err)
{
    struct writer *w = calloc(1, sizeof *w);
    if (!w)
        return err_set_errno(err, -ENOMEM, "log writer");
    w->callbacks = *callbacks;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->work, NULL);
    pthread_cond_init(&w->idle, &attr);
    pthread_condattr_destroy(&attr);
    int rc = uv_async_init(loop, &w->async, on_async);
    if (rc < 0) {
        writer_free(w);
        return err_set_errno(err, rc, "log writer");
    }
    uv_unref((uv_handle_t *)&w->async);
    rc = start_thread(w);
    if (rc < 0) {
        uv_close((uv_handle_t *)&w->async, on_async_closed);
        return err_set_errno(err, rc, "log writer's thread");
    }
    *ret = w;
    return 0;
}

bool writer_full(struct writer *w)
{
    pthread_mutex_lock(&w->lock);
    bool full = w->bytes >= WRITER_MAX_BYTES;
    w->was_full |= full;
    full |= w->was_full; /* until half of it is gone */
    pthread_mutex_unlock(&w->lock);
    return full;
}

uint64_t writer_lost(struct writer *w)
{
    pthread_mutex_lock(&w->lock);
    uint64_t lost = w->lost;
    pthread_mutex_unlock(&w->lock);
    return lost;
}

bool writer_flush(struct writer *w, unsigned ms)
{
    uint64_t until_ns = clock_now_ns() + ms * NS_PER_MS;
    struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_S),
                             .tv_nsec = (long)(until_ns % NS_PER_S)};
    pthread_mutex_lock(&w->lock);
    int rc = 0;
    while ((w->first || w->busy) && rc == 0)
        rc = pthread_cond_timedwait(&w->idle, &w->lock, &until);
    bool done = !w->first && !w->busy;
    pthread_mutex_unlock(&w->lock);
    on_async(&w->async); /* the loop may have ended */
    return done;
}

void writer_destroy(struct writer *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    for (struct trouble *next; w->troubles; w->troubles = next) {
        next = w->troubles->next;
        free(w->troubles);
    }
    uv_close((uv_handle_t *)&w->async, on_async_closed);
}

/* ---- files ---- */

struct logfile *logfile_create(struct writer *w, int dir_fd, const char *dir, const char *name,
                               uint64_t rotate_bytes, unsigned keep)
{
    size_t n = strlen(name) + 1;
    struct logfile *f = calloc(1, sizeof *f + n);
    if (!f || asprintf(&f->path, "%s/%s", dir, name) < 0) {
        free(f);
        errno = ENOMEM;
        return NULL;
    }
    f->w = w;
    f->refs = 1;
    f->dir_fd = dir_fd;
    f->rotate_bytes = rotate_bytes;
    f->keep = keep;
    memcpy(f->name, name, n);
    f->fd = open_new(dir_fd, name);
    if (f->fd < 0) {
        int saved = errno;
        logfile_free(f);
        errno = saved;
        return NULL;
    }
    return f;
}

struct logfile *logfile_ref(struct logfile *f)
{
    if (f)
        f->refs++;
    return f;
}

void logfile_close(struct logfile *f)
{
    if (!f || --f->refs > 0)
        return;
    struct writer *w = f->w;
    pthread_mutex_lock(&w->lock);
    f->over = true;
    enqueue(f);
    pthread_mutex_unlock(&w->lock);
}

/* Makes room for n more bytes; the lock is held. */
static bool grow(struct buffer *b, size_t n)
{
    if (b->n + n <= b->room)
        return true;
    size_t room = b->room ? b->room : 4096;
    while (room < b->n + n)
        room *= 2;
    char *bytes = realloc(b->bytes, room);
    if (!bytes)
        return false;
    b->bytes = bytes;
    b->room = room;
    return true;
}

void logfile_write(struct logfile *f, const char *data, size_t n)
{
    struct writer *w = f->w;
    pthread_mutex_lock(&w->lock);
    if (!f->pending.bytes) {
        f->pending = w->spare;
        w->spare = (struct buffer){0};
    }
    if (grow(&f->pending, n)) {
        memcpy(f->pending.bytes + f->pending.n, data, n);
        f->pending.n += n;
        w->bytes += n;
        enqueue(f);
    } else {
        w->lost += n;
    }
    pthread_mutex_unlock(&w->lock);
}

bool logfile_full(struct logfile *f)
{
    return writer_full(f->w);
}
