/* SPDX-License-Identifier: MIT */
/* A job as a YAML file: the settings by their names, program, args, env. */
#ifndef LAUNCH_CONFIG_JOBFILE_H
#define LAUNCH_CONFIG_JOBFILE_H

#include "spec.h"

/* Keys that are no settings: "program", ...; NULL-terminated. */
extern const char *const JOBFILE_KEYS[];

/* Fills spec with what the file says and no source above SOURCE_FILE has said; the rest of the file is checked all the same.
 *
 * A key is a setting's name or alias, with '_' or '-'. Values are texts, parsed as on the command line; where that is a list
 * with commas, a YAML list will do. Refused, as YAML's readers differ about them: no value (null, ~) and leading zeros, unless
 * quoted. Arguments and variables are taken as written. In variables ${NAME} is a variable of ours, $$ a dollar.
 *
 * Where 'jobs' has several, each becomes a spec in spec->jobs, with its program: what it says itself goes before what the file
 * says for all (of variables each by itself, arguments with their program), and its name is its --name.
 *
 * 0, or -EINVAL with "path:line:column: what is wrong", or -errno with "job file path: why it can't be read". Only a
 * regular file of at most YAML_MAX_BYTES is read. spec is to be finished in any case. */
MUST_CHECK int jobfile_read(struct job_spec *spec, const char *path, struct err *err);

/* The same for a text at hand. name: for errors. */
MUST_CHECK int jobfile_parse(struct job_spec *spec, const char *name, const char *text, size_t n,
                             struct err *err);

#endif
