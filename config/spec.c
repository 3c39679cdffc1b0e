/* SPDX-License-Identifier: MIT */
/* Owns the life of struct job_spec and the checks across settings. Must never know where a value
 * came from (command line, variable, file), nor how a single one looks as text: fields.c does. */
#include "spec.h"

#include "fields.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int spec_init(struct job_spec *spec)
{
    memset(spec, 0, sizeof *spec);
    for (size_t i = 0; i < FIELDS_N; i++) {
        if (!FIELDS[i].def)
            continue;
        int r = field_set(&FIELDS[i], spec, FIELDS[i].def, FIELDS[i].name, NULL);
        assert(r == 0 || r == -ENOMEM);
        if (r < 0) {
            spec_finish(spec);
            return r;
        }
    }
    memset(spec->given, 0, sizeof spec->given);
    return 0;
}

void spec_finish(struct job_spec *spec)
{
    if (!spec)
        return;
    free(spec->master_addr);
    free(spec->run_id);
    free(spec->role);
    free(spec->log_dir);
    free(spec->stdout_filters);
    free(spec->stderr_filters);
    memset(spec, 0, sizeof *spec);
}

int spec_check(struct job_spec *spec, struct err *err)
{
    /* NCCL takes a second rank on a GPU only when each rank believes to be alone with it. */
    if (spec->share_gpus && spec->gpu_visibility == GPU_VISIBILITY_JOB) {
        if (field_given(field_find("gpu-visibility", strlen("gpu-visibility")), spec))
            return err_set(err, -EINVAL,
                           "--share-gpus contradicts --gpu-visibility=job: "
                           "workers that share a GPU see only that one; leave out either");
        spec->gpu_visibility = GPU_VISIBILITY_RANK;
    }
    return 0;
}
