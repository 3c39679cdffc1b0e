/* SPDX-License-Identifier: MIT */
#include "run.h"

#include "../../config/emit.h"
#include "../../config/needs.h"
#include "../../proto/clock.h"
#include "../../proto/env.h"
#include "../../proto/status.h"
#include "../detach.h"
#include "../exposed.h"
#include "../guard.h"
#include "../job.h"
#include "../lease.h"
#include "../log.h"
#include "../nccl_shm.h"
#include "../opts.h"
#include "../placement.h"
#include "../roof.h"
#include "help.h"
#include "suggest.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static int run_agent(void *user, int guard_pidfd)
{
    return job_run(user, guard_pidfd);
}

/* An id for the run, when the user gave none: hex digits that no other run will have, behind the name if there is one. */
static int name_run(struct job_spec *spec, struct err *err)
{
    if (spec->run_id)
        return 0;
    uint64_t id = 0;
    if (getrandom(&id, sizeof id, GRND_NONBLOCK) < 0)
        id = clock_now_ns();
    if ((spec->name ? asprintf(&spec->run_id, "%.46s-%08" PRIx32, spec->name, (uint32_t)id)
                    : asprintf(&spec->run_id, "%016" PRIx64, id)) < 0) {
        spec->run_id = NULL;
        return err_set_errno(err, -ENOMEM, "run id");
    }
    return 0;
}

static enum program_how how_to_run(const struct job_spec *spec)
{
    return spec->module      ? PROGRAM_MODULE
           : spec->run_path  ? PROGRAM_SCRIPT
           : spec->no_python ? PROGRAM_DIRECT
                             : PROGRAM_DETECT;
}

/* What a job is made of. */
struct parts {
    const char *sysroot;
    struct plan plan;
    struct program program;
    struct lease lease;
    struct placement placement;
    struct logs logs;
    struct cgroup cgroup;
    struct spawn_inherited inherited;
    unsigned ignored_signals;
};

/* What is wrong with the command line and the program. */
static int look(struct parts *parts, struct job_spec *spec, struct err *err)
{
    int exit_code = EXIT_CODE_USAGE;
    if (plan_make(&parts->plan, spec, err) < 0)
        return exit_code;
    struct program *program = &parts->program;
    if (program_resolve(program, spec->argv, how_to_run(spec), &exit_code, err) < 0) {
        suggest_program(spec->argv[0], err);
        return exit_code;
    }
    return name_run(spec, err) < 0 ? EXIT_CODE_OURS : EXIT_CODE_OK;
}

/* For this job alone, shared, or none. Tells what went wrong itself. */
static int hold_gpus(struct parts *parts, const struct job_spec *spec)
{
    if (parts->plan.gpus_wanted)
        return lease_take(&parts->lease, spec, &parts->plan, parts->sysroot);
    if (parts->plan.gpu_set.n)
        return lease_share(&parts->lease, spec, &parts->plan, parts->sysroot);
    return EXIT_CODE_OK;
}

/* What depends on the GPUs that the job got, and what leaves traces. */
static int settle(struct parts *parts, const struct job_spec *spec, struct err *err)
{
    if (program_expand(&parts->program, parts->plan.world_size, err) < 0)
        return EXIT_CODE_OURS;
    if (placement_make(&parts->placement, spec, &parts->plan, parts->sysroot, err) < 0 ||
        logs_prepare(&parts->logs, spec, parts->plan.world_size, err) < 0)
        return EXIT_CODE_USAGE;
    return EXIT_CODE_OK;
}

/* Tells what went wrong; for want of memory the user's words can't be blamed. */
static int tell(const struct err *err, int exit_code)
{
    log_error("%s", err->text);
    return err->code == -ENOMEM ? EXIT_CODE_OURS : exit_code;
}

/* All that can be found wrong is found and told here, before anything is started. One that waits for its GPUs does not keep
 * the other jobs of its file waiting, who might hold what others wait for. */
static int prepare(struct parts *parts, struct job_spec *spec, int gate)
{
    struct err err;
    int exit_code = look(parts, spec, &err);
    if (!exit_code) {
        if (spec->wait_ms && !roof_pass(gate))
            return EXIT_CODE_OURS;
        exit_code = hold_gpus(parts, spec);
        if (exit_code)
            return exit_code;
        exit_code = settle(parts, spec, &err);
    }
    if (exit_code)
        return tell(&err, exit_code);
    return spec->wait_ms || roof_pass(gate) ? EXIT_CODE_OK : EXIT_CODE_OURS;
}

static void warn_of_idle_settings(const struct job_spec *spec)
{
    char line[NEED_LINE_BYTES];
    for (size_t at = 0; need_next_idle(spec, &at, line);)
        log_warn("%s", line);
}

static int start(struct job_config *config, const struct lease *lease)
{
    struct rundir_place place;
    struct err err;
    warn_of_idle_settings(config->spec);
    if (config->plan->warning[0])
        log_warn("%s", config->plan->warning);
    if (config->placement->note[0])
        log_warn("%s", config->placement->note);
    if (config->logs->announce)
        log_info("log files are in %s", config->logs->dir);
    if (config->logs->dir)
        exposed_warn(config->logs->dir_fd, "..", "the directory of --log-dir",
                     "what workers write to TORCHELASTIC_ERROR_FILE may go elsewhere");
    if (config->spec->report_placement)
        placement_report(config->placement, config->plan, config->sysroot, config->logs->dir_fd);
    if (config->spec->cgroup == CGROUP_AUTO)
        cgroup_find(config->cgroup, config->sysroot, config->spec->run_id);
    const struct job_spec *spec = config->spec;
    if (spec->detach) {
        int exit_code = detach(spec->run_id, config->logs->dir, &config->started_fd);
        if (exit_code >= 0)
            return exit_code;
        lease_sign_again(lease, spec);
    }
    rundir_choose(&place, config->sysroot, spec->run_id, spec->detach);
    config->place = &place;
    uint64_t forwarded =
        siglist_bits(&spec->signals_to_handle) | siglist_bits(&spec->forward_signals);
    struct timespec begin = {0};
    clock_gettime(CLOCK_REALTIME_COARSE, &begin);
    int exit_code = guard_run(run_agent, config, config->cgroup, forwarded, &err);
    rundir_remove(&place); /* the agent did, unless it was killed */
    unsigned left = nccl_shm_sweep(config->sysroot, &begin);
    if (left)
        log_debug("removed %u file%s of NCCL in /dev/shm that nobody had any more", left,
                  left == 1 ? "" : "s");
    if (exit_code >= 0)
        return exit_code;
    log_error("%s", err.text);
    return EXIT_CODE_OURS;
}

/* The job file's variables: for the workers, and for what we ourselves read (CUDA_VISIBLE_DEVICES, PATH). */
static int export_variables(char **env)
{
    for (; env && *env; env++) {
        char *value = strchr(*env, '=');
        *value = '\0';
        int r = setenv(*env, value + 1, 1);
        *value = '=';
        if (r < 0)
            return -errno;
    }
    return 0;
}

static int show(const struct job_spec *spec, enum opts_action action)
{
    struct err err;
    int r;
    if (action == OPTS_HELP)
        help_print(stdout);
    else if (action == OPTS_VERSION)
        printf("launch " LAUNCH_RELEASE "\n");
    else if (action == OPTS_EXAMPLE_CONFIG)
        emit_example(stdout);
    else if ((r = emit_config(stdout, spec, &err)) < 0) {
        err_wrap(&err, r, "--print-config");
        return tell(&err, EXIT_CODE_USAGE);
    }
    return EXIT_CODE_OK;
}

/* gate: where it waits for the other jobs of its file; -1: it is the only one. */
static int run(struct job_spec *spec, int gate)
{
    if (export_variables(spec->env) < 0) {
        log_error("no memory");
        return EXIT_CODE_OURS;
    }
    const char *sysroot = getenv(ENV_SYSROOT);
    struct parts parts = {
        .sysroot = sysroot ? sysroot : "", .lease = LEASE_NONE, .placement = {.lock = -1}};
    cgroup_none(&parts.cgroup);
    spawn_inherited_read(&parts.inherited);
    parts.ignored_signals = signals_ignored();
    int exit_code = prepare(&parts, spec, gate);
    if (!exit_code)
        exit_code = start(&(struct job_config){.spec = spec,
                                               .plan = &parts.plan,
                                               .placement = &parts.placement,
                                               .program = &parts.program,
                                               .logs = &parts.logs,
                                               .inherited = &parts.inherited,
                                               .sysroot = parts.sysroot,
                                               .cgroup = &parts.cgroup,
                                               .started_fd = -1,
                                               .ignored_signals = parts.ignored_signals},
                          &parts.lease);
    cgroup_close(&parts.cgroup);
    logs_finish(&parts.logs);
    placement_finish(&parts.placement);
    lease_close(&parts.lease);
    program_finish(&parts.program);
    return exit_code;
}

/* A slip in a variable's name would go by unnoticed, as any name is allowed. */
static void warn_of_variables(void)
{
    char meant[FIELD_ENV_BYTES];
    for (char **word = environ; word && *word; word++)
        if (suggest_variable(*word, meant))
            log_warn("%.*s is not read by launch; did you mean %s?", (int)strcspn(*word, "="),
                     *word, meant);
}

static int run_jobs(const struct job_spec *spec)
{
    struct err err;
    int exit_code = roof_run(spec, run, &err);
    if (exit_code >= 0)
        return exit_code;
    log_error("%s", err.text);
    return EXIT_CODE_OURS;
}

int cmd_run(int argc, char **argv)
{
    struct job_spec spec;
    enum opts_action action;
    struct err err;
    int exit_code = EXIT_CODE_OK;
    if (spec_init(&spec) < 0) {
        log_error("no memory");
        return EXIT_CODE_OURS;
    }
    if (opts_parse(&spec, argc, argv, &action, &err) < 0) {
        exit_code = tell(&err, EXIT_CODE_USAGE);
    } else if (action != OPTS_RUN) {
        exit_code = show(&spec, action);
    } else {
        warn_of_variables();
        exposed_warn(AT_FDCWD, ".", "the working directory",
                     "programs and modules that are found there may be theirs");
        exit_code = spec.jobs ? run_jobs(&spec) : run(&spec, -1);
    }
    spec_finish(&spec);
    return exit_code;
}
