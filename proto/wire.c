/* SPDX-License-Identifier: MIT */
#include "wire.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

/* No holes, or they would carry our memory to the other side. */
static_assert(sizeof(struct wire_request) == 24, "layout");
static_assert(offsetof(struct wire_job, age_ms) == 40, "layout");
static_assert(sizeof(struct wire_job) == 56 + 16 + 2 * 64 + 128 + 256 + PATH_MAX, "layout");
static_assert(offsetof(struct wire_rank, age_ms) == 24, "layout");
static_assert(sizeof(struct wire_rank) == 80 + 64 + 80 + 160, "layout");
static_assert(sizeof(struct wire_output) == 24 + WIRE_OUTPUT_BYTES, "layout");
static_assert(sizeof(struct wire_end) == 12 + ERR_TEXT_BYTES, "layout");

#define TERMINATE(array) ((array)[sizeof(array) - 1] = '\0')

size_t wire_size(unsigned kind)
{
    static const size_t sizes[WIRE_KINDS_N] = {
        [WIRE_REQUEST] = sizeof(struct wire_request), [WIRE_JOB] = sizeof(struct wire_job),
        [WIRE_RANK] = sizeof(struct wire_rank),       [WIRE_OUTPUT] = sizeof(struct wire_output),
        [WIRE_END] = sizeof(struct wire_end),
    };
    return kind < WIRE_KINDS_N ? sizes[kind] : 0;
}

void wire_begin(union wire_packet *packet, enum wire_kind kind)
{
    memset(packet, 0, wire_size(kind));
    packet->head = (struct wire_head){WIRE_MAGIC, WIRE_VERSION, (uint16_t)kind};
}

static int check_request(const struct wire_request *r, struct err *err)
{
    if (r->verb == 0 || r->verb >= WIRE_VERBS_N)
        return err_set(err, -EPROTO, "unknown request %u", r->verb);
    if (r->rank < WIRE_ALL_RANKS)
        return err_set(err, -EPROTO, "no rank %d", (int)r->rank);
    return 0;
}

static void tame_job(struct wire_job *job)
{
    TERMINATE(job->state);
    TERMINATE(job->run_id);
    TERMINATE(job->name);
    TERMINATE(job->program);
    TERMINATE(job->gpus);
    TERMINATE(job->log_dir);
}

static void tame_rank(struct wire_rank *rank)
{
    TERMINATE(rank->end);
    TERMINATE(rank->gpu);
    TERMINATE(rank->line);
}

int wire_check(union wire_packet *packet, size_t n, struct err *err)
{
    const struct wire_head *head = &packet->head;
    if (n < sizeof *head || head->magic != WIRE_MAGIC)
        return err_set(err, -EPROTO, "that is no launch");
    if (head->version != WIRE_VERSION)
        return err_set(err, -EPROTO,
                       "version %u of the control protocol is spoken there, %u here: use the same "
                       "release of launch",
                       head->version, WIRE_VERSION);
    if (wire_size(head->kind) == 0 || n != wire_size(head->kind))
        return err_set(err, -EPROTO, "a packet of kind %u with %zu bytes", head->kind, n);
    switch ((enum wire_kind)head->kind) {
    case WIRE_REQUEST:
        return check_request(&packet->request, err);
    case WIRE_JOB:
        tame_job(&packet->job);
        break;
    case WIRE_RANK:
        tame_rank(&packet->rank);
        break;
    case WIRE_OUTPUT:
        if (packet->output.n > WIRE_OUTPUT_BYTES)
            packet->output.n = WIRE_OUTPUT_BYTES;
        break;
    default:
        TERMINATE(packet->end.text);
        break;
    }
    return 0;
}

int wire_send(int fd, const union wire_packet *packet)
{
    ssize_t n;
    do
        n = send(fd, packet, wire_size(packet->head.kind), MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

int wire_receive(int fd, union wire_packet *ret, struct err *err)
{
    ssize_t n;
    do
        n = recv(fd, ret, sizeof *ret, MSG_TRUNC);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return -EAGAIN; /* no error, only nothing yet */
    if (n < 0)
        return err_set_errno(err, -errno, "control socket");
    if (n == 0)
        return err_set(err, -EPIPE, "the other side has closed");
    return wire_check(ret, (size_t)n, err);
}
