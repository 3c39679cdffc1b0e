/* SPDX-License-Identifier: MIT */
#include "hang.h"

#include <inttypes.h>
#include <stdio.h>

#define LOOKS_PER_TIMEOUT 8
#define PERIOD_MIN_MS 5
#define PERIOD_MAX_MS 1000

uint64_t hang_period_ms(uint64_t timeout_ms)
{
    uint64_t ms = timeout_ms / LOOKS_PER_TIMEOUT;
    if (ms < PERIOD_MIN_MS)
        return PERIOD_MIN_MS;
    return ms < PERIOD_MAX_MS ? ms : PERIOD_MAX_MS;
}

void hang_again(struct hang *h, uint64_t now_ns)
{
    h->looked_ns = h->life_ns = now_ns;
    for (uint32_t i = 0; i < h->n; i++)
        h->ranks[i].life_ns = now_ns;
}

void hang_begin(struct hang *h, struct hang_rank *ranks, uint32_t n, uint64_t timeout_ns,
                uint64_t now_ns)
{
    *h = (struct hang){.timeout_ns = timeout_ns, .n = n, .ranks = ranks};
    for (uint32_t i = 0; i < n; i++)
        ranks[i] = (struct hang_rank){.seen = {.alive = true}};
    hang_again(h, now_ns);
}

/* Steps are counted anew in every attempt and generation: one that is there was told in this. */
void hang_seen(struct hang *h, uint32_t rank, const struct hang_facts *facts)
{
    struct hang_rank *r = &h->ranks[rank];
    r->seen = *facts;
    r->tells = r->spoke = facts->step != 0;
}

/* Half a timeout is several periods: a busy machine does not get there, a stopped process does. */
void hang_look(struct hang *h, uint64_t now_ns)
{
    uint64_t gap_max_ns = h->timeout_ns / 2 + hang_period_ms(h->timeout_ns / NS_PER_MS) * NS_PER_MS;
    if (now_ns - h->looked_ns > gap_max_ns)
        hang_again(h, now_ns);
    h->looked_ns = now_ns;
}

void hang_note(struct hang *h, uint32_t rank, const struct hang_facts *facts)
{
    struct hang_rank *r = &h->ranks[rank];
    const struct hang_facts *seen = &r->seen;
    bool told = facts->step != seen->step || facts->watchdogs != seen->watchdogs;
    bool wrote = facts->output != seen->output;
    bool counted = facts->heartbeat != seen->heartbeat || facts->entered != seen->entered ||
                   facts->finished != seen->finished || facts->stage != seen->stage;
    bool other = wrote || facts->messages != seen->messages;
    r->tells |= told;
    r->spoke |= told || wrote;
    if (told || counted || (other && !r->tells) || facts->alive != seen->alive)
        r->life_ns = h->life_ns = h->looked_ns;
    r->seen = *facts;
}

uint64_t hang_silence_ns(const struct hang *h, uint32_t rank)
{
    const struct hang_rank *r = &h->ranks[rank];
    if (!r->seen.alive)
        return 0;
    return h->looked_ns - (r->spoke ? r->life_ns : h->life_ns);
}

bool hang_hangs(const struct hang *h, uint32_t rank)
{
    return h->ranks[rank].seen.alive && hang_silence_ns(h, rank) >= h->timeout_ns;
}

bool hang_any(const struct hang *h)
{
    for (uint32_t i = 0; i < h->n; i++)
        if (hang_hangs(h, i))
            return true;
    return false;
}

/* ---- who is furthest behind ---- */

/* Compared word by word, the smallest is furthest behind; the last word that all but one had in common does
 * not matter then, the first that differs says why. */
enum word {
    WORD_STOPPED,
    WORD_JOINED,
    WORD_STEP,
    WORD_FINISHED,
    WORD_ENTERED,
    WORD_HANGS,
    WORD_SILENCE,
    WORDS_N
};

static const enum hang_why why_of[WORDS_N] = {
    [WORD_STOPPED] = HANG_STOPPED,     [WORD_JOINED] = HANG_NOT_JOINED,  [WORD_STEP] = HANG_STEP,
    [WORD_FINISHED] = HANG_COLLECTIVE, [WORD_ENTERED] = HANG_COLLECTIVE, [WORD_HANGS] = HANG_SILENT,
    [WORD_SILENCE] = HANG_SILENT,
};

/* A counter that a rank has never touched says nothing of it while it shows life otherwise. */
static uint64_t behind_with(uint64_t count, bool used, bool hangs)
{
    return used || hangs ? count : UINT64_MAX;
}

static void measure(const struct hang *h, uint32_t rank, bool stopped, uint64_t words[WORDS_N])
{
    const struct hang_facts *f = &h->ranks[rank].seen;
    bool hangs = hang_hangs(h, rank), calls = f->entered || f->finished;
    words[WORD_STOPPED] = !stopped;
    words[WORD_JOINED] = f->stage != STAGE_NONE;
    words[WORD_STEP] = behind_with(f->step, f->step != 0, hangs);
    words[WORD_FINISHED] = behind_with(f->finished, calls, hangs);
    words[WORD_ENTERED] = behind_with(f->entered, calls, hangs);
    words[WORD_HANGS] = !hangs;
    words[WORD_SILENCE] = UINT64_MAX - hang_silence_ns(h, rank);
}

/* Index of the first word that differs, WORDS_N if none does. */
static unsigned differ(const uint64_t a[WORDS_N], const uint64_t b[WORDS_N])
{
    unsigned i = 0;
    while (i < WORDS_N && a[i] == b[i])
        i++;
    return i;
}

static uint64_t highest(const struct hang *h, uint64_t (*of)(const struct hang_facts *facts))
{
    uint64_t max = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        uint64_t value = of(&h->ranks[i].seen);
        max = value > max ? value : max;
    }
    return max;
}

static uint64_t step_of(const struct hang_facts *facts)
{
    return facts->step;
}

static uint64_t entered_of(const struct hang_facts *facts)
{
    return facts->entered;
}

static uint64_t finished_of(const struct hang_facts *facts)
{
    return facts->finished;
}

/* A counter that nobody has ever touched sets ranks apart only by their silence (see behind_with()). */
static enum hang_why why_by(const struct hang *h, unsigned word)
{
    enum hang_why why = word < WORDS_N ? why_of[word] : HANG_SILENT;
    if (why == HANG_STEP && !highest(h, step_of))
        return HANG_SILENT;
    if (why == HANG_COLLECTIVE && !highest(h, entered_of) && !highest(h, finished_of))
        return HANG_SILENT;
    return why;
}

/* Why a rank was chosen: what sets it apart from any other rank, by the weightiest word. */
static enum hang_why reason_for(const struct hang *h, const bool *stopped, uint32_t rank)
{
    uint64_t chosen[WORDS_N], other[WORDS_N];
    if (stopped && stopped[rank])
        return HANG_STOPPED;
    measure(h, rank, false, chosen);
    unsigned first = WORDS_N;
    for (uint32_t i = 0; i < h->n; i++) {
        if (i == rank || !h->ranks[i].seen.alive)
            continue;
        measure(h, i, false, other);
        unsigned d = differ(chosen, other);
        first = d < first ? d : first;
    }
    return why_by(h, first);
}

struct hang_verdict hang_judge(const struct hang *h, const bool *stopped)
{
    uint32_t rank = h->n;
    uint64_t best[WORDS_N] = {0}, words[WORDS_N];
    for (uint32_t i = 0; i < h->n; i++) {
        if (!h->ranks[i].seen.alive)
            continue;
        measure(h, i, stopped && stopped[i], words);
        unsigned d = differ(words, best);
        if (rank < h->n && (d == WORDS_N || words[d] > best[d]))
            continue;
        rank = i;
        for (unsigned k = 0; k < WORDS_N; k++)
            best[k] = words[k];
    }
    if (rank == h->n)
        return (struct hang_verdict){.rank = 0, .why = HANG_SILENT};
    return (struct hang_verdict){.rank = rank, .why = reason_for(h, stopped, rank)};
}

/* ---- words ---- */

void hang_describe_why(const struct hang *h, const struct hang_verdict *v, char *text, size_t size)
{
    const struct hang_facts *f = &h->ranks[v->rank].seen;
    switch (v->why) {
    case HANG_STOPPED:
        snprintf(text, size, "is stopped by a signal (state T) and nobody continues it");
        break;
    case HANG_NOT_JOINED:
        snprintf(text, size, "hangs before launch_join(), which others have called");
        break;
    case HANG_STEP:
        snprintf(text, size, "hangs at step %" PRIu64 ", others have reached %" PRIu64, f->step,
                 highest(h, step_of));
        break;
    case HANG_COLLECTIVE:
        if (f->entered < highest(h, entered_of))
            snprintf(text, size, "hangs before collective %" PRIu64 ", which others have entered",
                     f->entered + 1);
        else
            snprintf(text, size, "hangs in collective %" PRIu64 ", others have finished %" PRIu64,
                     f->finished + 1, highest(h, finished_of));
        break;
    default:
        snprintf(text, size, "%s", hang_hangs(h, v->rank) ? "hangs" : "is waited for");
        break;
    }
}

static uint64_t longest_silence_ns(const struct hang *h)
{
    uint64_t max = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        uint64_t ns = hang_silence_ns(h, i);
        max = ns > max ? ns : max;
    }
    return max;
}

void hang_describe(const struct hang *h, const struct hang_verdict *v, char *text, size_t size)
{
    const struct hang_rank *r = &h->ranks[v->rank];
    char why[160];
    hang_describe_why(h, v, why, sizeof why);
    double silent_s = (double)longest_silence_ns(h) / NS_PER_S;
    double timeout_s = (double)h->timeout_ns / NS_PER_S;
    if (hang_hangs(h, v->rank))
        snprintf(text, size, "%s: no %s for %.1f s (--hang-timeout is %g s)", why,
                 r->tells ? "step and no heartbeat" : "sign of life (step, WATCHDOG=1, output)",
                 (double)hang_silence_ns(h, v->rank) / NS_PER_S, timeout_s);
    else
        snprintf(text, size,
                 "%s: there was no sign of life of another for %.1f s (--hang-timeout is %g s)",
                 why, silent_s, timeout_s);
}
