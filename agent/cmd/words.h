/* SPDX-License-Identifier: MIT */
/* The command line of a subcommand that shows or steers running jobs, and the job it means. */
#ifndef LAUNCH_AGENT_CMD_WORDS_H
#define LAUNCH_AGENT_CMD_WORDS_H

#include "../client.h"

/* What a subcommand takes. */
enum {
    WORD_RUN = 1,
    WORD_SIGNAL = 2, /* a second operand */
    WORD_JSON = 4,
    WORD_WATCH = 8,
    WORD_RANK = 16,
    WORD_FOLLOW = 32,
    WORD_NOW = 64,
    WORD_LEASE_DIR = 128,
    WORD_CLEAR = 256,
    WORD_LOG = 512,
    WORD_MAY_RUN = 1024, /* WORD_RUN that may be left out */
};

struct words {
    unsigned given;        /* WORD_* */
    const char *run;       /* with WORD_RUN, WORD_MAY_RUN */
    int number;            /* with WORD_SIGNAL: the signal */
    int rank;              /* or WIRE_ALL_RANKS */
    const char *lease_dir; /* with WORD_LEASE_DIR */
    const char *clear;     /* with WORD_CLEAR; NULL: no value was given */
    const char *log;       /* with WORD_LOG */
};

/* Parses argv[1..]. Returns -1: go on; else the exit code, all has been said (wrong words, --help). */
int words_parse(struct words *ret, int argc, char **argv, unsigned takes);

/* The same, and connects to the job that is meant. */
int words_open(struct words *ret, int argc, char **argv, unsigned takes, struct client_job *job);

/* Asks it; the exit code: 0, or words_tell()'s. */
int words_ask(struct client_job *job, enum wire_verb verb, const struct words *words,
              void (*on_packet)(void *user, const union wire_packet *packet), void *user);

/* Says an error and returns the exit code: 2 if something else should be asked for, 125 if that is not the reason. */
int words_tell(const struct err *err);

/* "3s", "5m12s", "2h05m", "3d04h" of milliseconds. Returns text. */
#define WORDS_AGE_BYTES 32
const char *words_age(uint64_t ms, char text[WORDS_AGE_BYTES]);

#endif
