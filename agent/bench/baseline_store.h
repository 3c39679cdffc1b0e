/* SPDX-License-Identifier: MIT */
/* The files of baselines: where they are, and how one is replaced so that whoever looks finds a whole one. Follows no
 * symbolic link on our part of the way, and makes nothing that others may write. */
#ifndef LAUNCH_AGENT_BENCH_BASELINE_STORE_H
#define LAUNCH_AGENT_BENCH_BASELINE_STORE_H

#include "baseline.h"

#include <limits.h>

/* The file of such a machine and sweep: $XDG_STATE_HOME/launch/baselines/..., else for root /var/lib/launch/baselines/...
 * below sysroot where it can be written, else ~/.local/state/launch/baselines/.... Makes nothing. -EINVAL: no such directory can be named. */
MUST_CHECK int baseline_store_path(char ret[PATH_MAX], const struct baseline *b,
                                   const char *sysroot, struct err *err);

/* -ENOENT: there is none; -EINVAL: what is there is no regular file, too large, or errors of baseline_parse(); -errno. */
MUST_CHECK int baseline_store_load(struct baseline *ret, const char *path, struct err *err);

/* Whether the file may be made or replaced, as far as can be told before. Errors of baseline_store_save(). */
MUST_CHECK int baseline_store_check(const char *path, struct err *err);

/* Replaces the file, or makes it; kept: in the store, whose directories are made then, and of which others must not be
 * able to change anything. -EEXIST: what is there is no baseline; -EPERM: others may write there; -errno. */
MUST_CHECK int baseline_store_save(const struct baseline *b, const char *path, bool kept,
                                   struct err *err);

/* Calls visit for every file of the store, by name; b: NULL if it can't be read, err says why. Returns how many; -ENOENT: there is no store;
 * -errno. */
MUST_CHECK int baseline_store_walk(const char *sysroot,
                                   void (*visit)(void *user, const char *name,
                                                 const struct baseline *b, const struct err *err),
                                   void *user, struct err *err);

#endif
