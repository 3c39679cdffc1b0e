/* SPDX-License-Identifier: MIT */
/* See bitset.h. Must never know what the numbers stand for. */
#include "bitset.h"

#include <stdio.h>
#include <string.h>

#define WORDS (BITSET_MAX / BITSET_WORD)

static bool within(int i)
{
    return i >= 0 && i < BITSET_MAX;
}

void bitset_add(struct bitset *set, int i)
{
    if (within(i))
        set->word[i / BITSET_WORD] |= 1ull << i % BITSET_WORD;
}

bool bitset_has(const struct bitset *set, int i)
{
    return within(i) && set->word[i / BITSET_WORD] >> i % BITSET_WORD & 1;
}

bool bitset_empty(const struct bitset *set)
{
    return bitset_next(set, -1) < 0;
}

unsigned bitset_count(const struct bitset *set)
{
    unsigned n = 0;
    for (int w = 0; w < WORDS; w++)
        n += (unsigned)__builtin_popcountll(set->word[w]);
    return n;
}

int bitset_next(const struct bitset *set, int after)
{
    int from = after + 1;
    if (!within(from))
        return -1;
    uint64_t rest = set->word[from / BITSET_WORD] & ~0ull << from % BITSET_WORD;
    for (int w = from / BITSET_WORD;;) {
        if (rest)
            return w * BITSET_WORD + __builtin_ctzll(rest);
        if (++w == WORDS)
            return -1;
        rest = set->word[w];
    }
}

void bitset_and(struct bitset *set, const struct bitset *other)
{
    for (int w = 0; w < WORDS; w++)
        set->word[w] &= other->word[w];
}

void bitset_or(struct bitset *set, const struct bitset *other)
{
    for (int w = 0; w < WORDS; w++)
        set->word[w] |= other->word[w];
}

void bitset_minus(struct bitset *set, const struct bitset *other)
{
    for (int w = 0; w < WORDS; w++)
        set->word[w] &= ~other->word[w];
}

/* Digits at *text, which goes behind them; at most BITSET_MAX. -1: there are none. */
static int number(const char **text)
{
    int value = -1;
    for (; **text >= '0' && **text <= '9'; ++*text) {
        value = (value < 0 ? 0 : value) * 10 + (**text - '0');
        value = value < BITSET_MAX ? value : BITSET_MAX;
    }
    return value;
}

static bool parse(struct bitset *set, const char *text)
{
    for (;; text++) {
        int first = number(&text), last = first;
        if (*text == '-') {
            text++;
            last = number(&text);
        }
        if (first < 0 || last < first)
            return false;
        for (int i = first; i <= last; i++)
            bitset_add(set, i);
        if (*text != ',')
            return text[strspn(text, " \t\r\n")] == '\0';
    }
}

bool bitset_parse(struct bitset *set, const char *text)
{
    *set = (struct bitset){0};
    text += strspn(text, " \t\r\n");
    if (!*text || parse(set, text))
        return true;
    *set = (struct bitset){0};
    return false;
}

char *bitset_text(const struct bitset *set, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int first = -1, last; (first = bitset_next(set, first)) >= 0; first = last) {
        char piece[32];
        for (last = first; bitset_has(set, last + 1); last++)
            ;
        int n = first == last
                    ? snprintf(piece, sizeof piece, "%s%d", used ? "," : "", first)
                    : snprintf(piece, sizeof piece, "%s%d-%d", used ? "," : "", first, last);
        if (used + (size_t)n >= size - 3) {
            memcpy(text + used, "...", 4);
            return text;
        }
        memcpy(text + used, piece, (size_t)n + 1);
        used += (size_t)n;
    }
    return text;
}
