/* SPDX-License-Identifier: MIT */
#include "hang_report.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define LIST_BYTES 80

void hang_report_list(const bool *flags, uint32_t n, char *text, size_t size)
{
    size_t used = 0;
    unsigned listed = 0;
    uint32_t total = 0;
    for (uint32_t i = 0; i < n; i++)
        total += flags[i];
    used = (size_t)snprintf(text, size, "rank%s ", total == 1 ? "" : "s");
    for (uint32_t i = 0; i < n; i++) {
        if (!flags[i])
            continue;
        uint32_t last = i;
        while (last + 1 < n && flags[last + 1])
            last++;
        if (used + 32 > size) {
            snprintf(text + used, size - used, ", ...");
            return;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%u", listed++ ? ", " : "", i);
        if (last > i)
            used +=
                (size_t)snprintf(text + used, size - used, "%s%u", last > i + 1 ? "-" : ", ", last);
        i = last;
    }
}

/* ---- what a rank does, in words ---- */

/* The helper's memory: copied before it is believed. */
struct look {
    unsigned parts;
    struct evidence_proc proc;
    struct stacks stacks;
};

static void end_texts(struct look *l)
{
    l->proc.name[sizeof l->proc.name - 1] = '\0';
    l->proc.wait[sizeof l->proc.wait - 1] = '\0';
    l->proc.call[sizeof l->proc.call - 1] = '\0';
    l->stacks.why[sizeof l->stacks.why - 1] = '\0';
    l->stacks.n = l->stacks.n < STACKS_MAX ? l->stacks.n : STACKS_MAX;
    for (unsigned i = 0; i < STACKS_MAX; i++)
        l->stacks.stack[i].text[STACKS_TEXT_BYTES - 1] = '\0';
}

static void copy_look(struct look *l, const struct evidence_rank *rank)
{
    memset(l, 0, sizeof *l);
    if (!rank)
        return;
    l->parts = atomic_load_explicit(&rank->parts, memory_order_acquire);
    if (l->parts >= 1)
        l->proc = rank->proc;
    if (l->parts >= 2)
        l->stacks = rank->stacks;
    end_texts(l);
}

static const char *state_text(const struct evidence_proc *p)
{
    if (p->core)
        return "writes a core dump";
    switch (p->state) {
    case 'R':
        return "runs on a CPU";
    case 'S':
        return "sleeps";
    case 'D':
        return "sleeps in the kernel and can't be killed (state D)";
    case 'T':
        return "is stopped (state T)";
    case 't':
        return "is stopped by a debugger";
    case 'Z':
        return "has ended, its threads have not (zombie)";
    case 'I':
        return "is idle";
    default:
        return "can't be looked at";
    }
}

static void put_counters(FILE *out, const struct hang_rank *r)
{
    const struct hang_facts *f = &r->seen;
    if (f->stage != STAGE_NONE && f->stage != STAGE_RUNNING)
        fprintf(out, "%s, ", stage_text(f->stage));
    if (f->step)
        fprintf(out, "step %" PRIu64 ", ", f->step);
    if (f->entered > f->finished)
        fprintf(out, "in collective %" PRIu64 ", ", f->finished + 1);
    else if (f->finished)
        fprintf(out, "%" PRIu64 " collectives finished, ", f->finished);
}

static void put_proc(FILE *out, const struct evidence_proc *p)
{
    fputs(state_text(p), out);
    if (p->state == 'R' || p->state == '?')
        return;
    if (p->call[0] && strcmp(p->call, "running") != 0)
        fprintf(out, " in %s", p->call);
    if (p->wait[0])
        fprintf(out, "%s%s%s", p->call[0] ? " (" : " in ", p->wait, p->call[0] ? ")" : "");
}

/* Everything that makes ranks alike, as one text. */
static void describe(const struct hang *h, uint32_t rank, const struct look *l, char *text,
                     size_t size)
{
    text[0] = '\0';
    FILE *out = fmemopen(text, size, "w");
    if (!out)
        return;
    put_counters(out, &h->ranks[rank]);
    if (l->parts >= 1)
        put_proc(out, &l->proc);
    else
        fputs("not looked at", out);
    if (l->stacks.n)
        fprintf(out, "\n  main thread: %s", l->stacks.stack[0].text);
    fclose(out);
}

/* ---- the text ---- */

#define PLACE_BYTES (STACKS_TEXT_BYTES + 300)

static bool is_alive(const struct hang *h, uint32_t rank)
{
    return h->ranks[rank].seen.alive;
}

static void put_others(FILE *out, const struct stacks *s)
{
    uint32_t shown = s->n ? s->stack[0].threads : 0;
    for (uint32_t i = 1; i < s->n; i++) {
        fprintf(out, "  %u other thread%s: %s\n", s->stack[i].threads,
                s->stack[i].threads == 1 ? "" : "s", s->stack[i].text);
        shown += s->stack[i].threads;
    }
    if (s->n && s->threads > shown)
        fprintf(out, "  and %u more threads\n", s->threads - shown);
}

/* One line or two for `rank` and all behind it that are in the same place. */
static void put_group(FILE *out, const struct hang *h, const struct evidence_rank *ranks,
                      uint32_t rank, bool *told, bool *same)
{
    char place[PLACE_BYTES], other[PLACE_BYTES], list[LIST_BYTES];
    struct look look;
    copy_look(&look, ranks ? &ranks[rank] : NULL);
    describe(h, rank, &look, place, sizeof place);
    memset(same, 0, h->n * sizeof *same);
    for (uint32_t i = 0; i < h->n; i++) {
        if (told[i] || !is_alive(h, i))
            continue;
        copy_look(&look, ranks ? &ranks[i] : NULL);
        describe(h, i, &look, other, sizeof other);
        same[i] = told[i] = strcmp(place, other) == 0;
    }
    hang_report_list(same, h->n, list, sizeof list);
    fprintf(out, "%s: %s\n", list, place);
}

static void put_groups(FILE *out, const struct hang *h, const struct hang_verdict *v,
                       const struct evidence_rank *ranks, bool *told, bool *same)
{
    struct look look;
    put_group(out, h, ranks, v->rank, told, same);
    copy_look(&look, ranks ? &ranks[v->rank] : NULL);
    put_others(out, &look.stacks);
    if (ranks && look.parts == 1)
        fputs("  no stack: there was no time\n", out);
    else if (look.parts == 2 && look.stacks.n == 0)
        fprintf(out, "  no stack: %s\n", look.stacks.why);
    if (look.parts >= 1 && strncmp(look.proc.name, "python", 6) == 0)
        fprintf(out, "  (Python's own frames: `py-spy dump --pid %d` while it hangs)\n",
                (int)look.proc.pid);
    unsigned groups = 1, left = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        if (told[i] || !is_alive(h, i))
            continue;
        if (groups++ < HANG_REPORT_GROUPS)
            put_group(out, h, ranks, i, told, same);
        else
            left++;
    }
    if (left)
        fprintf(out, "%u more ranks are elsewhere\n", left);
}

static void put_early(FILE *out, const struct hang *h, bool *flags)
{
    char list[LIST_BYTES];
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        flags[i] = !is_alive(h, i) && h->ranks[i].seen.ended_well;
        n += flags[i];
    }
    if (n == 0)
        return;
    hang_report_list(flags, h->n, list, sizeof list);
    fprintf(out, "%s ended early with 0; do the others wait for %s?\n", list,
            n == 1 ? "it" : "them");
}

char *hang_report(const struct hang *h, const struct hang_verdict *verdict,
                  const struct evidence_rank *ranks, const char *why,
                  const struct notify_rank *notes)
{
    char *text = NULL;
    size_t n;
    bool *told = calloc(h->n, sizeof *told), *same = calloc(h->n, sizeof *same);
    FILE *out = told && same ? open_memstream(&text, &n) : NULL;
    if (out) {
        put_early(out, h, same);
        if (notes && notes[verdict->rank].status[0])
            fprintf(out, "its last STATUS: %s%s\n", notes[verdict->rank].status,
                    notes[verdict->rank].stopping ? " (it was stopping)" : "");
        if (ranks)
            put_groups(out, h, verdict, ranks, told, same);
        else
            fprintf(out, "no evidence could be taken: %s\n", why ? why : "?");
        if (fclose(out) != 0) {
            free(text);
            text = NULL;
        }
    }
    free(told);
    free(same);
    return text;
}
