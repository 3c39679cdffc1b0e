/* SPDX-License-Identifier: MIT */
/* What a sweep is measured against: the baseline of this machine and what is expected of such machines. All that `launch
 * bench` does for --save, --compare, --history and --format=svg, but for running the sweep. */
#ifndef LAUNCH_AGENT_BENCH_VERDICT_H
#define LAUNCH_AGENT_BENCH_VERDICT_H

#include "baseline.h"
#include "expected.h"

#define VERDICT_EXIT_SLOWER 1
#define VERDICT_EXIT_NOT_COMPARABLE 2 /* that of a usage error: it is no verdict */

struct verdict_ask {
    bool save, compare, across_versions;
    const char *save_file, *compare_file; /* NULL: that of this machine and sweep */
    double floor;                         /* of the limits: 0.05; negative: by size */
};

struct verdict {
    struct baseline now, then;
    bool has_now, has_then;
    struct baseline_comparison comparison; /* with has_then */
    const struct expected *expected;       /* NULL: nothing is known of such machines */
    struct bench_run *run;                 /* borrowed: the last one */
};

/* Before anything is started: a named baseline that can't be read, none at all, or a file that can't be replaced, is told
 * now. */
MUST_CHECK int verdict_check(const struct verdict_ask *ask, const char *sysroot, struct err *err);

/* Measures n runs of a sweep, of which the last one was shown, against what is asked for. picture: it is to be drawn. Reads
 * the topology only if that needs it. *ret: the caller's to finish, after an error, too. -EINVAL: not comparable, or not fit to be kept; -ENOENT: no such baseline;
 * -errno. */
MUST_CHECK int verdict_find(struct verdict *ret, const struct verdict_ask *ask,
                            struct bench_run *runs, unsigned n, bool picture, const char *sysroot,
                            struct err *err);

/* Keeps what is to be kept: the new baseline, or a line in the history of the old one. Says on `out` (if not NULL) where. */
MUST_CHECK int verdict_keep(FILE *out, struct verdict *v, const struct verdict_ask *ask,
                            const char *sysroot, struct err *err);

/* For a person: lines that begin with '#'. */
void verdict_text(FILE *out, const struct verdict *v);
/* Only when it was found with picture. */
void verdict_svg(FILE *out, const struct verdict *v);
int verdict_exit_code(const struct verdict *v);

/* A zeroed one is fine. */
void verdict_finish(struct verdict *v);

/* All runs that are on record, newest last. -ENOENT: none; -errno. */
MUST_CHECK int verdict_history(FILE *out, const char *sysroot, struct err *err);

#endif
