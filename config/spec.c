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
        int r = field_set_from(&FIELDS[i], spec, FIELDS[i].def,
                               (struct origin){.source = SOURCE_DEFAULT}, FIELDS[i].name, NULL);
        assert(r == 0 || r == -ENOMEM);
        if (r < 0) {
            spec_finish(spec);
            return r;
        }
    }
    return 0;
}

int spec_inherit(struct job_spec *spec, const struct job_spec *from, struct err *err)
{
    if (spec_init(spec) < 0)
        return err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < FIELDS_N; i++) {
        const struct origin *origin = &from->origin[i];
        if (origin->source <= SOURCE_IMPLIED)
            continue;
        int r = field_set_from(&FIELDS[i], spec, origin->text, *origin, FIELDS[i].name, err);
        if (r < 0) {
            spec_finish(spec);
            return r;
        }
    }
    return 0;
}

static void free_strings(char **strings)
{
    for (char **s = strings; s && *s; s++)
        free(*s);
    free(strings);
}

void spec_finish(struct job_spec *spec)
{
    if (!spec)
        return;
    free(spec->master_addr);
    free(spec->run_id);
    free(spec->name);
    free(spec->role);
    free(spec->gpus_list);
    free(spec->lease_dir);
    free(spec->log_dir);
    free(spec->stdout_filters);
    free(spec->stderr_filters);
    free(spec->config);
    free_strings(spec->file_argv);
    free_strings(spec->env);
    for (size_t i = 0; i < FIELDS_N; i++)
        free(spec->origin[i].text);
    for (unsigned i = 0; i < spec->jobs_n; i++)
        spec_finish(&spec->jobs[i]);
    free(spec->jobs);
    memset(spec, 0, sizeof *spec);
}

static bool given(const struct job_spec *spec, const char *name)
{
    return field_given(field_find(name, strlen(name)), spec);
}

static int imply(struct job_spec *spec, const char *name, const char *text, struct err *err)
{
    return field_imply(field_find(name, strlen(name)), spec, text, err);
}

/* A signal in both lists belongs to the one that the user wrote. */
static int part_signals(struct job_spec *spec, struct err *err)
{
    struct siglist *ends = &spec->signals_to_handle, *passes = &spec->forward_signals;
    bool passes_win = given(spec, "forward-signals"), changed = false;
    bool both = passes_win && given(spec, "signals-to-handle");
    for (unsigned i = ends->n; i-- > 0;) {
        int sig = ends->sig[i];
        if (!siglist_has(passes, sig))
            continue;
        if (both)
            return err_set(err, -EINVAL,
                           "--signals-to-handle and --forward-signals both name SIG%s: "
                           "it either ends the job or is passed on",
                           sigabbrev_np(sig) ? sigabbrev_np(sig) : "RT...");
        siglist_drop(passes_win ? ends : passes, sig);
        changed = true;
    }
    char text[SIGLIST_TEXT_BYTES];
    if (!changed)
        return 0;
    return imply(spec, passes_win ? "signals-to-handle" : "forward-signals",
                 siglist_text(passes_win ? ends : passes, text), err);
}

/* As torchrun: --run-path counts before --no-python, and -m goes with neither. */
static int check_program(struct job_spec *spec, struct err *err)
{
    if (spec->module && (spec->no_python || spec->run_path))
        return err_set(err, -EINVAL,
                       "--module contradicts --%s: a module is run by Python and found by its name",
                       spec->no_python ? "no-python" : "run-path");
    spec->no_python = spec->no_python && !spec->run_path;
    return 0;
}

bool spec_heals(const struct job_spec *spec)
{
    return spec->on_failure == ON_FAILURE_HEAL || spec->on_failure == ON_FAILURE_SHRINK;
}

uint32_t spec_standbys(const struct job_spec *spec)
{
    return spec->standby == STANDBY_NONE ? 0 : spec->standby_count;
}

/* What a job must have for itself: those that give it a name or that only one can have. */
static int check_pair(const char *file, const struct job_spec *a, const struct job_spec *b,
                      struct err *err)
{
    static const char *const OWN[] = {"name", "run-id", "master-port"};
    for (size_t i = 0; i < ARRAY_LEN(OWN); i++) {
        size_t at = (size_t)(field_find(OWN[i], strlen(OWN[i])) - FIELDS);
        const char *text = a->origin[at].text;
        bool nothing = OWN[i][0] == 'm' && a->master_port == 0;
        if (text && b->origin[at].text && strcmp(text, b->origin[at].text) == 0 && !nothing)
            return err_set(err, -EINVAL,
                           "--%s=%s: two jobs of %.60s would have it, and each needs its own",
                           OWN[i], text, file);
    }
    return 0;
}

static int check_jobs(struct job_spec *spec, struct err *err)
{
    for (unsigned i = 0; i < spec->jobs_n; i++) {
        int r = spec_check(&spec->jobs[i], err);
        if (r < 0)
            return err_wrap(err, r, "job %s", spec->jobs[i].name);
        for (unsigned j = 0; j < i && r == 0; j++)
            r = check_pair(spec->config ? spec->config : "a file", &spec->jobs[j], &spec->jobs[i],
                           err);
        if (r < 0)
            return r;
    }
    return 0;
}

int spec_check(struct job_spec *spec, struct err *err)
{
    if (spec->jobs)
        return check_jobs(spec, err);
    int r = check_program(spec, err);
    if (r < 0)
        return r;
    /* NCCL takes a second rank on a GPU only when each rank believes to be alone with it. */
    if (spec->share_gpus && spec->gpu_visibility == GPU_VISIBILITY_JOB) {
        if (given(spec, "gpu-visibility"))
            return err_set(err, -EINVAL,
                           "--share-gpus contradicts --gpu-visibility=job: "
                           "workers that share a GPU see only that one; leave out either");
        spec->gpu_visibility = GPU_VISIBILITY_RANK;
        r = imply(spec, "gpu-visibility", "rank", err);
        if (r < 0)
            return r;
    }
    if (spec->gpus_mode == GPUS_AUTO && spec->nproc_mode != NPROC_NUMBER &&
        spec->nproc_mode != NPROC_CPU)
        return err_set(
            err, -EINVAL,
            "--gpus=auto is one GPU for each worker, and --nproc-per-node one worker for "
            "each GPU: give a number to either, or --gpus=all");
    /* A list of the user's own is the whole truth, unless there are two. */
    if (given(spec, "restart-on") && !given(spec, "no-restart-on")) {
        spec->no_restart_on = (struct codeset){0};
        r = imply(spec, "no-restart-on", "none", err);
        if (r < 0)
            return r;
    }
    return part_signals(spec, err);
}

int spec_add_arguments(struct job_spec *spec, char *const *words, struct err *err)
{
    size_t have = 0, more = 0;
    while (spec->file_argv[have])
        have++;
    while (words[more])
        more++;
    char **argv = realloc(spec->file_argv, (have + more + 1) * sizeof *argv);
    if (!argv)
        return err_set(err, -ENOMEM, "out of memory");
    spec->file_argv = argv;
    memset(argv + have, 0, (more + 1) * sizeof *argv);
    for (size_t i = 0; i < more; i++)
        if (!(argv[have + i] = strdup(words[i])))
            return err_set(err, -ENOMEM, "out of memory");
    return 0;
}
