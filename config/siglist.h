/* SPDX-License-Identifier: MIT */
/* Lists of signals by name, in the order given. Names are those of Python's signal module ("SIGTERM"), with or without
 * the SIG. Sends and catches nothing. */
#ifndef LAUNCH_CONFIG_SIGLIST_H
#define LAUNCH_CONFIG_SIGLIST_H

#include "../proto/base.h"

#include <stdbool.h>
#include <stdint.h>

#define SIGLIST_MAX 64

struct siglist {
    uint8_t n;
    uint8_t sig[SIGLIST_MAX];
};

/* The signal of a name: "SIGTERM", "TERM", "RTMIN+3", "SIGRTMAX"; 0: there is none. n: length. */
int siglist_number(const char *name, size_t n);

/* "SIGUSR1,TERM" or "none". Blanks around names are fine, a signal named twice counts once. -EINVAL: an unknown or
 * empty name, or a signal that the launcher needs for itself or can't have (KILL, STOP, CHLD, PIPE, TSTP, CONT). */
MUST_CHECK int siglist_parse(struct siglist *ret, const char *text);

/* Bit n - 1: signal n is in it. */
uint64_t siglist_bits(const struct siglist *list);

bool siglist_has(const struct siglist *list, int sig);

/* Takes a signal out. */
void siglist_drop(struct siglist *list, int sig);

/* "SIGTERM,SIGINT". Returns text. */
#define SIGLIST_TEXT_BYTES (SIGLIST_MAX * 13)
const char *siglist_text(const struct siglist *list, char text[SIGLIST_TEXT_BYTES]);

#endif
