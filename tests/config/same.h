/* SPDX-License-Identifier: MIT */
/* Whether two specs ask for the same job, wherever their values came from. */
#ifndef LAUNCH_TESTS_CONFIG_SAME_H
#define LAUNCH_TESTS_CONFIG_SAME_H

#include "../../config/spec.h"

#include <string.h>

static inline bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : !a == !b;
}

static inline bool same_texts(char *const *a, char *const *b)
{
    for (; a && b && *a && *b; a++, b++)
        if (strcmp(*a, *b) != 0)
            return false;
    return !(a && *a) && !(b && *b);
}

/* spec_init() zeroes the padding. */
static inline bool same_job(const struct job_spec *a, const struct job_spec *b)
{
    return memcmp(a, b, offsetof(struct job_spec, master_addr)) == 0 &&
           same_text(a->master_addr, b->master_addr) && same_text(a->run_id, b->run_id) &&
           same_text(a->role, b->role) && same_text(a->log_dir, b->log_dir) &&
           same_text(a->stdout_filters, b->stdout_filters) &&
           same_text(a->stderr_filters, b->stderr_filters) && same_texts(a->argv, b->argv) &&
           same_text(a->name, b->name) && same_texts(a->env, b->env);
}

static inline bool same_spec(const struct job_spec *a, const struct job_spec *b)
{
    if (!a->jobs && !b->jobs)
        return same_job(a, b);
    for (unsigned i = 0; i < a->jobs_n && a->jobs_n == b->jobs_n; i++)
        if (!same_job(&a->jobs[i], &b->jobs[i]))
            return false;
    return a->jobs_n == b->jobs_n;
}

#endif
