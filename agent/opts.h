/* SPDX-License-Identifier: MIT */
/* The command line and the environment over the settings table. */
#ifndef LAUNCH_AGENT_OPTS_H
#define LAUNCH_AGENT_OPTS_H

#include "../config/spec.h"

enum opts_action { OPTS_RUN, OPTS_HELP, OPTS_VERSION, OPTS_PRINT_CONFIG, OPTS_EXAMPLE_CONFIG };

/* Fills spec (already spec_init'ed) from argv[1..], then from LAUNCH_* and PET_* variables, then from the file of
 * --config, in this order, what is not set yet (an empty variable counts as unset), and runs spec_check().
 *
 * The first word that is no option is the program, and everything from there on is the job's own,
 * untouched. "--" before the program is swallowed. --x=v and --x v are the same, and so are -n 4,
 * -n4 and mpirun's -np 4; '-' and '_' in names are the same; options may not be abbreviated. A word
 * that begins with '-' and no digit is taken as a value only behind '='. The last of repeated
 * options counts. Where the job file names a program, the words behind "--" are further arguments of it, and a
 * program on the command line takes its place and that of its arguments. Nothing behind --help and --version is looked at.
 *
 * Returns 0 with *ret_action set (OPTS_RUN: spec->argv is the program), -EINVAL with one
 * line (what, where: flag or variable, what would be right), or another -errno with such a line. */
MUST_CHECK int opts_parse(struct job_spec *spec, int argc, char **argv,
                          enum opts_action *ret_action, struct err *err);

#endif
