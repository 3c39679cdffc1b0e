/* SPDX-License-Identifier: MIT */
/* Directories for log files, made safely. Knows paths and descriptors, not what goes into them. */
#ifndef LAUNCH_AGENT_LOGDIR_H
#define LAUNCH_AGENT_LOGDIR_H

#include "../proto/err.h"

#define LOGDIR_RANDOM_CHARS 8

/* Opens a directory, made with its parents as far as they are not there (umask decides). A relative path
 * counts from the working directory of now. *ret_path: heap, absolute, for messages and for others to find it. Errors
 * name the path and the reason: -ENOTDIR, -ENOENT (a link to nothing), -EACCES, -ENAMETOOLONG, ... */
MUST_CHECK int logdir_open(const char *path, char **ret_path, int *ret_fd, struct err *err);

/* Makes and opens a new directory "<stem>_<8 random characters>" that only its owner may enter, below
 * parent_fd. *ret_name: heap. path: the parent's name, for errors. */
MUST_CHECK int logdir_create(int parent_fd, const char *path, const char *stem, char **ret_name,
                             int *ret_fd, struct err *err);

/* Writes a file "name" of that directory, mode 0600: beside its name first (".name"), so that whoever reads it sees all of
 * it or the one before. 0, -errno. */
MUST_CHECK int logdir_write_file(int dir_fd, const char *name, const char *text, size_t n);

/* All n bytes to fd, which blocks. 0, -errno. */
MUST_CHECK int logdir_write_all(int fd, const char *text, size_t n);

#endif
