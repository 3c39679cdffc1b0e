/* SPDX-License-Identifier: MIT */
/* The one table of settings. A row: name, torchrun's spellings, environment names, argument, type,
 * range, default as text (parsed by the parser that parses the user's), help, where it lands in
 * struct job_spec. The command line, --help, the environment, job files, man page and
 * completion all walk it. */
#ifndef LAUNCH_CONFIG_FIELDS_H
#define LAUNCH_CONFIG_FIELDS_H

#include "needs.h"
#include "spec.h"

enum field_group {
    GROUP_PROGRAM,
    GROUP_WORKERS,
    GROUP_GPUS,
    GROUP_PLACEMENT,
    GROUP_RENDEZVOUS,
    GROUP_RESTARTS,
    GROUP_FAILURES,
    GROUP_OUTPUT,
    GROUP_FILE,     /* on the command line only: no variable, no key in a file */
    GROUP_TORCHRUN, /* checked and then without effect: these rows land nowhere */
    GROUPS_N
};

struct field {
    const char *name;    /* "nproc-per-node": the long option without dashes */
    const char *aliases; /* further long options, space separated; NULL: none */
    char letter;         /* short option; 0: none */
    const char *pet;     /* torchrun's variable; NULL: none. Ours: see field_env() */
    const char *arg;     /* placeholder in --help; NULL: a switch, its value may be left out */
    const char *def;     /* default as text; NULL: none, the field stays zero */
    enum field_group group;
    size_t offset; /* in struct job_spec. Rows may share one: then either sets it, the later wins */
    /* Parses text into the field. 0; -EINVAL with what would be right ("must be ..., not 'x'"),
     * without the name of the setting: the caller knows where the text came from; or -ENOMEM.
     * A failure leaves the field as it was. */
    int (*parse)(const struct field *field, const char *text, void *into, struct err *err);
    int64_t min, max;           /* for numbers; durations: milliseconds */
    const char *const *choices; /* for enums: NULL-terminated, index = value */
    bool list;                  /* a list with commas: in a job file a YAML list will do */
    enum need needs;            /* without which it does nothing */
    const char *help;           /* one or more sentences; --help wraps them */
};

extern const struct field FIELDS[];
extern const size_t FIELDS_N;

/* Headline of each group, for --help; its first word is a topic of `launch help`. */
extern const char *const FIELD_GROUPS[GROUPS_N];

/* The row of that name or alias ('-' equals '_'), NULL if there is none. n: length of name. */
const struct field *field_find(const char *name, size_t n);

/* The row of that short option, NULL if there is none. */
const struct field *field_find_letter(char letter);

/* The known long option that a mistyped one probably means: the first that begins with it (2 or
 * more characters), else the nearest by edit distance, at most 3 and at most a third of n, else that of the
 * name without its s. Returns a row's name, never an alias, or NULL. n: length of name. */
const char *field_nearest(const char *name, size_t n);

/* The same where further names are known, which are no rows; NULL-terminated. */
const char *field_nearest_of(const char *name, size_t n, const char *const *others);

/* Whether a mistyped name is fewer slips (a letter missing, too many, wrong, or swapped with its neighbour; '-' equals '_')
 * away from a known one than *best, which becomes their number then; SIZE_MAX in the beginning. More than 3, or than a third of
 * n, are too many for slips: never nearer. */
bool field_is_nearer(const char *name, size_t n, const char *known, size_t *best);

/* Our variable of that row, "LAUNCH_NPROC_PER_NODE"; returns buf. */
#define FIELD_ENV_BYTES 64
const char *field_env(const struct field *field, char buf[FIELD_ENV_BYTES]);

/* A name as job files write it, "nproc_per_node"; returns buf. */
const char *field_key(const char *name, char buf[FIELD_ENV_BYTES]);

/* The n bytes can be the name of a variable of the environment: A-Z a-z 0-9 _, and no digit first. */
bool field_names_variable(const char *text, size_t n);

/* ---- values and where they came from (origin.c) ---- */

/* Whether the user set what this row sets, by this row or by one that shares its place. */
bool field_given(const struct field *field, const struct job_spec *spec);

/* Where what this row sets came from, likewise. */
enum source field_source(const struct field *field, const struct job_spec *spec);

/* Parses text into spec and remembers the row's origin: `from`, with a copy of the text. An error begins with
 * `where`, which is "--nproc-per-node", "PET_NNODES", ... 0, -EINVAL or -ENOMEM; a failure leaves spec as it was. */
MUST_CHECK int field_set_from(const struct field *field, struct job_spec *spec, const char *text,
                              struct origin from, const char *where, struct err *err);

/* The same for a value of the command line. */
MUST_CHECK int field_set(const struct field *field, struct job_spec *spec, const char *text,
                         const char *where, struct err *err);

/* Remembers that the row's value, still its default, was changed by what the user set: text is what it is now. */
MUST_CHECK int field_imply(const struct field *field, struct job_spec *spec, const char *text,
                           struct err *err);

/* ---- text ---- */

/* Makes foreign text fit for a one-line message: everything but printable ASCII becomes \n, \r, \t
 * or \xNN, and what is longer than 60 characters then is cut and ends in "...". n: length of text.
 * Returns buf. */
#define FIELD_QUOTE_BYTES 64
const char *field_quote(const char *text, size_t n, char buf[FIELD_QUOTE_BYTES]);

#endif
