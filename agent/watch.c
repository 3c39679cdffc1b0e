/* SPDX-License-Identifier: MIT */
#include "watch.h"

struct watch {
    uv_poll_t poll;
    void (*on_readable)(void *user);
    void *user;
};

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = CONTAINER_OF(poll, struct watch, poll);
    (void)status; /* an error is seen by whoever reads */
    (void)events;
    watch->on_readable(watch->user);
}

struct watch *watch_start(uv_loop_t *loop, int fd, void (*on_readable)(void *user), void *user)
{
    struct watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return NULL;
    watch->on_readable = on_readable;
    watch->user = user;
    if (uv_poll_init(loop, &watch->poll, fd) < 0) {
        free(watch); /* a handle that was not initialised is not known to the loop */
        return NULL;
    }
    uv_poll_start(&watch->poll, UV_READABLE, on_poll);
    return watch;
}

void watch_give(struct watch *watch, void *user)
{
    watch->user = user;
}

static void on_closed(uv_handle_t *handle)
{
    free(CONTAINER_OF((uv_poll_t *)handle, struct watch, poll));
}

void watch_stop(struct watch **watch)
{
    /* uv_close takes a poll handle out of epoll before it returns. */
    if (*watch)
        uv_close((uv_handle_t *)&(*watch)->poll, on_closed);
    *watch = NULL;
}
