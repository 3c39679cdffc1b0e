/* SPDX-License-Identifier: MIT */
/* NCCL's RAS subsystem asked over its socket (NCCL 2.24 and later): which ranks of which communicator have launched fewer
 * operations than others, or do not answer. Two forms of answer: JSON (2.28.7 and later) and text. Whoever listens there
 * may send anything, or nothing. */
#ifndef LAUNCH_AGENT_DOCTOR_RAS_H
#define LAUNCH_AGENT_DOCTOR_RAS_H

#include "../../proto/err.h"

#include <stdbool.h>
#include <stdint.h>

#define RAS_ANSWER_MAX (1024u * 1024u)
#define RAS_NOTES_MAX 64

enum ras_kind {
    RAS_BEHIND,   /* has launched `count` operations, others `most` */
    RAS_STARTING, /* is still inside ncclCommInit */
    RAS_ERROR,    /* has the NCCL error `count` */
    RAS_SILENT,   /* its RAS thread does not answer: the process is stopped or gone */
    RAS_DEAD,     /* and has not for a minute */
};

struct ras_note {
    enum ras_kind kind;
    char comm[24];      /* as NCCL names it; "" for all */
    char operation[24]; /* "AllReduce"; "collective" of the first releases */
    uint32_t ranks;     /* how many; 1: `rank` and `pid` say which. 0 stands for nobody */
    uint32_t rank;      /* within the communicator; UINT32_MAX: not said */
    int32_t pid;        /* on its host; 0: not said */
    uint64_t count, most;
};

struct ras {
    char version[24];    /* of NCCL; "" if it is not said */
    bool understood;     /* false: `answer` is all there is */
    uint32_t comms;      /* communicators; of text, groups of them */
    uint64_t operations; /* launched so far as far as is told: two looks show whether it moves */
    uint32_t notes_n;
    struct ras_note notes[RAS_NOTES_MAX]; /* more are left out */
    char *answer;                         /* owned: what came, with a NUL behind it */
    size_t answer_n;
};

/* Asks at "127.0.0.1:28028", "[::1]:28028" or "localhost:28028"; other names would have to be looked up. `ms`: for all
 * of it. Errors: -EINVAL no such address; -ECONNREFUSED; -ETIMEDOUT without any answer. ras_finish() takes it in any
 * case. */
MUST_CHECK int ras_ask(struct ras *ret, const char *address, unsigned ms, struct err *err);

/* What an answer says: n bytes with a NUL behind them, taken over. */
void ras_read(struct ras *ret, char *answer, size_t n);
void ras_finish(struct ras *ras);

/* "AllReduce of communicator 0xae94: launched 4, others 5". Plain text. */
void ras_describe(const struct ras_note *note, char *text, size_t size);

#endif
