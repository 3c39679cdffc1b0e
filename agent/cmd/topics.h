/* SPDX-License-Identifier: MIT */
/* What help and the manual page say beside the options: texts, exit codes, words to ask for. */
#ifndef LAUNCH_AGENT_CMD_TOPICS_H
#define LAUNCH_AGENT_CMD_TOPICS_H

#include "../../config/fields.h"

struct topic {
    const char *name; /* for `launch help`; may be a group's, too */
    const char *title;
    const char *text; /* NULL: the exit codes. A newline begins a paragraph */
    bool apart;       /* for who asks, and in the manual page; not in --help */
};

struct exit_row {
    const char *code, *text;
};

extern const struct topic TOPICS[];
extern const size_t TOPICS_N;
extern const struct exit_row EXIT_ROWS[];
extern const size_t EXIT_ROWS_N;

/* First word of a group's headline, in lower case; returns buf. */
#define TOPIC_BYTES 32
const char *topic_of_group(int group, char buf[TOPIC_BYTES]);

/* The i-th name to ask for, topics first and then the groups that are none; NULL behind the last. buf: for a group's. */
const char *topic_name(size_t i, char buf[TOPIC_BYTES]);

/* "default 1; also --np; PET_NPROC_PER_NODE", or "" if there is nothing to note; returns buf. */
#define TOPIC_NOTES_BYTES 160
const char *topic_notes(const struct field *field, char buf[TOPIC_NOTES_BYTES]);

#endif
