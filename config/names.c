/* SPDX-License-Identifier: MIT */
/* Finds a row of the table by what a user wrote: its name, an alias, a letter, or nearly so. Must never
 * know what a row means. */
#include "fields.h"

#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 64 /* longer words are no option of ours */

static char fold(char c)
{
    return c == '_' ? '-' : c;
}

static bool same_name(const char *a, size_t a_n, const char *b, size_t b_n)
{
    size_t i = 0;
    while (i < a_n && i < b_n && fold(a[i]) == fold(b[i]))
        i++;
    return i == a_n && i == b_n;
}

/* Calls `judge` for the row's name and each alias until it returns true. */
static bool any_name(const struct field *field,
                     bool (*judge)(const char *known, size_t known_n, void *with), void *with)
{
    if (judge(field->name, strlen(field->name), with))
        return true;
    for (const char *p = field->aliases; p && *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (judge(p, n, with))
            return true;
        p += n;
    }
    return false;
}

struct wanted {
    const char *name;
    size_t n;
    size_t best; /* smallest edit distance so far */
};

static bool judge_same(const char *known, size_t known_n, void *with)
{
    const struct wanted *wanted = with;
    return same_name(known, known_n, wanted->name, wanted->n);
}

static bool judge_prefix(const char *known, size_t known_n, void *with)
{
    const struct wanted *wanted = with;
    return wanted->n <= known_n && same_name(known, wanted->n, wanted->name, wanted->n);
}

static bool same(char a, char b)
{
    return fold(a) == fold(b);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Letters that are missing, too many, wrong, or changed places with their neighbour. Both at most NAME_MAX_BYTES. */
static size_t edit_distance(const char *a, size_t a_n, const char *b, size_t b_n)
{
    unsigned char d[NAME_MAX_BYTES + 1]
                   [NAME_MAX_BYTES + 1]; /* of the first i and the first j letters */
    for (size_t i = 0; i <= a_n; i++) {
        for (size_t j = 0; j <= b_n; j++) {
            size_t cost = i + j;
            if (i > 0 && j > 0) {
                cost = d[i - 1][j - 1] + !same(a[i - 1], b[j - 1]);
                cost = least(cost, 1 + least(d[i - 1][j], d[i][j - 1]));
            }
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                cost = least(cost, d[i - 2][j - 2] + 1);
            d[i][j] = (unsigned char)cost;
        }
    }
    return d[a_n][b_n];
}

/* SIZE_MAX: too many for slips. */
static size_t slips(const char *name, size_t n, const char *known, size_t known_n)
{
    if (n < 2 || n > NAME_MAX_BYTES || known_n > NAME_MAX_BYTES)
        return SIZE_MAX;
    size_t limit = n < 9 ? n / 3 : 3;
    size_t distance = edit_distance(name, n, known, known_n);
    return distance <= limit ? distance : SIZE_MAX;
}

static bool judge_nearer(const char *known, size_t known_n, void *with)
{
    struct wanted *wanted = with;
    wanted->best = least(wanted->best, slips(wanted->name, wanted->n, known, known_n));
    return false; /* a later name may be nearer still */
}

bool field_is_nearer(const char *name, size_t n, const char *known, size_t *best)
{
    size_t before = *best;
    *best = least(before, slips(name, n, known, strlen(known)));
    return *best < before;
}

const struct field *field_find(const char *name, size_t n)
{
    struct wanted wanted = {.name = name, .n = n};
    for (size_t i = 0; i < FIELDS_N; i++) {
        if (any_name(&FIELDS[i], judge_same, &wanted))
            return &FIELDS[i];
    }
    return NULL;
}

bool field_names_variable(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return n > 0;
}

const char *field_key(const char *name, char buf[FIELD_ENV_BYTES])
{
    snprintf(buf, FIELD_ENV_BYTES, "%s", name);
    for (char *c = buf; *c; c++)
        *c = *c == '-' ? '_' : *c;
    return buf;
}

const struct field *field_find_letter(char letter)
{
    for (size_t i = 0; letter && i < FIELDS_N; i++) {
        if (FIELDS[i].letter == letter)
            return &FIELDS[i];
    }
    return NULL;
}

const char *field_nearest_of(const char *name, size_t n, const char *const *others)
{
    if (n < 2 || n > NAME_MAX_BYTES)
        return NULL;
    struct wanted wanted = {.name = name, .n = n, .best = SIZE_MAX};
    for (size_t i = 0; i < FIELDS_N; i++) {
        if (any_name(&FIELDS[i], judge_prefix, &wanted))
            return FIELDS[i].name;
    }
    const char *nearest = NULL;
    for (size_t i = 0; i < FIELDS_N; i++) {
        size_t before = wanted.best;
        any_name(&FIELDS[i], judge_nearer, &wanted);
        if (wanted.best < before)
            nearest = FIELDS[i].name;
    }
    for (size_t i = 0; others[i]; i++)
        if (field_is_nearer(name, n, others[i], &wanted.best))
            nearest = others[i];
    /* "nprocs" is far from "nproc-per-node", but without its s begins it. */
    return nearest || name[n - 1] != 's' ? nearest : field_nearest_of(name, n - 1, others);
}

const char *field_nearest(const char *name, size_t n)
{
    static const char *const NO_OTHERS[] = {NULL};
    return field_nearest_of(name, n, NO_OTHERS);
}
