/* SPDX-License-Identifier: MIT */
#include "report.h"

#include "clean.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TAIL_LINES 10
#define TAIL_LINES_BESIDE 4 /* when a traceback says more */
#define LINE_BYTES 200
#define RED "\x1b[1;31m"
#define DIM "\x1b[2m"
#define PLAIN "\x1b[0m"

struct writer {
    FILE *out;
    bool colour;
    unsigned left; /* lines that may still be written */
};

bool failure_equal(const struct failure *a, const struct failure *b)
{
    return a->happened && b->happened && a->reason == b->reason && a->exit_code == b->exit_code;
}

/* ---- pieces of text ---- */

/* Start of the last `lines` lines of a text that may end without a newline. */
static const char *last_lines(const char *text, size_t n, unsigned lines)
{
    const char *at = text + n;
    if (at > text && at[-1] == '\n')
        at--;
    while (at > text) {
        if (at[-1] == '\n' && --lines == 0)
            break;
        at--;
    }
    return at;
}

/* Terminal controls in another program's text are shown as '?'; tabs stay. Returns how many bytes were too many. */
static size_t put_clean(FILE *out, const char *line, size_t n)
{
    size_t shown = n < LINE_BYTES ? n : LINE_BYTES;
    char text[LINE_BYTES];
    memcpy(text, line, shown);
    clean_lines(text, shown);
    fwrite(text, 1, shown, out);
    return n - shown;
}

/* ---- lines ---- */

/* One line of ours, "launch:   " in front of it. */
static void PRINTF_LIKE(2, 3) put_note(struct writer *w, const char *format, ...)
{
    char line[1024];
    if (w->left == 0)
        return;
    w->left--;
    va_list ap;
    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    fputs("launch:   ", w->out);
    fprintf(w->out, "%s\n", clean(line, sizeof line, line));
}

/* At most `lines` lines from the end of a block under a title; nothing for an empty one. */
static void put_block(struct writer *w, const char *title, const char *text, size_t n,
                      unsigned lines)
{
    if (n == 0 || w->left < 2)
        return;
    unsigned room = w->left - 1;
    put_note(w, "%s", title);
    const char *end = text + n;
    for (const char *line = last_lines(text, n, lines < room ? lines : room); line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            stop = end;
        fputs(w->colour ? DIM "launch:   | " : "launch:   | ", w->out);
        size_t cut = put_clean(w->out, line, (size_t)(stop - line));
        fprintf(w->out, "%s%s\n", cut ? "..." : "", w->colour ? PLAIN : "");
        w->left--;
        line = stop + 1;
    }
}

/* Lines of ours, from the first one on: it tells most. */
static void put_evidence(struct writer *w, const char *text)
{
    size_t n;
    for (; *text && w->left > 1; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        put_note(w, "%.*s", (int)n, text);
    }
    if (*text)
        put_note(w, "...");
}

static void put_headline(struct writer *w, const struct report *r)
{
    const struct failure *f = r->failure;
    fprintf(w->out, "%slaunch: ", w->colour ? RED : "");
    put_clean(w->out, r->program, strlen(r->program));
    fputs(": ", w->out);
    if (f->has_rank)
        fprintf(w->out, "rank %u of %u failed first: it %s", f->rank, r->world_size, f->what);
    else
        fputs(f->what, w->out);
    fputs(w->colour ? PLAIN : "", w->out);
    if (f->has_rank) {
        char when[32] = "";
        struct tm tm;
        if (f->at && localtime_r(&f->at, &tm))
            strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S, ", &tm);
        fprintf(w->out, " (pid %d, %safter %.1f s)", (int)f->pid, when, f->after_s);
    }
    fputc('\n', w->out);
    w->left--;
}

static void put_others(struct writer *w, const struct report *r)
{
    uint32_t shown = r->others_n < REPORT_OTHERS ? r->others_n : REPORT_OTHERS;
    for (uint32_t i = 0; i < shown; i++) {
        const struct report_other *o = &r->others[i];
        put_note(w, "rank %u %s, %.0f ms %s, probably because of it", o->rank, o->what,
                 (o->later_s < 0 ? -o->later_s : o->later_s) * 1000,
                 o->later_s < 0 ? "earlier" : "later");
    }
    if (shown < r->others_n)
        put_note(w, "and so did %u more rank%s", r->others_n - shown,
                 r->others_n - shown == 1 ? "" : "s");
    if (r->stopped)
        put_note(w, "the other %u rank%s still running %s ended because of it", r->stopped,
                 r->stopped == 1 ? "" : "s", r->stopped == 1 ? "was" : "were");
}

/* Lines that the end of the report needs; what comes before must leave them. */
static unsigned lines_of_end(const struct report *r)
{
    unsigned others = r->others_n < REPORT_OTHERS ? r->others_n : REPORT_OTHERS + 1;
    return others + (r->stopped != 0) + (r->core && *r->core) + (r->logs != NULL) +
           (r->reason.known != NULL) + (r->reason.warning != NULL) + (r->hint != NULL) +
           (r->next != NULL);
}

static void put_reason(struct writer *w, const struct known_reason *reason)
{
    const struct known *known = reason->known;
    if (!known)
        return;
    put_note(w, known->reference ? "known: %s (%s)" : "known: %s", known->cause, known->reference);
    if (!reason->warning)
        return;
    char warning[LINE_BYTES];
    snprintf(warning, sizeof warning, "%.*s", (int)reason->warning_n, reason->warning);
    put_note(w, "NCCL's last warning: %s", clean(warning, sizeof warning, warning));
}

/* Python prints what it has also left in the error file. */
static bool is_said_again(const struct report *r)
{
    const char *said = r->said->traceback, *last = last_lines(said, strlen(said), 1);
    size_t n = strcspn(last, "\n");
    const char *tail = last_lines(r->tail, r->tail_n, 1);
    size_t tail_n = (size_t)(r->tail + r->tail_n - tail);
    return n > 0 && tail_n >= n && memcmp(tail, last, n) == 0 && (tail_n == n || tail[n] == '\n');
}

static void put_texts(struct writer *w, const struct report *r)
{
    const struct errorfile *said = r->said;
    if (r->failure->error[0])
        put_note(w, "it said: %s", r->failure->error);
    else if (said && said->message[0])
        put_note(w, "it said: %.*s", (int)strcspn(said->message, "\n"), said->message);
    if (r->failure->evidence)
        put_evidence(w, r->failure->evidence);
    bool traceback = said && said->traceback[0];
    if (traceback)
        put_block(w, "its traceback:", said->traceback, strlen(said->traceback), TAIL_LINES);
    if (r->tail && !(traceback && is_said_again(r)))
        put_block(w, "its last lines on stderr:", r->tail, r->tail_n,
                  traceback ? TAIL_LINES_BESIDE : TAIL_LINES);
}

char *report_text(const struct report *r, size_t *ret_n)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_n);
    if (!out)
        return NULL;
    unsigned end = lines_of_end(r);
    struct writer w = {.out = out, .colour = r->colour, .left = REPORT_LINES - end};
    put_headline(&w, r);
    put_texts(&w, r);
    w.left = end;
    put_others(&w, r);
    if (r->core && *r->core)
        put_note(&w, "core dump: %s", r->core);
    if (r->logs)
        put_note(&w, "full logs: %s", r->logs);
    put_reason(&w, &r->reason);
    if (r->hint)
        put_note(&w, "try: %s", r->hint);
    if (r->next)
        put_note(&w, "%s", r->next);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
