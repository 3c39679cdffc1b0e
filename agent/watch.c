/* SPDX-License-Identifier: MIT */
/* A poll handle of libuv's costs six system calls in its life, this one three: libuv tries every descriptor in epoll, takes it
 * out again, and to be sure once more. Here one such handle watches an epoll descriptor that has all of them. */
#include "watch.h"

#include <sys/epoll.h>
#include <sys/ioctl.h>

#define BATCH 64 /* calls before libuv's timers and others have their turn */

struct watch {
    struct watch_set *set;
    int fd;
    bool paused;
    void (*on_readable)(void *user);
    void *user;
    struct watch *next, **at; /* in the set's list: the kernel alone would know them */
};

/* All watches of a loop; there as long as there is one. Whoever looks for it finds it among the loop's handles. */
struct watch_set {
    uv_poll_t poll;
    int epoll_fd;
    struct watch *first;
    struct epoll_event batch[BATCH];
    int at, batch_n; /* those before `at` had their call */
};

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watch_set *set = CONTAINER_OF(poll, struct watch_set, poll);
    (void)status; /* an error is seen by whoever reads */
    (void)events;
    set->batch_n = epoll_wait(set->epoll_fd, set->batch, BATCH, 0);
    /* A call may stop any of them; the set's memory stays until libuv has closed its handle. */
    for (set->at = 0; set->at < set->batch_n;) {
        struct watch *watch = set->batch[set->at++].data.ptr;
        if (watch && !watch->paused)
            watch->on_readable(watch->user);
    }
    set->at = set->batch_n = 0;
}

static struct watch_set *set_create(uv_loop_t *loop)
{
    struct watch_set *set = calloc(1, sizeof *set);
    if (!set)
        return NULL;
    set->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int rc = set->epoll_fd < 0 ? -errno : uv_poll_init(loop, &set->poll, set->epoll_fd);
    if (rc < 0) {
        close_fd(&set->epoll_fd);
        free(set); /* a handle that was not initialised is not known to the loop */
        errno = -rc;
        return NULL;
    }
    uv_poll_start(&set->poll, UV_READABLE, on_poll);
    return set;
}

static void take_set(uv_handle_t *handle, void *ret)
{
    uv_poll_t *poll = (uv_poll_t *)handle;
    if (uv_handle_get_type(handle) == UV_POLL && poll->poll_cb == on_poll && !uv_is_closing(handle))
        *(struct watch_set **)ret = CONTAINER_OF(poll, struct watch_set, poll);
}

static struct watch_set *set_of(uv_loop_t *loop)
{
    struct watch_set *set = NULL;
    uv_walk(loop, take_set, &set);
    return set;
}

static void on_closed(uv_handle_t *handle)
{
    free(CONTAINER_OF((uv_poll_t *)handle, struct watch_set, poll));
}

static void set_drop_if_empty(struct watch_set *set)
{
    if (set->first)
        return;
    uv_close((uv_handle_t *)&set->poll, on_closed); /* it leaves libuv's epoll at once */
    close_fd(&set->epoll_fd);
}

static struct watch *give_up(struct watch_set *set, struct watch *watch)
{
    int error = errno;
    if (set)
        set_drop_if_empty(set);
    free(watch);
    errno = error;
    return NULL;
}

struct watch *watch_start(uv_loop_t *loop, int fd, void (*on_readable)(void *user), void *user)
{
    struct watch *watch = malloc(sizeof *watch);
    struct watch_set *set = set_of(loop);
    if (!set)
        set = set_create(loop);
    if (!watch || !set)
        return give_up(set, watch);
    *watch = (struct watch){.set = set, .fd = fd, .on_readable = on_readable, .user = user};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = watch};
    if (ioctl(fd, FIONBIO, &(int){1}) < 0 ||
        epoll_ctl(set->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        return give_up(set, watch);
    watch->at = &set->first;
    watch->next = set->first;
    if (watch->next)
        watch->next->at = &watch->next;
    set->first = watch;
    return watch;
}

void watch_give(struct watch *watch, void *user)
{
    watch->user = user;
}

void watch_pause(struct watch *watch, bool paused)
{
    /* Not with no events: the other end's end would be told all the same, and again and again. */
    struct epoll_event event = {.events = paused ? EPOLLONESHOT : EPOLLIN, .data.ptr = watch};
    watch->paused = paused;
    epoll_ctl(watch->set->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event);
}

void watch_stop(struct watch **watch)
{
    struct watch *w = *watch;
    if (!w)
        return;
    struct watch_set *set = w->set;
    epoll_ctl(set->epoll_fd, EPOLL_CTL_DEL, w->fd, &(struct epoll_event){0});
    for (int i = set->at; i < set->batch_n; i++)
        if (set->batch[i].data.ptr == w)
            set->batch[i].data.ptr = NULL;
    *w->at = w->next;
    if (w->next)
        w->next->at = w->at;
    set_drop_if_empty(set);
    free(w);
    *watch = NULL;
}
