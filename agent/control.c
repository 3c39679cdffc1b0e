/* SPDX-License-Identifier: MIT */
#include "control.h"

#include "log.h"
#include "watch.h"

#include <string.h>

#define BACKLOG 64
#define TRIES 4
#define BURST 64 /* packets sent before others get a turn */

enum client_state {
    CLIENT_ASKS,   /* we wait for a request */
    CLIENT_HEARS,  /* it gets its answer */
    CLIENT_WAITS,  /* for the end of the job */
    CLIENT_CLOSING /* only libuv still knows it */
};

struct client {
    uv_poll_t poll;
    struct control *control;
    struct client *next;
    int fd; /* owned */
    pid_t pid;
    enum client_state state;
    struct wire_request request;
    uint32_t at;         /* packets of the answer that were sent */
    struct wire_end end; /* the last one */
};

struct control {
    uv_loop_t *loop;
    struct rundir_place place;
    struct control_source source;
    int fd;               /* owned */
    struct watch *watch;  /* owned: of fd */
    struct client *first; /* oldest first */
    unsigned clients_n, refs;
};

static void control_unref(struct control *c)
{
    if (--c->refs == 0)
        free(c);
}

/* ---- clients ---- */

static void on_client_closed(uv_handle_t *handle)
{
    struct client *client = CONTAINER_OF((uv_poll_t *)handle, struct client, poll);
    struct control *c = client->control;
    free(client);
    control_unref(c);
}

static void drop(struct client *client)
{
    struct control *c = client->control;
    struct client **at = &c->first;
    while (*at != client)
        at = &(*at)->next;
    *at = client->next;
    c->clients_n--;
    client->state = CLIENT_CLOSING;
    uv_close((uv_handle_t *)&client->poll, on_client_closed); /* leaves epoll before it returns */
    close_fd(&client->fd);
}

/* Room for one more: who waits for the end has asked for something, and goes last. */
static void drop_oldest(struct control *c)
{
    struct client *oldest = c->first;
    while (oldest && oldest->state == CLIENT_WAITS)
        oldest = oldest->next;
    drop(oldest ? oldest : c->first);
}

static void on_client(uv_poll_t *poll, int status, int events);

static void listen_for(struct client *client, int events)
{
    uv_poll_start(&client->poll, events, on_client);
}

static uint32_t ranks_asked(const struct client *client)
{
    return client->request.rank == WIRE_ALL_RANKS ? client->control->source.world_size : 1;
}

/* Packets of the answer before the wire_end. */
static uint32_t answer_length(const struct client *client)
{
    if (client->end.code)
        return 0;
    switch ((enum wire_verb)client->request.verb) {
    case WIRE_DESCRIBE:
        return 1;
    case WIRE_LIST_RANKS:
        return 1 + ranks_asked(client) +
               (client->request.rank == WIRE_ALL_RANKS ? client->control->source.standbys : 0);
    case WIRE_SHOW_OUTPUT:
        return 2 * ranks_asked(client);
    default:
        return 0;
    }
}

static void make_packet(const struct client *client, union wire_packet *packet)
{
    const struct control_source *s = &client->control->source;
    uint32_t first = client->request.rank == WIRE_ALL_RANKS ? 0 : (uint32_t)client->request.rank;
    if (client->at == answer_length(client)) {
        packet->end = client->end;
    } else if (client->request.verb == WIRE_SHOW_OUTPUT) {
        wire_begin(packet, WIRE_OUTPUT);
        packet->output.rank = first + client->at / 2;
        packet->output.stream = 1 + client->at % 2;
        s->show_output(s->user, packet->output.rank, packet->output.stream, &packet->output);
    } else if (client->at == 0) {
        wire_begin(packet, WIRE_JOB);
        s->describe(s->user, &packet->job);
    } else {
        wire_begin(packet, WIRE_RANK);
        packet->rank.rank = first + client->at - 1;
        s->describe_rank(s->user, packet->rank.rank, &packet->rank);
    }
}

/* Sends as much of the answer as the other side takes. */
static void answer(struct client *client)
{
    client->state = CLIENT_HEARS;
    for (unsigned i = 0; i < BURST; i++) {
        union wire_packet packet;
        make_packet(client, &packet);
        int rc = wire_send(client->fd, &packet);
        if (rc == -EAGAIN)
            break;
        if (rc < 0) {
            drop(client);
            return;
        }
        if (packet.head.kind == WIRE_END) {
            client->state = CLIENT_ASKS;
            listen_for(client, UV_READABLE);
            return;
        }
        client->at++;
    }
    listen_for(client, UV_WRITABLE);
}

static void refuse(struct client *client, const struct err *err)
{
    client->end.code = err->code;
    snprintf(client->end.text, sizeof client->end.text, "%s", err->text);
}

static void take_request(struct client *client)
{
    union wire_packet packet;
    struct control *c = client->control;
    struct err err;
    int rc = wire_receive(client->fd, &packet, &err);
    if (rc == -EAGAIN)
        return;
    if (client->state == CLIENT_WAITS || (rc < 0 && rc != -EPROTO)) {
        drop(client);
        return;
    }
    union wire_packet end;
    wire_begin(&end, WIRE_END);
    client->end = end.end;
    client->at = 0;
    if (rc == 0 && packet.head.kind != WIRE_REQUEST)
        rc = err_set(&err, -EPROTO, "that is no request");
    client->request = rc == 0 ? packet.request : (struct wire_request){.rank = WIRE_ALL_RANKS};
    if (rc == 0 && client->request.rank >= (int64_t)c->source.world_size)
        rc = err_set(&err, -ERANGE, "there is no rank %d, the job has %u worker%s",
                     (int)client->request.rank, c->source.world_size,
                     c->source.world_size == 1 ? "" : "s");
    if (rc == 0 && client->request.verb >= WIRE_STOP && client->request.verb != WIRE_WAIT)
        rc = c->source.act(c->source.user, &client->request, client->pid, &err);
    if (rc < 0)
        refuse(client, &err);
    if (rc == 0 && client->request.verb == WIRE_WAIT)
        client->state = CLIENT_WAITS;
    else
        answer(client);
}

static void on_client(uv_poll_t *poll, int status, int events)
{
    struct client *client = CONTAINER_OF(poll, struct client, poll);
    (void)events;
    if (status < 0)
        drop(client);
    else if (client->state == CLIENT_HEARS)
        answer(client);
    else
        take_request(client);
}

/* ---- the listening end ---- */

static void add_client(struct control *c, int fd)
{
    AUTO_FD mine = fd;
    struct ucred peer;
    socklen_t n = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 ||
        (peer.uid != geteuid() && peer.uid != 0))
        return;
    struct client *client = calloc(1, sizeof *client);
    if (!client || uv_poll_init(c->loop, &client->poll, fd) < 0) {
        free(client);
        return;
    }
    if (c->clients_n == CONTROL_CLIENTS)
        drop_oldest(c);
    client->control = c;
    client->fd = take_fd(&mine);
    client->pid = peer.pid;
    struct client **last = &c->first;
    while (*last)
        last = &(*last)->next;
    *last = client;
    c->clients_n++;
    c->refs++;
    listen_for(client, UV_READABLE);
}

static void on_connect(void *user)
{
    struct control *c = user;
    for (unsigned i = 0; i < CONTROL_CLIENTS; i++) {
        int fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            add_client(c, fd);
        } else if (errno == EMFILE || errno == ENFILE) {
            /* Whoever waits would wake us for ever. */
            log_debug("control: no descriptors are left; the job can't be asked any more");
            watch_stop(&c->watch);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

/* -ENOENT: another job, the last one there, took the directory with it. */
static int bind_to(int fd, const struct rundir_place *place, struct err *err)
{
    struct sockaddr_un address;
    AUTO_FD directory = -1;
    int rc = rundir_make(place, err);
    if (rc < 0)
        return rc;
    rc = rundir_address(place, &address, &directory);
    if (rc == 0 && bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
        rc = -errno;
    return rc < 0 ? err_set_errno(err, rc, "%s/%s", place->dir, place->name) : 0;
}

static int open_socket(struct control *c, struct err *err)
{
    AUTO_FD fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set_errno(err, -errno, "socket");
    int rc = -ENOENT;
    for (int tries = 0; rc == -ENOENT && tries < TRIES; tries++)
        rc = bind_to(fd, &c->place, err);
    if (rc < 0)
        return rc;
    if (listen(fd, BACKLOG) < 0)
        return err_set_errno(err, -errno, "listen");
    c->fd = take_fd(&fd);
    return 0;
}

int control_start(struct control **ret, uv_loop_t *loop, const struct rundir_place *place,
                  const struct control_source *source, struct err *err)
{
    struct control *c = calloc(1, sizeof *c);
    if (!c)
        return err_set_errno(err, -ENOMEM, "control socket");
    c->loop = loop;
    c->place = *place;
    c->source = *source;
    c->fd = -1;
    c->refs = 1;
    int rc = open_socket(c, err);
    if (rc == 0 && !(c->watch = watch_start(loop, c->fd, on_connect, c)))
        rc = err_set_errno(err, -errno, "control socket");
    if (rc < 0) {
        control_stop(c, 0);
        return rc;
    }
    *ret = c;
    return 0;
}

void control_stop(struct control *c, int exit_code)
{
    if (!c)
        return;
    if (c->fd >= 0)
        rundir_remove(&c->place);
    watch_stop(&c->watch);
    close_fd(&c->fd);
    while (c->first) {
        struct client *client = c->first;
        union wire_packet end;
        wire_begin(&end, WIRE_END);
        end.end.code = exit_code;
        if (client->state == CLIENT_WAITS)
            (void)!wire_send(client->fd, &end);
        drop(client);
    }
    control_unref(c);
}
