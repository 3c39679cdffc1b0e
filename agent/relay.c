/* SPDX-License-Identifier: MIT */
/* See relay.h. The life of ranks' streams from relay_add to on_rank_end; how bytes pass is in
 * stream.c. Every callback to the owner comes from on_alarm, never from inside a call. Must
 * never know processes. */
#include "relay.h"

#include "../proto/clock.h"
#include "stream.h"
#include "tail.h"

#include <assert.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static_assert(RELAY_TAIL_BYTES == TAIL_BYTES, "the tail is what relay.h promises");
static_assert((int)RELAY_KINDS_N == OUTLETS_MAX, "one outlet for each kind at most");

struct rank {
    struct stream *stream[RELAY_KINDS_N];
    struct tail tail[RELAY_KINDS_N];
    uint64_t bytes;   /* read */
    uint64_t last_ms; /* uv_now() when a stream was read last in this attempt; 0: none was */
    enum relay_stream_kind last_kind;
    bool draining;
    struct deadline drain;
};

struct relay {
    struct stream_set set;
    struct relay_callbacks callbacks;
    unsigned refs; /* alarm, sinks and streams that must still be closed */
    struct sink sinks[RELAY_KINDS_N];
    struct sink *sink_of[RELAY_KINDS_N];
    unsigned n_sinks, n_ranks;
    struct rank *ranks;
    char chunk[RELAY_CHUNK_BYTES];
    char prefixed[STREAM_PREFIXED_BYTES];
};

static struct relay *relay_of(struct stream_set *set)
{
    return CONTAINER_OF(set, struct relay, set);
}

static void relay_unref(struct relay *r)
{
    if (--r->refs > 0)
        return;
    for (unsigned i = 0; i < r->n_ranks; i++)
        for (int kind = 0; kind < RELAY_KINDS_N; kind++)
            tail_finish(&r->ranks[i].tail[kind]);
    free(r->ranks);
    free(r);
}

static void on_stream_freed(struct stream_set *set)
{
    relay_unref(relay_of(set));
}

static void on_data(struct stream *s, const char *data, size_t n)
{
    struct rank *rank = &relay_of(s->set)->ranks[s->rank];
    rank->bytes += n;
    rank->last_ms = uv_now(s->set->alarm.timer.loop);
    rank->last_kind = s->kind;
    tail_add(&rank->tail[s->kind], data, n);
}

static bool has_streams(const struct rank *rank)
{
    return rank->stream[RELAY_STDOUT] || rank->stream[RELAY_STDERR];
}

static void on_stream_end(struct stream *s)
{
    struct rank *rank = &relay_of(s->set)->ranks[s->rank];
    rank->stream[s->kind] = NULL;
    if (rank->draining && !has_streams(rank))
        deadline_in(&s->set->alarm, &rank->drain, 0);
}

static void close_streams(struct relay *r, struct rank *rank)
{
    rank->draining = false; /* their end is ours, and no news */
    for (int kind = 0; kind < RELAY_KINDS_N; kind++)
        if (rank->stream[kind])
            stream_drain(rank->stream[kind]);
    for (unsigned k = 0; k < r->n_sinks; k++)
        sink_settle(&r->sinks[k]);
    deadline_clear(&r->set.alarm, &rank->drain);
}

static void rank_end(struct relay *r, unsigned i)
{
    close_streams(r, &r->ranks[i]);
    r->callbacks.on_rank_end(r->callbacks.user, i);
}

static void report_gone(struct relay *r, const struct sink *k)
{
    for (int kind = 0; kind < RELAY_KINDS_N && !r->set.closing; kind++)
        if (r->sink_of[kind] == k)
            r->callbacks.on_outlet_gone(r->callbacks.user, (enum relay_stream_kind)kind);
}

/* The owner's callbacks may call anything of relay.h, even relay_destroy. */
static void on_alarm(struct alarm *alarm)
{
    struct relay *r = CONTAINER_OF(alarm, struct relay, set.alarm);
    for (struct stream *s = r->set.first; s; s = s->next)
        if (deadline_passed(alarm, &s->idle))
            stream_lose_patience(s);
    for (unsigned i = 0; i < r->n_sinks; i++) {
        if (deadline_passed(alarm, &r->sinks[i].hold))
            sink_disown(&r->sinks[i]);
        sink_settle(&r->sinks[i]);
    }
    for (unsigned i = 0; i < r->n_sinks && !r->set.closing; i++)
        if (deadline_passed(alarm, &r->sinks[i].gone))
            report_gone(r, &r->sinks[i]);
    for (unsigned i = 0; i < r->n_ranks && !r->set.closing; i++)
        if (deadline_passed(alarm, &r->ranks[i].drain))
            rank_end(r, i);
}

/* ---- the public part ---- */

static bool same_file(int a, int b)
{
    struct stat x, y;
    if (fstat(a, &x) < 0 || fstat(b, &y) < 0)
        return false;
    if (x.st_dev == y.st_dev && x.st_ino == y.st_ino)
        return true;
    return S_ISCHR(x.st_mode) && S_ISCHR(y.st_mode) && x.st_rdev == y.st_rdev;
}

static void on_sink_closed(struct outlet *o)
{
    relay_unref(relay_of(CONTAINER_OF(o, struct sink, outlet)->set));
}

static int open_sinks(struct relay *r, int out_fd, int err_fd, struct err *err)
{
    const int fds[] = {out_fd, err_fd};
    unsigned wanted = same_file(out_fd, err_fd) ? 1 : 2;
    while (r->n_sinks < wanted) {
        struct sink *k = &r->sinks[r->n_sinks];
        int rc = sink_init(k, &r->set, fds[r->n_sinks], err);
        if (rc < 0)
            return rc;
        r->n_sinks++;
        r->refs++;
    }
    r->sink_of[RELAY_STDOUT] = &r->sinks[0];
    r->sink_of[RELAY_STDERR] = &r->sinks[wanted - 1];
    return 0;
}

static void on_alarm_closed(struct alarm *alarm)
{
    relay_unref(CONTAINER_OF(alarm, struct relay, set.alarm));
}

int relay_create(struct relay **ret, uv_loop_t *loop, unsigned nranks, int out_fd, int err_fd,
                 const struct relay_callbacks *callbacks, struct err *err)
{
    struct relay *r = malloc(sizeof *r);
    struct rank *ranks = calloc(nranks ? nranks : 1, sizeof *ranks);
    if (!r || !ranks) {
        free(r);
        free(ranks);
        return err_set_errno(err, -ENOMEM, "output of %u ranks", nranks);
    }
    memset(r, 0, offsetof(struct relay, chunk)); /* buffers cost no memory before their first use */
    r->callbacks = *callbacks;
    r->ranks = ranks;
    r->n_ranks = nranks;
    r->refs = 1;
    r->set.chunk = r->chunk;
    r->set.prefixed = r->prefixed;
    r->set.on_data = on_data;
    r->set.on_end = on_stream_end;
    r->set.on_freed = on_stream_freed;
    alarm_init(&r->set.alarm, loop, on_alarm);
    int rc = open_sinks(r, out_fd, err_fd, err);
    if (rc < 0) {
        relay_destroy(r);
        return rc;
    }
    *ret = r;
    return 0;
}

int relay_add(struct relay *r, unsigned rank, enum relay_stream_kind kind, int fd,
              const struct relay_route *route, struct err *err)
{
    static const struct relay_route plain;
    AUTO_FD mine = fd;
    if (rank >= r->n_ranks || (unsigned)kind >= RELAY_KINDS_N || r->ranks[rank].stream[kind])
        return err_set(err, -EINVAL, "output of rank %u: no place for a pipe of kind %d", rank,
                       kind);
    struct rank *slot = &r->ranks[rank];
    bool new_attempt = !has_streams(slot) && !slot->draining;
    int rc = stream_create(&slot->stream[kind], &r->set, r->sink_of[kind], rank, kind,
                           take_fd(&mine), route ? route : &plain);
    if (rc < 0)
        return err_set_errno(err, rc, "output of rank %u", rank);
    if (new_attempt) {
        slot->last_ms = 0;
        for (int k = 0; k < RELAY_KINDS_N; k++)
            tail_reset(&slot->tail[k]);
    }
    r->refs++;
    return 0;
}

void relay_files_ready(struct relay *r)
{
    for (struct stream *s = r->set.first, *next; s; s = next) {
        next = s->next;
        stream_resume(s);
    }
}

void relay_rank_drain(struct relay *r, unsigned rank, unsigned ms)
{
    if (rank >= r->n_ranks)
        return;
    struct rank *slot = &r->ranks[rank];
    slot->draining = true;
    deadline_in(&r->set.alarm, &slot->drain, has_streams(slot) ? ms : 0);
}

void relay_rank_cut(struct relay *r, unsigned rank)
{
    if (rank < r->n_ranks)
        close_streams(r, &r->ranks[rank]);
}

const char *relay_tail(const struct relay *r, unsigned rank, size_t *ret_n)
{
    return relay_tail_of(r, rank, RELAY_STDERR, ret_n);
}

const char *relay_tail_of(const struct relay *r, unsigned rank, enum relay_stream_kind kind,
                          size_t *ret_n)
{
    static const struct tail none;
    return tail_text(rank < r->n_ranks ? &r->ranks[rank].tail[kind] : &none, ret_n);
}

bool relay_last(const struct relay *r, unsigned rank, enum relay_stream_kind *ret_kind,
                uint64_t *ret_ms)
{
    if (rank >= r->n_ranks || !r->ranks[rank].last_ms)
        return false;
    *ret_kind = r->ranks[rank].last_kind;
    *ret_ms = r->ranks[rank].last_ms;
    return true;
}

uint64_t relay_bytes(const struct relay *r, unsigned rank)
{
    return rank < r->n_ranks ? r->ranks[rank].bytes : 0;
}

bool relay_waits(const struct relay *r)
{
    for (unsigned i = 0; i < r->n_sinks; i++)
        if (r->sinks[i].outlet.waiting)
            return true;
    return false;
}

uint64_t relay_dropped(const struct relay *r)
{
    uint64_t dropped = r->set.dropped;
    for (unsigned i = 0; i < r->n_sinks; i++)
        dropped += r->sinks[i].outlet.dropped;
    return dropped;
}

void relay_end_line(void *relay)
{
    struct relay *r = relay;
    sink_end_line(r->sink_of[RELAY_STDERR]);
}

static void wait_blocking(struct relay *r, uint64_t until_ns)
{
    struct outlet *waiting[OUTLETS_MAX];
    for (unsigned i = 0; i < r->n_sinks; i++)
        waiting[i] = &r->sinks[i].outlet;
    uint64_t now = clock_now_ns();
    uint64_t ms = now < until_ns ? (until_ns - now + NS_PER_MS - 1) / NS_PER_MS : 0;
    outlet_wait_blocking(waiting, r->n_sinks, ms < INT_MAX ? (int)ms : INT_MAX);
}

static bool anyone_in_line(const struct relay *r)
{
    for (unsigned i = 0; i < r->n_sinks; i++)
        if (r->sinks[i].first)
            return true;
    return false;
}

static void drop_held(struct relay *r)
{
    for (unsigned i = 0; i < r->n_sinks; i++)
        sink_drop(&r->sinks[i]);
}

void relay_flush(struct relay *r, unsigned ms)
{
    uint64_t until_ns = clock_now_ns() + ms * NS_PER_MS;
    r->set.flushing = true;
    for (struct stream *s = r->set.first; s; s = s->next)
        if (s->n_held)
            stream_lose_patience(s);
    for (;;) {
        for (unsigned i = 0; i < r->n_sinks; i++)
            sink_settle(&r->sinks[i]);
        if (!anyone_in_line(r) || clock_now_ns() >= until_ns)
            break;
        wait_blocking(r, until_ns);
    }
    drop_held(r);
    r->set.flushing = false;
}

void relay_destroy(struct relay *r)
{
    if (!r || r->set.closing)
        return;
    r->set.closing = true;
    drop_held(r);
    for (struct stream *s = r->set.first, *next; s; s = next) {
        next = s->next;
        stream_discard(s);
    }
    for (unsigned i = 0; i < r->n_sinks; i++)
        outlet_finish(&r->sinks[i].outlet, on_sink_closed);
    alarm_finish(&r->set.alarm, on_alarm_closed);
}
