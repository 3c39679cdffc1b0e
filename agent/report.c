/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <stdio.h>
#include <string.h>

#define TAIL_LINES 10
#define LINE_BYTES 200

bool failure_equal(const struct failure *a, const struct failure *b)
{
    return a->happened && b->happened && a->reason == b->reason && a->exit_code == b->exit_code;
}

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

/* Terminal controls in another program's output are shown as '?'; tabs stay. */
static void put_line(FILE *out, const char *line, size_t n)
{
    fputs("launch:   | ", out);
    for (size_t i = 0; i < n && i < LINE_BYTES; i++) {
        unsigned char c = (unsigned char)line[i];
        fputc((c < ' ' && c != '\t') || c == 127 ? '?' : c, out);
    }
    fputs(n > LINE_BYTES ? "...\n" : "\n", out);
}

static void put_tail(FILE *out, const char *tail, size_t n)
{
    const char *end = tail + n;
    fputs("launch:   its last lines on stderr:\n", out);
    for (const char *line = last_lines(tail, n, TAIL_LINES); line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            stop = end;
        put_line(out, line, (size_t)(stop - line));
        line = stop + 1;
    }
}

/* Lines of ours, made of printable text. */
static void put_evidence(FILE *out, const char *text)
{
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        fprintf(out, "launch:   %.*s\n", (int)n, text);
    }
}

char *report_text(const struct failure *f, const char *program, uint32_t world_size,
                  uint32_t stopped, const char *tail, size_t tail_n, const char *next,
                  size_t *ret_n)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_n);
    if (!out)
        return NULL;
    if (f->has_rank)
        fprintf(out, "launch: %s: rank %u of %u failed first: it %s (pid %d, after %.1f s)\n",
                program, f->rank, world_size, f->what, (int)f->pid, f->after_s);
    else
        fprintf(out, "launch: %s: %s\n", program, f->what);
    if (f->error[0])
        fprintf(out, "launch:   it said: %s\n", f->error);
    if (f->evidence)
        put_evidence(out, f->evidence);
    if (tail && tail_n)
        put_tail(out, tail, tail_n);
    if (stopped)
        fprintf(out, "launch:   the other %u rank%s still running %s ended because of it\n",
                stopped, stopped == 1 ? "" : "s", stopped == 1 ? "was" : "were");
    if (next)
        fprintf(out, "launch:   %s\n", next);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
