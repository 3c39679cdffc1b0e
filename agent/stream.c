/* SPDX-License-Identifier: MIT */
/* See stream.h. Whole lines, turns and back-pressure. Must never know processes, nor when a rank
 * is over. */
#include "stream.h"

#include "pipe.h"

#include <string.h>

#define READS_PER_WAKE 4 /* of a stream that fills every chunk, before the others' turn */
#define ORPHANED_MAX (8 * RELAY_LINE_MAX) /* held for streams whose worker is gone, all together */

/* ---- what is held back ---- */

/* Makes room for n more bytes behind what is held. */
static bool make_room(struct stream *s, size_t n)
{
    if (s->held_at) {
        memmove(s->held, s->held + s->held_at, s->n_held);
        s->held_at = 0;
    }
    if (s->n_held + n <= s->held_bytes)
        return true;
    size_t bytes = s->held_bytes ? s->held_bytes : 256;
    while (bytes < s->n_held + n)
        bytes *= 2;
    char *grown = realloc(s->held, bytes);
    if (!grown)
        return false;
    s->held = grown;
    s->held_bytes = bytes;
    return true;
}

static void hold(struct stream *s, const char *data, size_t n)
{
    if (n == 0)
        return;
    if (!make_room(s, n)) {
        s->set->dropped += n;
        return;
    }
    memcpy(s->held + s->n_held, data, n);
    s->n_held += n;
}

/* The rest of a line that was cut begins a line on the outlet. Returns the bytes that are held more. */
static size_t repeat_prefix(struct stream *s)
{
    size_t n = s->route.prefix.n;
    if (!s->cut)
        return 0;
    s->cut = false;
    if (!make_room(s, n))
        return 0;
    memmove(s->held + n, s->held, s->n_held);
    memcpy(s->held, s->route.prefix.text, n);
    s->n_held += n;
    return n;
}

static void unhold(struct stream *s, size_t n)
{
    s->held_at += n;
    s->n_held -= n;
    if (s->n_held)
        return;
    free(s->held);
    s->held = NULL;
    s->held_at = s->held_bytes = 0;
}

/* ---- the line of streams in front of a sink ---- */

static void line_up_first(struct stream *s)
{
    struct sink *k = s->sink;
    s->in_line = true;
    s->next_in_line = k->first;
    k->first = s;
    k->last = k->last ? k->last : s;
}

static void line_up(struct stream *s)
{
    struct sink *k = s->sink;
    if (s->in_line)
        return;
    if (k->owner == s || !k->first) {
        line_up_first(s);
        return;
    }
    s->in_line = true;
    s->next_in_line = NULL;
    k->last->next_in_line = s;
    k->last = s;
}

static struct stream *leave_line(struct sink *k)
{
    struct stream *s = k->first;
    k->first = s->next_in_line;
    if (!k->first)
        k->last = NULL;
    s->in_line = false;
    return s;
}

void sink_disown(struct sink *k)
{
    if (k->owner) {
        k->owner->overlong = k->owner->has_cr = false;
        k->owner->cut = k->open_line && k->owner->route.prefix.n;
    }
    k->owner = NULL;
}

void sink_end_line(struct sink *k)
{
    struct iovec newline = {.iov_base = (char *)"\n", .iov_len = 1};
    if (!k->open_line || k->outlet.waiting || outlet_write(&k->outlet, &newline, 1) == 0)
        return;
    sink_disown(k);
    k->open_line = false;
}

/* ---- life of a stream ---- */

static void free_if_over(struct stream *s)
{
    if (s->fd >= 0 || s->n_held || s->in_line)
        return;
    if (s->sink->owner == s)
        sink_disown(s->sink);
    struct stream_set *set = s->set;
    if (s->next)
        s->next->prev = s->prev;
    *(s->prev ? &s->prev->next : &set->first) = s->next;
    free(s);
    set->on_freed(set);
}

static void on_match(void *user, const char *line, size_t n)
{
    const struct relay_route *route = user;
    logfile_write(route->matches, route->prefix.text, route->prefix.n);
    logfile_write(route->matches, line, n);
    logfile_write(route->matches, "\n", 1);
}

/* To the log files: at once, in the order of reading. */
static void keep(struct stream *s, const char *data, size_t n)
{
    if (s->route.file)
        logfile_write(s->route.file, data, n);
    if (s->route.matches)
        sieve_add(&s->sieve, s->route.needles, data, n, on_match, &s->route);
}

static void close_files(struct stream *s)
{
    if (s->route.matches)
        sieve_finish(&s->sieve, s->route.needles, on_match, &s->route);
    logfile_close(s->route.file);
    logfile_close(s->route.matches);
    s->route.file = s->route.matches = NULL;
}

/* No more will be read; what is held goes out in its turn. */
static void stream_end(struct stream *s)
{
    close_files(s);
    watch_stop(&s->watch);
    close_fd(&s->fd);
    deadline_clear(&s->set->alarm, &s->idle);
    s->set->on_end(s);
    if (s->n_held)
        line_up(s);
}

static bool file_full(const struct stream *s)
{
    return s->route.file && !s->draining && logfile_full(s->route.file);
}

/* Reads a chunk. 0: nothing there now, no room for it, or the stream is at its end. */
static size_t stream_read(struct stream *s)
{
    size_t room = RELAY_LINE_MAX - (s->n_held < RELAY_LINE_MAX ? s->n_held : RELAY_LINE_MAX);
    if (s->fd < 0 || room == 0 || file_full(s))
        return 0;
    ssize_t n;
    do
        n = read(s->fd, s->set->chunk, room < RELAY_CHUNK_BYTES ? room : RELAY_CHUNK_BYTES);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (n <= 0) { /* a terminal's end is EIO */
        stream_end(s);
        return 0;
    }
    if ((size_t)n >= PIPE_USUAL_BYTES && !s->widened) {
        s->widened = true;
        pipe_widen(s->fd);
    }
    s->set->on_data(s, s->set->chunk, (size_t)n);
    keep(s, s->set->chunk, (size_t)n);
    return (size_t)n;
}

/* Hands the chunk on, as the outlet shall get it. */
static void pass(struct stream *s, size_t n,
                 void (*to)(struct stream *s, const char *data, size_t n))
{
    const char *data = s->set->chunk;
    if (s->route.hidden)
        return;
    if (!s->route.prefix.n) {
        to(s, data, n);
        return;
    }
    while (n) {
        size_t made = prefix_lines(&s->route.prefix, &s->mid_line, &data, &n, s->set->prefixed,
                                   STREAM_PREFIXED_BYTES);
        to(s, s->set->prefixed, made);
    }
}

/* ---- writing ---- */

/* How much of the data may go out: whole lines, or all when the line is open already. */
static size_t due_in(const struct stream *s, const char *data, size_t n)
{
    if (s->fd < 0 || s->set->flushing)
        return n;
    const char *newline = memrchr(data, '\n', n);
    if (newline)
        return (size_t)(newline + 1 - data);
    return s->sink->owner == s || s->n_held >= RELAY_LINE_MAX ? n : 0;
}

/* Follows the open line of a stream through bytes that were written. */
static void look_for_cr(struct stream *s, const char *data, size_t n)
{
    const char *newline = memrchr(data, '\n', n);
    if (newline) {
        s->has_cr = false;
        n -= (size_t)(newline + 1 - data);
        data = newline + 1;
    }
    s->has_cr |= n && memchr(data, '\r', n) != NULL;
}

static void note_written(struct stream *s, const struct iovec parts[2], size_t written)
{
    struct sink *k = s->sink;
    size_t first = written < parts[0].iov_len ? written : parts[0].iov_len;
    size_t second = written - first;
    const char *a = parts[0].iov_base, *b = parts[1].iov_base;
    k->open_line = (second ? b[second - 1] : a[first - 1]) != '\n';
    if (!k->open_line) {
        if (k->owner == s)
            sink_disown(k);
        return;
    }
    k->owner = s;
    if (first)
        look_for_cr(s, a, first);
    if (second)
        look_for_cr(s, b, second);
    if (s->overlong)
        deadline_clear(&s->set->alarm, &k->hold); /* it moves: the wait starts anew */
}

/* Writes the first from_held bytes of what is held, then fresh data; returns how much of the
 * fresh is done with. */
static size_t stream_write(struct stream *s, size_t from_held, const char *fresh, size_t from_fresh)
{
    struct sink *k = s->sink;
    bool end_line = k->open_line && k->owner != s;
    from_held += repeat_prefix(s);
    struct iovec iov[3] = {
        {.iov_base = (char *)"\n", .iov_len = end_line},
        {.iov_base = s->held ? s->held + s->held_at : NULL, .iov_len = from_held},
        {.iov_base = (char *)fresh, .iov_len = from_fresh},
    };
    size_t written = outlet_write(&k->outlet, iov, 3);
    if (end_line && written) {
        written--;
        k->open_line = false;
    }
    if (written) {
        s->impatient = false;
        note_written(s, iov + 1, written);
    }
    if (k->outlet.error) {
        sink_disown(k);
        k->open_line = false;
        if (!k->is_gone)
            deadline_in(&s->set->alarm, &k->gone, 0);
        k->is_gone = true;
    }
    size_t fresh_done = written > from_held ? written - from_held : 0;
    if (written < from_held + from_fresh) {
        outlet_wait(&k->outlet);
        line_up_first(s);
    }
    if (from_held)
        unhold(s, written - fresh_done);
    return fresh_done;
}

/* Fresh data of the stream whose turn it is, or was until a moment ago. */
static void feed(struct stream *s, const char *data, size_t n)
{
    if (s->in_line) {
        hold(s, data, n);
        return;
    }
    size_t due = due_in(s, data, n);
    if (due == 0 && s->n_held + n >= RELAY_LINE_MAX) {
        s->overlong = true;
        due = n;
    }
    size_t done = due ? stream_write(s, s->n_held, data, due) : 0;
    hold(s, data + done, n - done);
}

/* ---- turns ---- */

static void stream_rest(struct stream *s)
{
    bool reading = s->fd >= 0 && !s->in_line;
    if (reading && s->n_held)
        deadline_in(&s->set->alarm, &s->idle, RELAY_IDLE_MS);
    else
        deadline_clear(&s->set->alarm, &s->idle);
    free_if_over(s);
}

/* Makes polling match the state; last thing that is done to a stream, which may be freed here. */
static void stream_settle(struct stream *s)
{
    bool reading = s->fd >= 0 && !s->in_line && !s->set->closing && !file_full(s);
    if (reading != s->polling && s->fd >= 0) {
        watch_pause(s->watch, !reading);
        s->polling = reading;
    }
    stream_rest(s);
}

/* What the last turn could not write, or else one more chunk. */
static void take_turn(struct stream *s)
{
    char *held = s->held ? s->held + s->held_at : NULL;
    size_t due = held ? due_in(s, held, s->n_held) : 0;
    if (due) {
        stream_write(s, due, NULL, 0);
        return;
    }
    size_t n = s->set->flushing ? 0 : stream_read(s);
    if (n) {
        s->impatient = false;
        pass(s, n, feed);
    } else if (s->impatient && s->fd >= 0 && s->n_held) {
        stream_write(s, s->n_held, NULL, 0);
    }
}

static bool must_yield(const struct sink *k)
{
    return k->set->flushing || (k->owner->has_cr && !k->owner->overlong);
}

void sink_settle(struct sink *k)
{
    while (k->first && !k->outlet.waiting) {
        if (k->owner && k->owner != k->first) {
            if (!must_yield(k))
                break;
            sink_disown(k);
        }
        struct stream *s = leave_line(k);
        take_turn(s);
        stream_settle(s);
    }
    if (!k->first || !k->owner || k->outlet.waiting)
        deadline_clear(&k->set->alarm, &k->hold);
    else if (!k->hold.at)
        deadline_in(&k->set->alarm, &k->hold, RELAY_HOLD_MS);
}

static bool is_its_turn(const struct stream *s)
{
    const struct sink *k = s->sink;
    return !k->outlet.waiting && (k->owner ? k->owner == s : !k->first);
}

static void on_readable(void *user)
{
    struct stream *s = user;
    struct sink *k = s->sink;
    for (unsigned i = 0; i < READS_PER_WAKE && s->fd >= 0; i++) {
        if (!s->route.hidden && !is_its_turn(s)) {
            line_up(s);
            break;
        }
        size_t n = stream_read(s);
        if (n)
            pass(s, n, feed);
        if (n < RELAY_CHUNK_BYTES)
            break;
    }
    stream_settle(s);
    sink_settle(k);
}

static void on_writable(struct outlet *o)
{
    sink_settle(CONTAINER_OF(o, struct sink, outlet));
}

/* ---- ends ---- */

static size_t orphaned_bytes(const struct stream_set *set)
{
    size_t bytes = 0;
    for (const struct stream *s = set->first; s; s = s->next)
        bytes += s->fd < 0 ? s->n_held : 0;
    return bytes;
}

void stream_drain(struct stream *s)
{
    size_t n, total = 0;
    s->draining = true;
    while (total < ORPHANED_MAX && (n = stream_read(s)) > 0) {
        total += n;
        if (orphaned_bytes(s->set) + s->n_held < ORPHANED_MAX)
            pass(s, n, hold);
        else if (!s->route.hidden)
            s->set->dropped += n;
    }
    if (s->fd >= 0)
        stream_end(s);
    stream_settle(s);
}

void stream_discard(struct stream *s)
{
    unhold(s, s->n_held);
    if (s->fd >= 0)
        stream_end(s);
    stream_settle(s);
}

void sink_drop(struct sink *k)
{
    while (k->first) {
        struct stream *s = leave_line(k);
        k->set->dropped += s->n_held;
        unhold(s, s->n_held);
        stream_settle(s);
    }
}

/* ---- beginnings ---- */

int stream_create(struct stream **ret, struct stream_set *set, struct sink *sink, unsigned rank,
                  enum relay_stream_kind kind, int fd, const struct relay_route *route)
{
    AUTO_FD mine = fd;
    struct stream *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->watch = watch_start(set->alarm.timer.loop, mine, on_readable, s);
    if (!s->watch) {
        int rc = -errno;
        free(s);
        return rc;
    }
    s->polling = true;
    s->set = set;
    s->sink = sink;
    s->rank = rank;
    s->kind = kind;
    s->fd = take_fd(&mine);
    s->route = *route;
    logfile_ref(s->route.file);
    logfile_ref(s->route.matches);
    s->next = set->first;
    if (s->next)
        s->next->prev = s;
    set->first = s;
    stream_settle(s);
    *ret = s;
    return 0;
}

void stream_lose_patience(struct stream *s)
{
    s->impatient = true;
    line_up(s);
    stream_settle(s);
}

void stream_resume(struct stream *s)
{
    stream_settle(s);
}

int sink_init(struct sink *k, struct stream_set *set, int fd, struct err *err)
{
    k->set = set;
    return outlet_init(&k->outlet, set->alarm.timer.loop, fd, on_writable, err);
}
