/* SPDX-License-Identifier: MIT */
/* See logs.h. The run's directory is opened once; everything in it is reached from there. Must never know
 * processes, nor how lines or files are written. */
#include "logs.h"

#include "../proto/env.h"
#include "log.h"
#include "logdir.h"
#include "spawn.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define CLOSE_MS 1000
#define NAME_BYTES 96 /* "attempt_4294967295/4095/stdout.log" */

struct logs_rank {
    struct relay_route route[RELAY_KINDS_N];
    char *error_path;   /* owned; NULL: none */
    int error_fd;       /* owned: without a directory, the file itself */
    bool has_directory; /* in this attempt */
};

static const char *const KIND_NAMES[RELAY_KINDS_N] = {"stdout", "stderr"};

/* ---- what is asked for ---- */

static bool is_on(const struct rankmap *map, uint32_t rank, enum relay_stream_kind kind)
{
    return rankmap_get(map, rank) & RANKMAP_STDOUT << kind;
}

static bool has_file(const struct logs *logs, uint32_t rank, enum relay_stream_kind kind)
{
    return is_on(&logs->spec->redirects, rank, kind) || is_on(&logs->spec->tee, rank, kind);
}

/* The rank's streams go through the relay as they are. */
static bool is_plain(const struct logs *logs, uint32_t rank)
{
    const struct rankmap *shown = &logs->spec->shown_ranks;
    return !rankmap_get(&logs->spec->redirects, rank) && !rankmap_get(&logs->spec->tee, rank) &&
           (!shown->listed || rankmap_get(shown, rank));
}

static bool wants_files(const struct logs *logs)
{
    for (uint32_t rank = 0; rank < logs->world_size; rank++)
        if (rankmap_get(&logs->spec->redirects, rank) || rankmap_get(&logs->spec->tee, rank))
            return true;
    return false;
}

static bool wants_no_directory(const struct job_spec *spec)
{
    return spec->log_dir && strcmp(spec->log_dir, "/dev/null") == 0;
}

/* A map that a script uses for machines of several sizes is no error. */
static void warn_of_absent_ranks(const struct logs *logs)
{
    const struct job_spec *spec = logs->spec;
    const struct {
        const char *name;
        const struct rankmap *map;
    } MAPS[] = {{"redirects", &spec->redirects},
                {"tee", &spec->tee},
                {"local-ranks-filter", &spec->shown_ranks}};
    for (size_t i = 0; i < ARRAY_LEN(MAPS); i++)
        if (MAPS[i].map->listed > logs->world_size)
            log_warn("--%s: there is no rank %u, the job has %u worker%s", MAPS[i].name,
                     MAPS[i].map->listed - 1, logs->world_size, logs->world_size == 1 ? "" : "s");
}

static void warn_of_idle_filters(const struct logs *logs)
{
    const char *const filters[] = {logs->spec->stdout_filters, logs->spec->stderr_filters};
    for (enum relay_stream_kind kind = 0; kind < RELAY_KINDS_N; kind++) {
        uint32_t rank = 0;
        while (filters[kind] && rank < logs->world_size && !is_on(&logs->spec->tee, rank, kind))
            rank++;
        if (filters[kind] && rank == logs->world_size)
            log_warn("--duplicate-%s-filters finds nothing: no rank has --tee=%u",
                     kind == RELAY_STDOUT ? "stdout" : "stderr", RANKMAP_STDOUT << kind);
    }
}

static int make_routes(struct logs *logs, struct err *err)
{
    const char *template = getenv(ENV_LINE_PREFIX);
    for (uint32_t rank = 0; rank < logs->world_size; rank++) {
        struct logs_rank *r = &logs->ranks[rank];
        bool shown = !logs->spec->shown_ranks.listed || rankmap_get(&logs->spec->shown_ranks, rank);
        for (enum relay_stream_kind kind = 0; kind < RELAY_KINDS_N; kind++) {
            struct relay_route *route = &r->route[kind];
            bool tee = is_on(&logs->spec->tee, rank, kind);
            int rc = !tee ? 0
                          : prefix_make(&route->prefix, template && *template ? template : NULL,
                                        logs->spec->role, rank, err);
            if (rc < 0)
                return rc;
            route->hidden = !shown || (!tee && is_on(&logs->spec->redirects, rank, kind));
            route->needles = &logs->needles[kind];
        }
    }
    return 0;
}

/* ---- before anything starts ---- */

static int open_parent(struct logs *logs, char **ret_path, int *ret_fd, struct err *err)
{
    const char *given = logs->spec->log_dir, *tmp = getenv("TMPDIR");
    AUTO_FREE char *path = NULL, *name = NULL;
    AUTO_FD fd = -1;
    if (given) {
        int rc = logdir_open(given, ret_path, ret_fd, err);
        return rc < 0 ? err_wrap(err, rc, "--log-dir") : 0;
    }
    int rc = logdir_open(tmp && *tmp ? tmp : "/tmp", &path, &fd, err);
    if (rc == 0)
        rc = logdir_create(fd, path, "launch", &name, ret_fd, err);
    if (rc < 0)
        return err_wrap(err, rc, "log files (--log-dir says where else)");
    logs->announce = true;
    return asprintf(ret_path, "%s/%s", path, name) < 0 ? err_set(err, -ENOMEM, "no memory") : 0;
}

static int make_directory(struct logs *logs, struct err *err)
{
    AUTO_FREE char *parent = NULL, *name = NULL;
    AUTO_FD fd = -1;
    int rc = open_parent(logs, &parent, &fd, err);
    if (rc < 0)
        return rc;
    rc = logdir_create(fd, parent, logs->spec->run_id, &name, &logs->dir_fd, err);
    if (rc < 0)
        return err_wrap(err, rc, "--log-dir");
    if (asprintf(&logs->dir, "%s/%s", parent, name) < 0) {
        logs->dir = NULL;
        return err_set(err, -ENOMEM, "no memory");
    }
    return 0;
}

int logs_prepare(struct logs *logs, const struct job_spec *spec, uint32_t world_size,
                 struct err *err)
{
    *logs = (struct logs){.spec = spec, .world_size = world_size, .dir_fd = -1};
    logs->ranks = calloc(world_size, sizeof *logs->ranks);
    if (!logs->ranks || needles_init(&logs->needles[RELAY_STDOUT], spec->stdout_filters) < 0 ||
        needles_init(&logs->needles[RELAY_STDERR], spec->stderr_filters) < 0)
        return err_set_errno(err, -ENOMEM, "log files of %u ranks", world_size);
    for (uint32_t rank = 0; rank < world_size; rank++)
        logs->ranks[rank].error_fd = -1;
    int rc = make_routes(logs, err);
    if (rc == 0 && !wants_no_directory(spec) &&
        (spec->log_dir || spec->detach || wants_files(logs)))
        rc = make_directory(logs, err);
    if (rc == 0) {
        warn_of_absent_ranks(logs);
        warn_of_idle_filters(logs);
    }
    return rc;
}

bool logs_want_relay(const struct logs *logs)
{
    return logs->world_size > 1 || !is_plain(logs, 0);
}

unsigned logs_files_per_rank(const struct logs *logs)
{
    return logs->dir && wants_files(logs) ? RELAY_KINDS_N : 0;
}

/* ---- while the job runs ---- */

static void on_room(void *user)
{
    struct logs *logs = user;
    relay_files_ready(logs->relay);
}

static void on_trouble(void *user, const char *path, int error)
{
    (void)user;
    log_warn("%s: %s; log lines are lost, the job goes on", path, strerror(-error));
}

int logs_start(struct logs *logs, uv_loop_t *loop, struct relay *relay, struct err *err)
{
    struct writer_callbacks callbacks = {
        .on_room = on_room, .on_trouble = on_trouble, .user = logs};
    logs->relay = relay;
    return logs_files_per_rank(logs) ? writer_create(&logs->writer, loop, &callbacks, err) : 0;
}

static void close_attempt(struct logs *logs)
{
    for (enum relay_stream_kind kind = 0; kind < RELAY_KINDS_N; kind++) {
        for (uint32_t rank = 0; logs->ranks && rank < logs->world_size; rank++) {
            struct relay_route *route = &logs->ranks[rank].route[kind];
            logfile_close(route->file);
            route->file = route->matches = NULL;
        }
        logfile_close(logs->matches[kind]);
        logs->matches[kind] = NULL;
    }
    for (uint32_t rank = 0; logs->ranks && rank < logs->world_size; rank++) {
        close_fd(&logs->ranks[rank].error_fd);
        free(logs->ranks[rank].error_path);
        logs->ranks[rank].error_path = NULL;
        logs->ranks[rank].has_directory = false;
    }
}

/* Tells the first reason why something of an attempt can't be made; the others are likely the same. */
static void note_missing(struct logs *logs, const char *name, bool *told)
{
    int error = -errno;
    char path[512];
    if (*told)
        return;
    *told = true;
    snprintf(path, sizeof path, "%s/%s", logs->dir, name);
    on_trouble(logs, path, error);
}

static struct logfile *open_file(struct logs *logs, const char *name, bool *told)
{
    const struct job_spec *spec = logs->spec;
    struct logfile *f = logfile_create(logs->writer, logs->dir_fd, logs->dir, name,
                                       spec->rotate_bytes, spec->rotate_keep);
    if (!f)
        note_missing(logs, name, told);
    return f;
}

static void open_rank_files(struct logs *logs, uint32_t rank, bool *told)
{
    struct logs_rank *r = &logs->ranks[rank];
    for (enum relay_stream_kind kind = 0; logs->writer && kind < RELAY_KINDS_N; kind++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "%s/%u/%s.log", logs->attempt, rank, KIND_NAMES[kind]);
        if (has_file(logs, rank, kind))
            r->route[kind].file = open_file(logs, name, told);
        if (is_on(&logs->spec->tee, rank, kind))
            r->route[kind].matches = logs->matches[kind];
    }
}

static void open_filtered(struct logs *logs, bool *told)
{
    for (enum relay_stream_kind kind = 0; logs->writer && kind < RELAY_KINDS_N; kind++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "%s/filtered_%s.log", logs->attempt, KIND_NAMES[kind]);
        if (logs->needles[kind].n)
            logs->matches[kind] = open_file(logs, name, told);
    }
}

static void open_directories(struct logs *logs, bool *told)
{
    if (mkdirat(logs->dir_fd, logs->attempt, 0700) < 0) {
        note_missing(logs, logs->attempt, told);
        return;
    }
    open_filtered(logs, told);
    for (uint32_t rank = 0; rank < logs->world_size; rank++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "%s/%u", logs->attempt, rank);
        logs->ranks[rank].has_directory = mkdirat(logs->dir_fd, name, 0700) == 0;
        if (logs->ranks[rank].has_directory)
            open_rank_files(logs, rank, told);
        else
            note_missing(logs, name, told);
    }
}

/* A name below the directory, or else a file in memory that others reach through our descriptor. */
static void make_error_file(struct logs *logs, uint32_t rank, bool may_open)
{
    struct logs_rank *r = &logs->ranks[rank];
    int n = -1;
    if (r->has_directory) {
        n = asprintf(&r->error_path, "%s/%s/%u/error.json", logs->dir, logs->attempt, rank);
    } else if (may_open) {
        r->error_fd = memfd_create("launch-error", MFD_CLOEXEC);
        if (r->error_fd >= 0)
            n = asprintf(&r->error_path, "/proc/%d/fd/%d", (int)getpid(), r->error_fd);
    }
    if (n < 0)
        r->error_path = NULL;
}

void logs_begin(struct logs *logs, uint32_t restart_count)
{
    bool told = false;
    close_attempt(logs);
    snprintf(logs->attempt, sizeof logs->attempt, "attempt_%u", restart_count);
    if (logs->dir)
        open_directories(logs, &told);
    /* Pipes and log files go first when descriptors are few. */
    bool may_open = spawn_may_open(logs->world_size, logs_files_per_rank(logs) + 1);
    for (uint32_t rank = 0; rank < logs->world_size; rank++)
        make_error_file(logs, rank, may_open);
}

void logs_renew(struct logs *logs, uint32_t rank, const char *line)
{
    struct logs_rank *r = &logs->ranks[rank];
    for (enum relay_stream_kind kind = 0; kind < RELAY_KINDS_N; kind++)
        if (r->route[kind].file)
            logfile_write(r->route[kind].file, line, strlen(line));
    if (r->error_fd >= 0 && ftruncate(r->error_fd, 0) == 0)
        return;
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%s/%u/error.json", logs->attempt, rank);
    if (r->has_directory)
        unlinkat(logs->dir_fd, name, 0);
}

const struct relay_route *logs_route(const struct logs *logs, uint32_t rank,
                                     enum relay_stream_kind kind)
{
    return &logs->ranks[rank].route[kind];
}

const char *logs_error_file(const struct logs *logs, uint32_t rank)
{
    const char *path = logs->ranks[rank].error_path;
    return path ? path : "";
}

static int open_error(const struct logs *logs, uint32_t rank)
{
    char name[NAME_BYTES];
    if (logs->ranks[rank].error_fd >= 0)
        return fcntl(logs->ranks[rank].error_fd, F_DUPFD_CLOEXEC, 0);
    if (!logs->ranks[rank].has_directory) {
        errno = ENOENT;
        return -1;
    }
    snprintf(name, sizeof name, "%s/%u/error.json", logs->attempt, rank);
    return openat(logs->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

ssize_t logs_read_error(const struct logs *logs, uint32_t rank, char *buf, size_t size)
{
    struct stat st;
    size_t used = 0;
    AUTO_FD fd = open_error(logs, rank);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -EINVAL;
    while (used < size - 1) {
        ssize_t n = pread(fd, buf + used, size - 1 - used, (off_t)used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        used += (size_t)n;
    }
    buf[used] = '\0';
    return (ssize_t)used;
}

/* ---- the end ---- */

void logs_flush(struct logs *logs, unsigned ms)
{
    if (!logs->writer)
        return;
    if (!writer_flush(logs->writer, ms))
        log_warn("%s: the disk is too slow; the last log lines are lost", logs->dir);
    uint64_t lost = writer_lost(logs->writer);
    if (lost)
        log_warn("%s: %" PRIu64 " bytes are missing in the log files", logs->dir, lost);
}

void logs_finish(struct logs *logs)
{
    close_attempt(logs);
    if (logs->writer && writer_flush(logs->writer, CLOSE_MS))
        writer_destroy(logs->writer);
    logs->writer = NULL;
    for (enum relay_stream_kind kind = 0; kind < RELAY_KINDS_N; kind++)
        needles_finish(&logs->needles[kind]);
    if (logs->ranks)
        close_fd(&logs->dir_fd);
    free(logs->dir);
    free(logs->ranks);
    *logs = (struct logs){.dir_fd = -1};
}
