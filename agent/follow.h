/* SPDX-License-Identifier: MIT */
/* Copies files to stdout, and what comes after as they grow. Knows no job. */
#ifndef LAUNCH_AGENT_FOLLOW_H
#define LAUNCH_AGENT_FOLLOW_H

#include "../proto/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct follow_file {
    char *path, *title; /* owned */
    int fd;             /* owned; -1: it is not there (yet) */
};

struct follow {
    struct follow_file *files; /* owned */
    size_t n;
    size_t last;   /* that was copied from, + 1; 0: none was */
    int notify_fd; /* owned: inotify; -1: files are copied once */
    bool foreign;  /* see follow_distrust() */
    uid_t owner;
};

/* forever: follow_wait() will be called. Errors: of inotify_init1(). */
MUST_CHECK int follow_init(struct follow *f, bool forever, struct err *err);
void follow_finish(struct follow *f);

/* The files are another user's, who has told their names: only plain files that belong to him are read from here on, whatever
 * he puts in their place (a link to a file of ours, a device), and what steers a terminal comes out as '?'. */
void follow_distrust(struct follow *f, uid_t owner);

/* Adds a file, with a title that is printed before what comes from another file than before; NULL: none. tail_bytes: begin
 * with the first line within the last so many bytes; negative: with all. Errors: -ENOMEM, those of open(); -EPERM: see above. */
MUST_CHECK int follow_add(struct follow *f, const char *path, const char *title, off_t tail_bytes);

/* Wakes follow_wait() when something appears in that directory. */
void follow_directory(struct follow *f, const char *path);

/* Copies what is there. A file that was renamed and made anew (rotation) is read to its end, then the new one. False: stdout
 * takes no more. */
bool follow_copy(struct follow *f);

/* Sleeps until something has changed since follow_copy(), or end_fd is readable. True: it is. */
bool follow_wait(const struct follow *f, int end_fd);

#endif
