/* SPDX-License-Identifier: MIT */
#include "client.h"

#include "../proto/board.h"
#include "../proto/clock.h"
#include "../proto/env.h"
#include "clean.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define ANSWER_MS 2000 /* a job that is stopped (Ctrl-Z) does not answer */
#define LISTED_MAX 8
/* Before its end: ranks and standbys, or the streams of all; of a description just that. */
#define ANSWER_PACKETS (2 * BOARD_MAX_RANKS + 1)
#define DESCRIBE_PACKETS 1

static const char *sysroot(void)
{
    const char *root = getenv(ENV_SYSROOT);
    return root ? root : "";
}

void client_close(struct client_job *job)
{
    close_fd(&job->fd);
}

void client_finish(struct client_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++)
        client_close(&jobs->job[i]);
    free(jobs->job);
    *jobs = (struct client_jobs){0};
}

/* ---- one job ---- */

/* The one who listens must be the owner of the directory, or root. */
static int check_peer(struct client_job *job, struct err *err)
{
    uid_t owner = job->place.owner;
    struct ucred peer;
    socklen_t n = sizeof peer;
    if (getsockopt(job->fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
        return err_set_errno(err, -errno, "SO_PEERCRED");
    if (peer.uid != owner && peer.uid != 0)
        return err_set(err, -EPERM, "it belongs to uid %u, in a directory of uid %u",
                       (unsigned)peer.uid, (unsigned)owner);
    job->uid = peer.uid;
    return 0;
}

static int open_job(struct client_job *job, struct err *err)
{
    struct sockaddr_un address;
    AUTO_FD directory = -1;
    job->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int rc = job->fd < 0 ? -errno : rundir_address(&job->place, &address, &directory);
    if (rc == 0 && connect(job->fd, (struct sockaddr *)&address, sizeof address) < 0)
        rc = -errno;
    if (rc == -EAGAIN)
        return err_set(err, rc, "too many ask it at once");
    if (rc == -EPROTOTYPE)
        return err_set(err, rc, "that is no launch");
    if (rc < 0)
        return err_set_errno(err, rc, "it can't be asked");
    return check_peer(job, err);
}

int client_send(struct client_job *job, enum wire_verb verb, int rank, int number, struct err *err)
{
    union wire_packet packet;
    if (job->fd < 0)
        return err_set(err, job->trouble.code, "%s", job->trouble.text);
    wire_begin(&packet, WIRE_REQUEST);
    packet.request.verb = verb;
    packet.request.rank = rank;
    packet.request.number = number;
    int rc = wire_send(job->fd, &packet);
    return rc < 0 ? err_set_errno(err, rc, "job %s", job->job.run_id) : 0;
}

static int wait_for_packet(struct client_job *job, union wire_packet *packet, uint64_t until_ns,
                           struct err *err)
{
    struct pollfd p = {.fd = job->fd, .events = POLLIN};
    for (;;) {
        uint64_t now = clock_now_ns();
        int rc = wire_receive(job->fd, packet, err);
        if (rc != -EAGAIN)
            return rc;
        if (now >= until_ns)
            return err_set(err, -ETIMEDOUT, "it does not answer (is it stopped?)");
        if (poll(&p, 1, (int)((until_ns - now) / NS_PER_MS) + 1) < 0 && errno != EINTR)
            return err_set_errno(err, -errno, "poll");
    }
}

static int take_answer(struct client_job *job, unsigned most, uint64_t until_ns,
                       void (*on_packet)(void *user, const union wire_packet *packet), void *user,
                       struct err *err)
{
    for (unsigned left = most;; left--) {
        union wire_packet packet;
        int rc = wait_for_packet(job, &packet, until_ns, err);
        if (rc < 0)
            return rc;
        if (packet.head.kind == WIRE_END)
            return packet.end.code < 0 ? err_set(err, packet.end.code, "%s", packet.end.text)
                                       : packet.end.code;
        if (left == 0)
            return err_set(err, -EPROTO, "its answer has no end");
        if (on_packet)
            on_packet(user, &packet);
    }
}

int client_ask(struct client_job *job, enum wire_verb verb, int rank, int number,
               void (*on_packet)(void *user, const union wire_packet *packet), void *user,
               struct err *err)
{
    int rc = client_send(job, verb, rank, number, err);
    if (rc == 0)
        rc = take_answer(job, ANSWER_PACKETS, clock_deadline_ns(ANSWER_MS), on_packet, user, err);
    return rc < 0 ? err_wrap(err, rc, "job %s", job->job.run_id) : rc;
}

int client_take_end(struct client_job *job, struct err *err)
{
    int rc = take_answer(job, 0, clock_deadline_ns(ANSWER_MS), NULL, NULL, err);
    return rc < 0 ? err_wrap(err, rc, "job %s", job->job.run_id) : rc;
}

/* ---- all of them ---- */

static bool has_just_ended(int rc)
{
    return rc == -EPIPE || rc == -ECONNRESET;
}

static void on_socket(void *user, const struct rundir_place *place)
{
    struct client_jobs *jobs = user;
    struct client_job job = {.fd = -1, .place = *place, .uid = place->owner};
    const char *dot = strrchr(place->name, '.');
    snprintf(job.job.run_id, sizeof job.job.run_id, "%.*s",
             dot ? (int)(dot - place->name) : (int)strlen(place->name), place->name);
    clean(job.job.run_id, sizeof job.job.run_id, job.job.run_id);
    int rc = open_job(&job, &job.trouble);
    if (rc == 0)
        rc = client_send(&job, WIRE_DESCRIBE, WIRE_ALL_RANKS, 0, &job.trouble);
    if (rc < 0)
        client_close(&job);
    if (rc == -ECONNREFUSED)
        rundir_sweep(place);
    if (rc == -ECONNREFUSED || rc == -ENOENT || has_just_ended(rc))
        return;
    if (jobs->n == jobs->room) {
        size_t room = jobs->room ? 2 * jobs->room : 16;
        struct client_job *more = realloc(jobs->job, room * sizeof *more);
        if (!more) {
            client_close(&job);
            return;
        }
        jobs->job = more;
        jobs->room = room;
    }
    jobs->job[jobs->n++] = job;
}

/* In the clear from here on: all of it may end up on a terminal. */
static void take_over(struct client_job *job, const union wire_packet *packet)
{
    const struct wire_job *from = &packet->job;
    job->job = *from;
    clean(job->job.state, sizeof job->job.state, from->state);
    clean(job->job.run_id, sizeof job->job.run_id, from->run_id);
    clean(job->job.name, sizeof job->job.name, from->name);
    clean(job->job.program, sizeof job->job.program, from->program);
    clean(job->job.gpus, sizeof job->job.gpus, from->gpus);
}

static void take_job(void *user, const union wire_packet *packet)
{
    if (packet->head.kind == WIRE_JOB)
        take_over(user, packet);
}

struct looking {
    struct client_job *job;
    struct client_look *look;
};

static void take_rank(void *user, const union wire_packet *packet)
{
    const struct looking *l = user;
    struct client_look *look = l->look;
    take_job(l->job, packet);
    if (packet->head.kind != WIRE_RANK || (look->standbys && !packet->rank.standby))
        return; /* standbys come last */
    if (look->n + look->standbys == look->room) {
        uint32_t room = look->room ? 2 * look->room : 64;
        struct wire_rank *more = realloc(look->ranks, room * sizeof *more);
        if (!more)
            return;
        look->ranks = more;
        look->room = room;
    }
    look->ranks[look->n + look->standbys] = packet->rank;
    *(packet->rank.standby ? &look->standbys : &look->n) += 1;
}

int client_look(struct client_job *job, int rank, struct client_look *look, struct err *err)
{
    look->n = look->standbys = 0;
    return client_ask(job, WIRE_LIST_RANKS, rank, 0, take_rank, &(struct looking){job, look}, err);
}

static int by_age(const void *a, const void *b)
{
    const struct client_job *x = a, *y = b;
    return x->job.age_ms != y->job.age_ms ? (x->job.age_ms < y->job.age_ms ? 1 : -1)
                                          : strcmp(x->job.run_id, y->job.run_id);
}

/* One for each job, of whoever has how many. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit); /* when that fails, socket() says so */
}

/* All have been asked before the first answer is waited for. */
void client_list(struct client_jobs *ret)
{
    *ret = (struct client_jobs){0};
    raise_descriptor_limit();
    (void)!rundir_walk(sysroot(), on_socket, ret, &ret->trouble);
    uint64_t until_ns = clock_deadline_ns(ANSWER_MS);
    size_t kept = 0;
    for (size_t i = 0; i < ret->n; i++) {
        struct client_job *job = &ret->job[i];
        if (job->fd >= 0) {
            int rc = take_answer(job, DESCRIBE_PACKETS, until_ns, take_job, job, &job->trouble);
            if (rc < 0)
                client_close(job);
            if (has_just_ended(rc))
                continue;
        }
        if (kept != i)
            ret->job[kept] = *job;
        kept++;
    }
    ret->n = kept;
    if (kept)
        qsort(ret->job, kept, sizeof *ret->job, by_age);
}

/* ---- which one is meant ---- */

static bool is_called(const struct client_job *job, const char *wanted, size_t n)
{
    return strncmp(job->job.run_id, wanted, n) == 0 || strncmp(job->job.name, wanted, n) == 0;
}

/* "night (4711), 8d0f..." of those that begin with `wanted`. */
static void list_names(const struct client_jobs *jobs, const char *wanted, size_t n, char *text,
                       size_t size)
{
    size_t used = 0, listed = 0;
    text[0] = '\0';
    for (size_t i = 0; i < jobs->n; i++) {
        const struct wire_job *job = &jobs->job[i].job;
        if (!is_called(&jobs->job[i], wanted, n) || used >= size || listed > LISTED_MAX)
            continue;
        if (listed++ == LISTED_MAX)
            (void)!snprintf(text + used, size - used, ", ...");
        else
            used += (size_t)snprintf(text + used, size - used, job->name[0] ? "%s%s (%s)" : "%s%s",
                                     listed > 1 ? ", " : "", job->run_id, job->name);
    }
}

static int tell_unknown(const struct client_jobs *jobs, const char *wanted, struct err *err)
{
    char names[300];
    size_t n = strlen(wanted);
    while (n > 0) { /* those that share the longest beginning with it are the nearest */
        list_names(jobs, wanted, --n, names, sizeof names);
        if (names[0])
            return err_set(err, -ENOENT, "no job %.64s is running; %s: %s", wanted,
                           n > 0 ? "did you mean" : "there are", names);
    }
    return err_set(err, -ENOENT, "no job %.64s is running; none is", wanted);
}

int client_pick(struct client_jobs *jobs, const char *wanted, struct client_job *ret,
                struct err *err)
{
    size_t found = jobs->n, hits = 0, n = strlen(wanted);
    /* A whole name goes before beginnings of others. */
    for (int whole = 1; whole >= 0 && hits == 0; whole--)
        for (size_t i = 0; n > 0 && i < jobs->n; i++)
            if (is_called(&jobs->job[i], wanted, n + (size_t)whole)) {
                found = i;
                hits++;
            }
    if (hits == 0 && jobs->trouble.code)
        return err_set(err, jobs->trouble.code, "%s", jobs->trouble.text);
    if (hits == 0)
        return tell_unknown(jobs, wanted, err);
    if (hits > 1) {
        char names[300];
        list_names(jobs, wanted, n, names, sizeof names);
        return err_set(err, -EEXIST, "%.64s may be any of %s: write more of it", wanted, names);
    }
    struct client_job *job = &jobs->job[found];
    if (job->trouble.code)
        return err_set(err, job->trouble.code, "job %s: %s", job->job.run_id, job->trouble.text);
    *ret = *job;
    ret->fd = take_fd(&job->fd);
    return 0;
}

int client_find(const char *wanted, struct client_job *ret, struct err *err)
{
    struct client_jobs jobs;
    client_list(&jobs);
    int rc = client_pick(&jobs, wanted, ret, err);
    client_finish(&jobs);
    return rc;
}

const char *client_again(const struct wire_job *job, char text[CLIENT_AGAIN_BYTES])
{
    int n = snprintf(text, CLIENT_AGAIN_BYTES, "%" PRIu32 " restart%s", job->restarts,
                     job->restarts == 1 ? "" : "s");
    if (job->healings)
        snprintf(text + n, CLIENT_AGAIN_BYTES - (size_t)n, ", %" PRIu32 " healing%s", job->healings,
                 job->healings == 1 ? "" : "s");
    return text;
}
