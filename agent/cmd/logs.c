/* SPDX-License-Identifier: MIT */
/* launch logs and attach: what a running job has written, and what it writes. */
#include "../../proto/status.h"
#include "../clean.h"
#include "../detach.h"
#include "../follow.h"
#include "../log.h"
#include "control.h"
#include "words.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define TAIL_BYTES 4096 /* what attach and logs -f begin with */
#define PATH_BYTES (PATH_MAX + 64)

static const char *const STREAMS[] = {"stdout", "stderr"};

/* Root looks at somebody else's. */
static bool is_foreign(const struct client_job *job)
{
    return job->uid != geteuid();
}

static int begin(struct follow *f, const struct client_job *job, bool forever, struct err *err)
{
    int rc = follow_init(f, forever, err);
    if (rc == 0 && is_foreign(job))
        follow_distrust(f, job->uid);
    return rc;
}

/* ---- log files ---- */

struct reading {
    struct client_job *job;
    const struct words *words;
    struct follow follow;
    uint32_t attempt;
};

/* The files of the present attempt; those of ranks that write none are not there. */
static void add_files(struct reading *r)
{
    uint32_t first = r->words->rank < 0 ? 0 : (uint32_t)r->words->rank;
    uint32_t end = r->words->rank < 0 ? r->job->job.world_size : first + 1;
    off_t tail = r->words->given & WORD_FOLLOW ? TAIL_BYTES : -1;
    for (uint32_t rank = first; rank < end; rank++)
        for (size_t i = 0; i < ARRAY_LEN(STREAMS); i++) {
            char path[PATH_BYTES], title[64];
            snprintf(path, sizeof path, "%s/attempt_%" PRIu32 "/%" PRIu32 "/%s.log",
                     r->job->job.log_dir, r->attempt, rank, STREAMS[i]);
            snprintf(title, sizeof title, "rank %" PRIu32 ", %s", rank, STREAMS[i]);
            (void)!follow_add(&r->follow, path, title, tail);
        }
}

static bool has_attempt(const struct reading *r, uint32_t attempt)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/attempt_%" PRIu32, r->job->job.log_dir, attempt);
    return access(path, F_OK) == 0;
}

static int open_attempt(struct reading *r, struct err *err)
{
    bool forever = r->words->given & WORD_FOLLOW;
    follow_finish(&r->follow);
    int rc = begin(&r->follow, r->job, forever, err);
    if (rc < 0)
        return rc;
    follow_directory(&r->follow, r->job->job.log_dir);
    add_files(r);
    return 0;
}

/* Until the job ends; whatever it starts again. */
static int follow_job(struct reading *r, struct err *err)
{
    bool over = false;
    while (follow_copy(&r->follow) && !over) {
        over = follow_wait(&r->follow, r->job->fd);
        if (!has_attempt(r, r->attempt + 1))
            continue;
        /* The old ones to their end; the new ones are all there once the job says that it runs. */
        if (!follow_copy(&r->follow))
            return 0;
        r->attempt++;
        if (!over && client_ask(r->job, WIRE_DESCRIBE, WIRE_ALL_RANKS, 0, NULL, NULL, err) < 0)
            over = true;
        int rc = open_attempt(r, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- without log files ---- */

struct tails {
    const struct client_job *job;
    bool any;
};

static void print_tail(void *user, const union wire_packet *packet)
{
    const struct wire_output *o = &packet->output;
    char text[WIRE_OUTPUT_BYTES];
    struct tails *t = user;
    if (packet->head.kind != WIRE_OUTPUT || o->n == 0)
        return;
    printf("%s==> rank %" PRIu32 ", %s <==\n", t->any ? "\n" : "", o->rank,
           STREAMS[o->stream == 2 ? 1 : 0]);
    memcpy(text, o->text, o->n);
    if (is_foreign(t->job))
        clean_lines(text, o->n);
    fwrite(text, 1, o->n, stdout);
    t->any = true;
}

static int show_tails(struct client_job *job, const struct words *words, struct err *err)
{
    static const char hint[] = "--log-dir with --tee=3 makes some";
    const char *id = job->job.run_id;
    struct tails tails = {.job = job};
    if (!(job->job.flags & WIRE_JOB_PIPED))
        return err_set(err, -EINVAL,
                       "job %s has no log files, and its worker writes to launch's own stdout and "
                       "stderr (%s)",
                       id, hint);
    if (words->given & WORD_FOLLOW)
        return err_set(err, -EINVAL, "job %s has no log files to follow (%s)", id, hint);
    log_info("job %s has no log files (%s); these are the last lines of each rank", id, hint);
    return client_ask(job, WIRE_SHOW_OUTPUT, words->rank, 0, print_tail, &tails, err);
}

static int show_logs(struct reading *r, struct err *err)
{
    const struct wire_job *job = &r->job->job;
    if (r->words->rank >= (int64_t)job->world_size)
        return err_set(err, -ERANGE, "job %s: there is no rank %d, the job has %" PRIu32 " workers",
                       job->run_id, r->words->rank, job->world_size);
    int rc = job->log_dir[0] ? open_attempt(r, err) : 0;
    if (rc < 0)
        return rc;
    if (r->follow.n == 0)
        return show_tails(r->job, r->words, err);
    if (r->words->given & WORD_FOLLOW)
        return follow_job(r, err);
    follow_copy(&r->follow);
    return 0;
}

int cmd_logs(int argc, char **argv)
{
    struct words words;
    struct client_job job;
    struct err err;
    int exit_code = words_open(&words, argc, argv, WORD_RANK | WORD_FOLLOW, &job);
    if (exit_code >= 0)
        return exit_code;
    struct reading r = {
        .job = &job, .words = &words, .follow = {.notify_fd = -1}, .attempt = job.job.restarts};
    int rc = show_logs(&r, &err);
    follow_finish(&r.follow);
    client_close(&job);
    return rc >= 0 ? EXIT_CODE_OK : words_tell(&err);
}

/* ---- attach ---- */

/* Ends as the job does. Returns its exit code. */
static int follow_console(struct client_job *job, struct follow *f, struct err *err)
{
    while (follow_copy(f) && !follow_wait(f, job->fd))
        continue;
    int code = client_take_end(job, err);
    follow_copy(f);
    return code;
}

static int attach(struct client_job *job, struct err *err)
{
    char path[PATH_BYTES];
    struct follow f;
    if (!(job->job.flags & WIRE_JOB_DETACHED))
        return err_set(err, -EINVAL,
                       "job %s writes where it was started, and to no console.log (--detach with a "
                       "log directory does that); launch logs may show more",
                       job->job.run_id);
    snprintf(path, sizeof path, "%s/" DETACH_CONSOLE, job->job.log_dir);
    int rc = begin(&f, job, true, err);
    if (rc < 0)
        return rc;
    rc = follow_add(&f, path, NULL, TAIL_BYTES);
    if (rc < 0)
        err_set_errno(err, rc, "%s", path);
    if (rc == 0)
        rc = client_send(job, WIRE_WAIT, WIRE_ALL_RANKS, 0, err);
    if (rc == 0)
        rc = follow_console(job, &f, err);
    follow_finish(&f);
    return rc;
}

int cmd_attach(int argc, char **argv)
{
    struct words words;
    struct client_job job;
    struct err err;
    int exit_code = words_open(&words, argc, argv, 0, &job);
    if (exit_code >= 0)
        return exit_code;
    int rc = attach(&job, &err);
    client_close(&job);
    return rc >= 0 ? rc : words_tell(&err);
}
