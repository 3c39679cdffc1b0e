/* SPDX-License-Identifier: MIT */
/* Words that people bring from mpirun, srun, docker, deepspeed and accelerate, and what does it here. They are never
 * taken: only the line that refuses one is a better one for it. */
#ifndef LAUNCH_CONFIG_FOREIGN_H
#define LAUNCH_CONFIG_FOREIGN_H

#include <stddef.h>

enum foreign_kind {
    FOREIGN_OPTION, /* without its dashes; '-' equals '_' */
    FOREIGN_KEY,    /* of a job file */
    FOREIGN_VERB,   /* in the place of the program */
};

struct foreign {
    enum foreign_kind kind;
    const char *words; /* with blanks between them */
    const char *instead;
};

extern const struct foreign FOREIGN[];
extern const size_t FOREIGN_N;

/* What does here what that word does elsewhere; NULL: it is none of them. n: length of word. */
const char *foreign_find(enum foreign_kind kind, const char *word, size_t n);

#endif
