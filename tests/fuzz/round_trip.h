/* SPDX-License-Identifier: MIT */
/* What must hold for whatever was taken: shown as a job file, it gives the same job. */
#ifndef LAUNCH_TESTS_FUZZ_ROUND_TRIP_H
#define LAUNCH_TESTS_FUZZ_ROUND_TRIP_H

#include "../../config/emit.h"
#include "../../config/jobfile.h"
#include "../config/same.h"
#include "fuzz.h"

static inline void check_round_trip(const struct job_spec *spec)
{
    struct job_spec again;
    struct err err;
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    must(out != NULL, "no memory");
    int r = emit_config(out, spec, &err);
    fclose(out);
    if (r < 0) { /* no UTF-8 */
        check_line(&err);
    } else {
        must(spec_init(&again) == 0, "no memory");
        must(jobfile_parse(&again, "again", text, n, &err) == 0, "what was shown is not taken");
        must(spec_check(&again, &err) == 0, "what was shown contradicts itself");
        again.argv = again.file_argv;
        must(same_spec(spec, &again), "what was shown is another job");
        spec_finish(&again);
    }
    free(text);
}

#endif
