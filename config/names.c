/* SPDX-License-Identifier: MIT */
#include "names.h"

static char fold(char c)
{
    return c == '_' ? '-' : c;
}

bool names_same(const char *a, size_t a_n, const char *b, size_t b_n)
{
    size_t i = 0;
    while (i < a_n && i < b_n && fold(a[i]) == fold(b[i]))
        i++;
    return i == a_n && i == b_n;
}

/* One row of the table at a time. */
size_t names_distance(const char *a, size_t a_n, const char *b, size_t b_n)
{
    size_t row[NAMES_MAX_BYTES + 1];
    for (size_t j = 0; j <= b_n; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_n; j++) {
            size_t cost = diagonal + (fold(a[i - 1]) != fold(b[j - 1]));
            diagonal = row[j];
            if (row[j] + 1 < cost)
                cost = row[j] + 1;
            if (row[j - 1] + 1 < cost)
                cost = row[j - 1] + 1;
            row[j] = cost;
        }
    }
    return row[b_n];
}
