/* SPDX-License-Identifier: MIT */
/* Failures that others have had before, by the lines they leave: cause, fix, and where it was discussed in public. One
 * table (known_rows.c), and looking for its rows in text that anybody may have written. Pure; allocates nothing. */
#ifndef LAUNCH_AGENT_DOCTOR_KNOWN_H
#define LAUNCH_AGENT_DOCTOR_KNOWN_H

#include "../json.h"

#define KNOWN_SIGNS 8

struct known {
    const char *name;
    const char
        *signs[KNOWN_SIGNS]; /* a line with one has it; "..." is anything, but not before 4 bytes */
    bool
        vague; /* says that something failed, or that another rank did: a row that is not tells more */
    const char *cause, *fix; /* a sentence each, without its full stop */
    const char *reference;   /* public issues; NULL: none is needed */
};

/* Of two rows that fit a line the earlier one is taken: the telling ones stand first. */
extern const struct known KNOWN[];
extern const size_t KNOWN_N;

/* The row for a line without its newline, or NULL. */
const struct known *known_of_line(const char *line, size_t n);

/* What a line is worth to somebody who wants the one reason. */
struct known_reason {
    const struct known *known; /* NULL: none is known */
    const char *warning;       /* with a vague one: what NCCL said last before it; NULL: nothing */
    size_t warning_n;
};

/* The reason in the last lines of a program: the last telling row, but none from behind a vague one, as what comes after
 * is its consequence; else the first vague one. */
struct known_reason known_of_text(const char *text, size_t n);

/* Members: name, cause, fix, reference. */
void known_put_json(struct json_members *m, const struct known *known);

#endif
