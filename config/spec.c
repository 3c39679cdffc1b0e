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

static bool given(const struct job_spec *spec, const char *name)
{
    return field_given(field_find(name, strlen(name)), spec);
}

/* A signal in both lists belongs to the one that the user wrote. */
static int part_signals(struct job_spec *spec, struct err *err)
{
    struct siglist *ends = &spec->signals_to_handle, *passes = &spec->forward_signals;
    bool both = given(spec, "signals-to-handle") && given(spec, "forward-signals");
    for (unsigned i = ends->n; i-- > 0;) {
        int sig = ends->sig[i];
        if (!siglist_has(passes, sig))
            continue;
        if (both)
            return err_set(err, -EINVAL,
                           "--signals-to-handle and --forward-signals both name SIG%s: "
                           "it either ends the job or is passed on",
                           sigabbrev_np(sig) ? sigabbrev_np(sig) : "RT...");
        siglist_drop(given(spec, "forward-signals") ? ends : passes, sig);
    }
    return 0;
}

uint32_t spec_standbys(const struct job_spec *spec)
{
    return spec->standby == STANDBY_NONE ? 0 : spec->standby_count;
}

int spec_check(struct job_spec *spec, struct err *err)
{
    /* NCCL takes a second rank on a GPU only when each rank believes to be alone with it. */
    if (spec->share_gpus && spec->gpu_visibility == GPU_VISIBILITY_JOB) {
        if (given(spec, "gpu-visibility"))
            return err_set(err, -EINVAL,
                           "--share-gpus contradicts --gpu-visibility=job: "
                           "workers that share a GPU see only that one; leave out either");
        spec->gpu_visibility = GPU_VISIBILITY_RANK;
    }
    /* A list of the user's own is the whole truth, unless there are two. */
    if (given(spec, "restart-on") && !given(spec, "no-restart-on"))
        spec->no_restart_on = (struct codeset){0};
    return part_signals(spec, err);
}
