/* SPDX-License-Identifier: MIT */
#include "limits.h"

#include <stdbool.h>
#include <string.h>

const char *const LIMITS_NAMES[RESTART_CLASSES_N] = {
    [RESTART_STARTUP] = "startup", [RESTART_SIGNAL] = "signal", [RESTART_HANG] = "hang",
    [RESTART_EXIT] = "exit",       [RESTART_SAME] = "same",
};

/* Where the number begins; *ret_class: what it is for. NULL: an unknown class. */
static const char *take_class(const char *word, unsigned *ret_class)
{
    for (unsigned c = 0; c < RESTART_CLASSES_N; c++) {
        size_t n = strlen(LIMITS_NAMES[c]);
        if (strncmp(word, LIMITS_NAMES[c], n) == 0 && word[n] == ':') {
            *ret_class = c;
            return word + n + 1;
        }
    }
    return NULL;
}

int limits_parse(struct limits *ret, const char *text)
{
    struct limits limits;
    for (unsigned c = 0; c < RESTART_CLASSES_N; c++)
        limits.of[c] = LIMITS_NONE;
    for (bool more = strcmp(text, "none") != 0; more;) {
        unsigned class, value = 0;
        const char *digit = take_class(text, &class);
        if (!digit || limits.of[class] != LIMITS_NONE || *digit < '0' || *digit > '9')
            return -EINVAL;
        while (*digit >= '0' && *digit <= '9' && value <= LIMITS_MAX)
            value = value * 10 + (unsigned)(*digit++ - '0');
        if (value > LIMITS_MAX || (*digit && *digit != ','))
            return -EINVAL;
        limits.of[class] = value;
        more = *digit == ',';
        text = digit + more;
    }
    *ret = limits;
    return 0;
}
