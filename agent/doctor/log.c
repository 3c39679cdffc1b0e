/* SPDX-License-Identifier: MIT */
#include "log.h"

#include "../clean.h"
#include "known.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define BUFFER_BYTES (256u * 1024u) /* a longer line is looked at piece by piece */
#define SHOWN_BYTES 240             /* of a line */
#define DEPTH_MAX 4                 /* log directory / run / attempt / rank / file */
#define BAD_MAX 8                   /* files that can't be read and are named */

/* Where a known failure is first. */
struct place {
    uint64_t count, line, order;
    char file[PATH_MAX];
    char text[SHOWN_BYTES];
};

struct scan {
    struct place *places; /* owned: KNOWN_N */
    char *buffer;         /* owned: BUFFER_BYTES */
    uint64_t files, lines, bytes, found;
    unsigned bad_n;
    struct err bad[BAD_MAX];
    const char *file; /* borrowed: the one that is read */
};

/* ---- lines ---- */

static void look_at_line(struct scan *s, const char *text, size_t n, uint64_t line)
{
    const struct known *known = known_of_line(text, n);
    if (!known)
        return;
    struct place *p = &s->places[known - KNOWN];
    if (p->count++)
        return;
    p->line = line;
    p->order = s->found++;
    snprintf(p->file, sizeof p->file, "%s", s->file);
    snprintf(p->text, sizeof p->text, "%.*s", (int)(n < SHOWN_BYTES ? n : SHOWN_BYTES), text);
    clean(p->text, sizeof p->text, p->text);
}

/* Whole lines of the first n bytes of the buffer; all of it with `end`. Returns how many bytes are used up. */
static size_t look_at_lines(struct scan *s, size_t n, bool end, uint64_t *line)
{
    const char *at = s->buffer, *stop = s->buffer + n;
    for (const char *newline; at < stop && (newline = memchr(at, '\n', (size_t)(stop - at)));
         at = newline + 1, ++*line)
        look_at_line(s, at, (size_t)(newline - at), *line);
    if (at < stop && (end || at == s->buffer)) {
        look_at_line(s, at, (size_t)(stop - at), *line);
        at = stop;
    }
    return (size_t)(at - s->buffer);
}

static int read_all(struct scan *s, int fd)
{
    uint64_t line = 1;
    size_t kept = 0;
    for (;;) {
        ssize_t n = read(fd, s->buffer + kept, BUFFER_BYTES - kept);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        kept += (size_t)n;
        s->bytes += (uint64_t)n;
        if (n > 0 && kept < BUFFER_BYTES && !memchr(s->buffer + kept - n, '\n', (size_t)n))
            continue;
        bool whole = kept > 0 && s->buffer[kept - 1] == '\n';
        size_t used = look_at_lines(s, kept, n == 0, &line);
        memmove(s->buffer, s->buffer + used, kept - used);
        kept -= used;
        if (n == 0) {
            s->lines += line - 1 + (used > 0 && !whole);
            return 0;
        }
    }
}

/* ---- files ---- */

/* A pipe is fine (/dev/fd/63 of a shell); to open one must not wait for its writer. */
static int open_log(const char *path, struct err *err)
{
    struct stat st;
    AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "%s", path);
    if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
        return err_set(err, -EINVAL, "%s: is no file with a log", path);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return take_fd(&fd);
}

static int scan_file(struct scan *s, const char *path, struct err *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    AUTO_FD owned = is_stdin ? -1 : open_log(path, err);
    if (!is_stdin && owned < 0)
        return owned;
    s->file = is_stdin ? "stdin" : path;
    int rc = read_all(s, is_stdin ? STDIN_FILENO : owned);
    if (rc < 0)
        return err_set_errno(err, rc, "%s", s->file);
    s->files++;
    return 0;
}

static void note_bad(struct scan *s, const struct err *err)
{
    if (s->bad_n < BAD_MAX)
        s->bad[s->bad_n] = *err;
    s->bad_n++;
}

/* Names as of --log-dir, of rotated files and of NCCL_DEBUG_FILE; lines of filtered_* are in the others, too. */
static bool is_log(const char *name)
{
    return strstr(name, ".log") && strncmp(name, "filtered_", 9) != 0;
}

static int no_dots(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void scan_directory(struct scan *s, const char *path, unsigned depth);

/* Links are left alone: they may lead in a circle. */
static void scan_entry(struct scan *s, const char *path, const char *name, unsigned depth)
{
    struct stat st;
    struct err err;
    if (lstat(path, &st) < 0)
        return;
    if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
        scan_directory(s, path, depth + 1);
    else if (S_ISREG(st.st_mode) && is_log(name) && scan_file(s, path, &err) < 0)
        note_bad(s, &err);
}

static void scan_directory(struct scan *s, const char *path, unsigned depth)
{
    struct dirent **entries;
    char below[PATH_MAX];
    int n = scandir(path, &entries, no_dots, versionsort);
    if (n < 0) {
        struct err err;
        err_set_errno(&err, -errno, "%s", path);
        note_bad(s, &err);
        return;
    }
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        if (snprintf(below, sizeof below, "%s/%s", path, name) < (int)sizeof below)
            scan_entry(s, below, name, depth);
        free(entries[i]);
    }
    free(entries);
}

static int scan_path(struct scan *s, const char *path, struct err *err)
{
    struct stat st;
    if (strcmp(path, "-") == 0 || stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return scan_file(s, path, err);
    scan_directory(s, path, 0);
    if (s->files == 0 && s->bad_n)
        return err_set(err, s->bad[0].code, "%s", s->bad[0].text);
    if (s->files == 0)
        return err_set(err, -ENOENT,
                       "%s: no logs are in it; RUN/attempt_0/0/stderr.log would be one "
                       "(--log-dir with --tee=3 makes some)",
                       path);
    return 0;
}

/* ---- what was found ---- */

/* Rows in the order in which they are told: causes first, each in the order of the log. */
static size_t sort_rows(const struct scan *s, size_t *rows)
{
    size_t n = 0;
    for (int vague = 0; vague <= 1; vague++)
        for (uint64_t order = 0; order < s->found; order++)
            for (size_t i = 0; i < KNOWN_N; i++)
                if (s->places[i].count && s->places[i].order == order && KNOWN[i].vague == vague)
                    rows[n++] = i;
    return n;
}

static void print_text(FILE *out, const struct scan *s, const size_t *rows, size_t n)
{
    char file[PATH_MAX], bad[ERR_TEXT_BYTES];
    for (size_t k = 0; k < n; k++) {
        const struct known *known = &KNOWN[rows[k]];
        const struct place *p = &s->places[rows[k]];
        fprintf(out, "%s:%" PRIu64 ": %s", clean(file, sizeof file, p->file), p->line, known->name);
        fprintf(out, p->count > 1 ? ", %" PRIu64 " times\n" : "\n", p->count);
        fprintf(out, "  | %s\n  %s.\n  try: %s\n", p->text, known->cause, known->fix);
        if (known->reference)
            fprintf(out, "  see: %s\n", known->reference);
    }
    for (unsigned i = 0; i < s->bad_n && i < BAD_MAX; i++)
        fprintf(out, "could not look: %s\n", clean(bad, sizeof bad, s->bad[i].text));
    if (s->bad_n > BAD_MAX)
        fprintf(out, "could not look: %u more\n", s->bad_n - BAD_MAX);
    fprintf(out, "%zu known failure%s in %" PRIu64 " file%s, %" PRIu64 " lines\n", n,
            n == 1 ? "" : "s", s->files, s->files == 1 ? "" : "s", s->lines);
}

static void print_json(FILE *out, const struct scan *s, const size_t *rows, size_t n)
{
    fprintf(out,
            "{\"files\": %" PRIu64 ", \"lines\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"known\": [",
            s->files, s->lines, s->bytes);
    for (size_t k = 0; k < n; k++) {
        const struct place *p = &s->places[rows[k]];
        struct json_members m = {.out = out, .before = k ? ",\n  {" : "\n  {", .between = ", "};
        known_put_json(&m, &KNOWN[rows[k]]);
        json_bool(&m, "vague", KNOWN[rows[k]].vague);
        json_number(&m, "count", true, (long long)p->count);
        json_text(&m, "file", p->file);
        json_number(&m, "line", true, (long long)p->line);
        json_text(&m, "text", p->text);
        fputc('}', out);
    }
    fputs("], \"could_not_look\": [", out);
    for (unsigned i = 0; i < s->bad_n && i < BAD_MAX; i++) {
        fputs(i ? ", " : "", out);
        json_put_string(out, s->bad[i].text, strlen(s->bad[i].text));
    }
    fputs("]}\n", out);
}

int doctor_log(FILE *out, const char *path, bool json, struct err *err)
{
    struct scan s = {.places = calloc(KNOWN_N, sizeof *s.places), .buffer = malloc(BUFFER_BYTES)};
    size_t *rows = calloc(KNOWN_N, sizeof *rows), n = 0;
    int rc = s.places && s.buffer && rows ? scan_path(&s, path, err)
                                          : err_set_errno(err, -ENOMEM, "%s", path);
    if (rc == 0) {
        n = sort_rows(&s, rows);
        (json ? print_json : print_text)(out, &s, rows, n);
    }
    free(rows);
    free(s.places);
    free(s.buffer);
    return rc < 0 ? rc : n > 0;
}
