/* SPDX-License-Identifier: MIT */
/* See known.h. Logs may have many GB: four bytes decide at nearly every place that no row begins there. */
#include "known.h"

#include <stdint.h>
#include <string.h>

#define GAP "..."

/* ---- one line ---- */

/* A bit for the hash of four bytes that some sign begins with; filled at the first use. */
static uint64_t begins[65536 / 64];
static bool begins_filled;

static unsigned hash_at(const char *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word * 2654435761u >> 16;
}

static void fill_begins(void)
{
    for (size_t i = 0; i < KNOWN_N; i++)
        for (unsigned k = 0; k < KNOWN_SIGNS && KNOWN[i].signs[k]; k++) {
            unsigned hash = hash_at(KNOWN[i].signs[k]);
            begins[hash / 64] |= 1ull << hash % 64;
        }
    begins_filled = true;
}

static size_t part_length(const char *sign)
{
    const char *gap = strstr(sign, GAP);
    return gap ? (size_t)(gap - sign) : strlen(sign);
}

/* The sign's first part stands at `at`, the others come after it. */
static bool stands_at(const char *sign, const char *at, const char *end)
{
    size_t n = part_length(sign);
    if ((size_t)(end - at) < n || memcmp(at, sign, n) != 0)
        return false;
    while (sign[n]) {
        at += n;
        sign += n + sizeof GAP - 1;
        n = part_length(sign);
        at = memmem(at, (size_t)(end - at), sign, n);
        if (!at)
            return false;
    }
    return true;
}

static bool begins_at(const struct known *known, const char *at, const char *end)
{
    for (unsigned k = 0; k < KNOWN_SIGNS && known->signs[k]; k++)
        if (stands_at(known->signs[k], at, end))
            return true;
    return false;
}

const struct known *known_of_line(const char *line, size_t n)
{
    const char *end = line + n;
    size_t best = KNOWN_N;
    if (!begins_filled)
        fill_begins();
    for (const char *at = line; end - at >= 4; at++) {
        unsigned hash = hash_at(at);
        if (!(begins[hash / 64] >> hash % 64 & 1))
            continue;
        for (size_t i = 0; i < best; i++)
            if (begins_at(&KNOWN[i], at, end))
                best = i;
    }
    return best < KNOWN_N ? &KNOWN[best] : NULL;
}

/* ---- the one reason ---- */

/* What NCCL warns of stands behind its marker. */
static void note_warning(struct known_reason *reason, const char *line, size_t n)
{
    static const char marker[] = "NCCL WARN ";
    const char *at = memmem(line, n, marker, sizeof marker - 1);
    if (!at)
        return;
    reason->warning = at + sizeof marker - 1;
    reason->warning_n = n - (size_t)(reason->warning - line);
}

struct known_reason known_of_text(const char *text, size_t n)
{
    struct known_reason reason = {0};
    const struct known *telling = NULL;
    for (const char *end = text + n, *next; text < end; text = next + 1) {
        next = memchr(text, '\n', (size_t)(end - text));
        next = next ? next : end;
        const struct known *known = known_of_line(text, (size_t)(next - text));
        if (!reason.known && !(known && known->vague))
            note_warning(&reason, text, (size_t)(next - text));
        if (!known || (telling && reason.known))
            continue;
        if (!known->vague)
            telling = known;
        else if (!reason.known)
            reason.known = known;
    }
    if (telling || !reason.known)
        return (struct known_reason){.known = telling};
    return reason;
}

void known_put_json(struct json_members *m, const struct known *known)
{
    json_text(m, "name", known->name);
    json_text(m, "cause", known->cause);
    json_text(m, "fix", known->fix);
    json_text(m, "reference", known->reference);
}
