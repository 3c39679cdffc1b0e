/* SPDX-License-Identifier: MIT */
#include "run.h"

#include "../../proto/clock.h"
#include "../../proto/env.h"
#include "../../proto/status.h"
#include "../guard.h"
#include "../job.h"
#include "../lease.h"
#include "../log.h"
#include "../opts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static int run_agent(void *user, int guard_pidfd)
{
    return job_run(user, guard_pidfd);
}

/* A name for the run, when the user gave none: 16 hex digits that no other run will have. */
static int name_run(struct job_spec *spec, struct err *err)
{
    if (spec->run_id)
        return 0;
    uint64_t id = 0;
    if (getrandom(&id, sizeof id, GRND_NONBLOCK) < 0)
        id = clock_now_ns();
    if (asprintf(&spec->run_id, "%016" PRIx64, id) < 0) {
        spec->run_id = NULL;
        return err_set_errno(err, -ENOMEM, "run id");
    }
    return 0;
}

/* All that can be found wrong is found here, before anything is started. */
static int prepare(struct job_spec *spec, struct plan *plan, struct program *program,
                   struct logs *logs, struct err *err)
{
    int exit_code = EXIT_CODE_USAGE;
    if (plan_make(plan, spec, err) < 0 || program_resolve(program, spec->argv, &exit_code, err) < 0)
        return exit_code;
    if (name_run(spec, err) < 0)
        return EXIT_CODE_OURS;
    return logs_prepare(logs, spec, plan->world_size, err) < 0 ? EXIT_CODE_USAGE : 0;
}

/* For this job alone, shared, or none. */
static int hold_gpus(struct lease *lease, struct plan *plan, const struct job_config *config)
{
    if (plan->gpus_wanted)
        return lease_take(lease, config->spec, plan, config->sysroot);
    if (plan->gpu_set.n)
        lease_share(lease, config->spec, plan, config->sysroot);
    return EXIT_CODE_OK;
}

static int start(struct job_config *config)
{
    struct err err;
    if (config->plan->warning[0])
        log_warn("%s", config->plan->warning);
    if (config->logs->announce)
        log_info("log files are in %s", config->logs->dir);
    if (config->spec->cgroup == CGROUP_AUTO)
        cgroup_find(config->cgroup, config->sysroot, config->spec->run_id);
    const struct job_spec *spec = config->spec;
    uint64_t forwarded =
        siglist_bits(&spec->signals_to_handle) | siglist_bits(&spec->forward_signals);
    int exit_code = guard_run(run_agent, config, config->cgroup, forwarded, &err);
    if (exit_code >= 0)
        return exit_code;
    log_error("%s", err.text);
    return EXIT_CODE_OURS;
}

static int run(struct job_spec *spec)
{
    struct plan plan;
    struct program program = {0};
    struct logs logs = {0};
    struct spawn_inherited inherited;
    struct cgroup cgroup;
    struct lease lease = {0};
    struct err err;
    cgroup_none(&cgroup);
    spawn_inherited_read(&inherited);
    unsigned ignored = signals_ignored();
    const char *sysroot = getenv(ENV_SYSROOT);
    int exit_code = prepare(spec, &plan, &program, &logs, &err);
    struct job_config config = {.spec = spec,
                                .plan = &plan,
                                .program = &program,
                                .logs = &logs,
                                .inherited = &inherited,
                                .sysroot = sysroot ? sysroot : "",
                                .cgroup = &cgroup,
                                .ignored_signals = ignored};
    if (exit_code)
        log_error("%s", err.text);
    else
        exit_code = hold_gpus(&lease, &plan, &config);
    if (!exit_code)
        exit_code = start(&config);
    lease_close(&lease);
    cgroup_close(&cgroup);
    logs_finish(&logs);
    program_finish(&program);
    return exit_code;
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
        log_error("%s", err.text);
        exit_code = EXIT_CODE_USAGE;
    } else if (action == OPTS_HELP) {
        opts_print_help(stdout);
    } else if (action == OPTS_VERSION) {
        printf("launch " LAUNCH_RELEASE "\n");
    } else {
        exit_code = run(&spec);
    }
    spec_finish(&spec);
    return exit_code;
}
