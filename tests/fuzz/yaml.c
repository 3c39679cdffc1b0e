/* SPDX-License-Identifier: MIT */
/* Any bytes as a job file: taken, or refused with one line; what is taken comes back from what is shown. */
#include "round_trip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct job_spec spec;
    struct err err;
    setenv("HOME", "/root", 1);
    must(spec_init(&spec) == 0, "no memory");
    spec.config = strdup("job.yaml");
    int r = jobfile_parse(&spec, "job.yaml", (const char *)data, n, &err);
    if (r == 0)
        r = spec_check(&spec, &err);
    spec.argv = spec.file_argv;
    if (r < 0)
        check_line(&err);
    else
        check_round_trip(&spec);
    spec_finish(&spec);
    return 0;
}
