/* SPDX-License-Identifier: MIT */
#include "doctor.h"

#include "../../proto/env.h"
#include "../../proto/status.h"
#include "../doctor/doctor.h"
#include "../doctor/log.h"
#include "../doctor/run.h"
#include "../doctor/show.h"
#include "../log.h"
#include "words.h"

#include <stdio.h>
#include <unistd.h>

#define NVML_LIMIT_MS 10000 /* as `launch topo` has it */

static const char help[] =
    "usage: launch doctor [--json]\n"
    "       launch doctor RUN [--json]\n"
    "       launch doctor --log FILE [--json]\n"
    "\n"
    "Alone: looks at all of this machine that is known to make jobs slow, fail or\n"
    "hang. Each finding says what was seen and where (ok, warning, broken, could not\n"
    "look), what follows (so:) and what mends it (do:). It changes nothing; root sees\n"
    "more (the kernel's log, PCIe bridges).\n"
    "\n"
    "  RUN         a job that runs, or hangs: two looks within a second or so at what\n"
    "              each rank does, and which one holds up the others (see launch ps)\n"
    "  --log=FILE  failures that others have had before, in a job's log: a file, -\n"
    "              for stdin, or a directory of --log-dir\n"
    "  --json      one object, for programs\n"
    "\n"
    "Exit code: 0; 1 something is broken, the job hangs, or the log has a known\n"
    "failure (warnings alone are 0); 2 wrong words, no such job, no such log.\n";

void doctor_help(FILE *out)
{
    fputs(help, out);
}

static int look_at_machine(bool json, struct err *err)
{
    const char *sysroot = getenv(ENV_SYSROOT);
    struct doctor *d;
    int rc = doctor_open(&d, sysroot ? sysroot : "", environ, NVML_LIMIT_MS, err);
    if (rc < 0)
        return rc;
    doctor_look(d);
    if (json)
        show_json(stdout, d);
    else
        show_text(stdout, d, log_wants_colour(STDOUT_FILENO));
    rc = doctor_verdict(d) == VERDICT_BROKEN;
    doctor_close(d);
    return rc;
}

int cmd_doctor(int argc, char **argv)
{
    struct words words;
    struct err err;
    int exit_code = words_parse(&words, argc, argv, WORD_MAY_RUN | WORD_LOG | WORD_JSON);
    if (exit_code >= 0)
        return exit_code;
    bool json = words.given & WORD_JSON;
    if (words.log && words.run) {
        log_error("doctor: --log goes without a run: the log is enough");
        return EXIT_CODE_USAGE;
    }
    int rc = words.log   ? doctor_log(stdout, words.log, json, &err)
             : words.run ? doctor_run(stdout, words.run, json, &err)
                         : look_at_machine(json, &err);
    return rc < 0 ? words_tell(&err) : rc > 0 ? 1 : EXIT_CODE_OK;
}
