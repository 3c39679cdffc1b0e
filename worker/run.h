/* SPDX-License-Identifier: MIT */
/* What main() of a job does, wherever its launch_main() comes from. */
#ifndef LAUNCH_WORKER_RUN_H
#define LAUNCH_WORKER_RUN_H

#include "launch.h"

/* Joins, runs entry, leaves; returns the exit code. Prints one line to stderr when a part of it
 * fails. Exported for launch-run, which shares liblaunch with the job that it loads. */
LAUNCH_API int launch_run_main(int (*entry)(struct launch *l, int argc, char **argv), int argc,
                               char **argv);

#endif
