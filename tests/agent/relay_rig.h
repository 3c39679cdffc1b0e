/* SPDX-License-Identifier: MIT */
/* A relay between real pipes, for its tests. One loop drives the relay and the reader of its output; writers
 * are this process or a forked child. Nothing sleeps: the loop waits for the event that the test
 * is about. */
#ifndef LAUNCH_TESTS_RELAY_RIG_H
#define LAUNCH_TESTS_RELAY_RIG_H

#include "../../agent/relay.h"
#include "../harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#define RANKS 8

struct rig {
    uv_loop_t loop;
    struct relay *relay;
    int out[2]; /* the relay writes to [1] */
    uv_poll_t reader;
    bool reading;
    char *got;
    size_t n_got;
    int in[RANKS][RELAY_KINDS_N]; /* the workers' ends */
    unsigned ended[RANKS], n_ended, gone[RELAY_KINDS_N];
};

static struct rig rig = {.out = {-1, -1}};

static inline void on_rank_end(void *user, unsigned rank)
{
    struct rig *g = user;
    g->ended[rank]++;
    g->n_ended++;
    uv_stop(&g->loop); /* timers run first: the same round would go on to wait for input */
}

static inline void on_gone(void *user, enum relay_stream_kind kind)
{
    struct rig *g = user;
    g->gone[kind]++;
    uv_stop(&g->loop);
}

static inline void on_output(uv_poll_t *poll, int status, int events)
{
    struct rig *g = poll->data;
    (void)events;
    g->got = realloc(g->got, g->n_got + 65536 + 1);
    ssize_t n = status < 0 ? -1 : read(g->out[0], g->got + g->n_got, 65536);
    if (n > 0)
        g->n_got += (size_t)n;
    else
        uv_poll_stop(poll);
    g->got[g->n_got] = '\0';
}

static inline void start_reading(void)
{
    CHECK_INT(uv_poll_init(&rig.loop, &rig.reader, rig.out[0]), ==, 0);
    rig.reader.data = &rig;
    uv_poll_start(&rig.reader, UV_READABLE, on_output);
    rig.reading = true;
}

static inline void open_relay(int out_fd, int err_fd)
{
    static const struct relay_callbacks callbacks = {on_rank_end, on_gone, &rig};
    struct err err;
    signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&rig.loop);
    CHECK_INT(relay_create(&rig.relay, &rig.loop, RANKS, out_fd, err_fd, &callbacks, &err), ==, 0);
    memset(rig.in, -1, sizeof rig.in);
}

/* The relay writes both kinds to one pipe that the rig reads. */
static inline void setup(void)
{
    CHECK_INT(pipe2(rig.out, O_CLOEXEC), ==, 0);
    open_relay(rig.out[1], rig.out[1]);
    start_reading();
}

static inline int add_route(unsigned rank, enum relay_stream_kind kind,
                            const struct relay_route *route)
{
    int fds[2];
    struct err err;
    CHECK_INT(pipe2(fds, O_CLOEXEC), ==, 0);
    CHECK_INT(relay_add(rig.relay, rank, kind, fds[0], route, &err), ==, 0);
    return rig.in[rank][kind] = fds[1];
}

static inline int add(unsigned rank, enum relay_stream_kind kind)
{
    return add_route(rank, kind, NULL);
}

static inline void say(int fd, const char *text)
{
    CHECK_INT(write(fd, text, strlen(text)), ==, strlen(text));
}

static inline void until_got(size_t n)
{
    while (rig.n_got < n)
        uv_run(&rig.loop, UV_RUN_ONCE);
}

static inline void until_ended(unsigned n)
{
    while (rig.n_ended < n)
        uv_run(&rig.loop, UV_RUN_ONCE);
}

/* Whatever can happen without waiting has happened. */
static inline void settle(void)
{
    for (int i = 0; i < 20; i++)
        uv_run(&rig.loop, UV_RUN_NOWAIT);
}

static inline void teardown(void)
{
    relay_destroy(rig.relay);
    if (rig.reading)
        uv_close((uv_handle_t *)&rig.reader, NULL);
    uv_run(&rig.loop, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(&rig.loop), ==, 0);
    for (int i = 0; i < RANKS; i++)
        for (int k = 0; k < RELAY_KINDS_N; k++)
            close_fd(&rig.in[i][k]);
    close_fd(&rig.out[0]);
    close_fd(&rig.out[1]);
    free(rig.got);
}

#endif
