/* SPDX-License-Identifier: MIT */
#include "options.h"

#include "../../config/fields.h"
#include "../../proto/status.h"
#include "../log.h"
#include "../opts.h"
#include "child.h"

#include <string.h>

static int parse(struct bench_options *o, const char *command, char **argv, size_t n,
                 struct err *err)
{
    enum opts_action action;
    char end[] = "--max-restarts=0"; /* so that a forgotten value is missed */
    char job[] = "launch-bench";     /* stands for it until it is found */
    argv[n++] = end;
    argv[n] = job;
    int rc = opts_parse(&o->spec, (int)n + 1, argv, &action, err);
    if (rc < 0)
        return err_wrap(err, rc, "%s", command);
    if (action != OPTS_RUN || o->spec.jobs || o->spec.detach)
        return err_set(err, -EINVAL, "%s: it runs one job and waits for it: without --%s", command,
                       action == OPTS_VERSION          ? "version"
                       : action == OPTS_PRINT_CONFIG   ? "print-config"
                       : action == OPTS_EXAMPLE_CONFIG ? "example-config"
                       : o->spec.detach                ? "detach"
                                                       : "config");
    if (o->spec.argv == argv + n)
        return 0;
    char shown[FIELD_QUOTE_BYTES];
    return err_set(err, -EINVAL, "%s: '%s': options of launch are taken here, and no program",
                   command, field_quote(o->spec.argv[0], strlen(o->spec.argv[0]), shown));
}

/* A worker for each GPU, unless somebody said how many. */
static int count_workers(struct bench_options *o, size_t n, struct err *err)
{
    static char automatic[] = "--nproc-per-node=auto";
    const struct field *field = field_find("nproc-per-node", strlen("nproc-per-node"));
    if (field_given(field, &o->spec))
        return 0;
    o->words[n] = automatic;
    return field_set(field, &o->spec, "auto", "--nproc-per-node", err);
}

int bench_options_init(struct bench_options *o, const char *command, char *const *words,
                       struct err *err)
{
    size_t n = 0;
    while (words[n])
        n++;
    /* The words, and behind their end a command line of them that is parsed here. */
    *o = (struct bench_options){.words = calloc(n + 2 + n + 4, sizeof *o->words)};
    if (!o->words || spec_init(&o->spec) < 0) {
        err_set_errno(err, -ENOMEM, "%s", command);
        return EXIT_CODE_OURS;
    }
    char **argv = o->words + n + 2;
    argv[0] = (char *)"launch";
    memcpy(argv + 1, words, n * sizeof *words);
    memcpy(o->words, words, n * sizeof *words);
    int rc = parse(o, command, argv, n + 1, err);
    o->spec.argv = NULL; /* what it points to is gone soon */
    if (rc == 0)
        rc = count_workers(o, n, err);
    if (rc == 0)
        rc = plan_make(&o->plan, &o->spec, err);
    o->gpus = rc == 0 && o->plan.gpu_set.n > 0 && o->plan.gpus.vendor != GPU_NONE;
    if (o->gpus && o->plan.world_size > o->plan.gpu_set.n && !o->spec.share_gpus)
        rc = err_set(err, -EINVAL, "%s: %u workers for %u GPU%s: fewer, or --share-gpus", command,
                     o->plan.world_size, o->plan.gpu_set.n, o->plan.gpu_set.n == 1 ? "" : "s");
    if (rc < 0)
        return rc == -ENOMEM ? EXIT_CODE_OURS : EXIT_CODE_USAGE;
    rc = child_find_job(o->gpus ? o->plan.gpus.vendor : GPU_NONE, &o->job, err);
    return rc == 0 ? 0 : rc == -ENOMEM ? EXIT_CODE_OURS : EXIT_CODE_USAGE;
}

void bench_options_finish(struct bench_options *o)
{
    spec_finish(&o->spec);
    free(o->words);
    free(o->job);
    *o = (struct bench_options){0};
}

int bench_options_run(const char *command, char *const *words, bool json,
                      int (*run)(const struct bench_options *options, bool json))
{
    struct bench_options options;
    struct err err;
    int exit_code = bench_options_init(&options, command, words, &err);
    if (exit_code)
        log_error("%s", err.text);
    else
        exit_code = run(&options, json);
    bench_options_finish(&options);
    return exit_code;
}
