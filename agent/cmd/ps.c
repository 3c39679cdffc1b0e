/* SPDX-License-Identifier: MIT */
/* launch ps: the jobs that run now. */
#include "../../proto/status.h"
#include "../account.h"
#include "../clean.h"
#include "../json.h"
#include "../log.h"
#include "control.h"
#include "words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *or_dash(const char *text)
{
    return *text ? text : "-";
}

static void widen(int *width, const char *text)
{
    int n = (int)strlen(text);
    *width = n > *width ? n : *width;
}

static void print_table(const struct client_jobs *jobs)
{
    char user[ACCOUNT_NAME_BYTES], age[WORDS_AGE_BYTES];
    int id = 3, name = 4, gpus = 4;
    for (size_t i = 0; i < jobs->n; i++) {
        widen(&id, jobs->job[i].job.run_id);
        widen(&name, jobs->job[i].job.name);
        widen(&gpus, jobs->job[i].job.gpus);
    }
    printf("%-*s  %-*s  %-8s  %-10s  %5s  %-*s  %8s  %8s  %6s  %s\n", id, "RUN", name, "NAME",
           "USER", "STATE", "RANKS", gpus, "GPUS", "RESTARTS", "HEALINGS", "AGE", "PROGRAM");
    for (size_t i = 0; i < jobs->n; i++) {
        const struct client_job *j = &jobs->job[i];
        if (j->trouble.code)
            continue;
        printf("%-*s  %-*s  %-8s  %-10s  %5" PRIu32 "  %-*s  %8" PRIu32 "  %8" PRIu32 "  %6s  %s\n",
               id, j->job.run_id, name, or_dash(j->job.name), account_name(j->uid, user),
               j->job.state, j->job.world_size, gpus, or_dash(j->job.gpus), j->job.restarts,
               j->job.healings, words_age(j->job.age_ms, age), j->job.program);
    }
}

/* ---- for programs ---- */

void control_put_job(const struct client_job *j)
{
    char user[ACCOUNT_NAME_BYTES];
    const struct wire_job *job = &j->job;
    printf("\"run_id\": ");
    json_put_string(stdout, job->run_id, strlen(job->run_id));
    json_put_member(stdout, "name", job->name);
    json_put_member(stdout, "user", account_name(j->uid, user));
    json_put_member(stdout, "program", job->program);
    json_put_member(stdout, "state", job->state);
    json_put_member(stdout, "gpus", job->gpus);
    json_put_member(stdout, "log_dir", job->log_dir);
    printf(", \"pid\": %" PRId32 ", \"ranks\": %" PRIu32 ", \"alive\": %" PRIu32
           ", \"restarts\": %" PRIu32 ", \"healings\": %" PRIu32 ", \"max_restarts\": %" PRIu32
           ", \"generation\": %" PRIu32 ", \"age_s\": %.3f, \"state_age_s\": %.3f",
           job->pid, job->world_size, job->alive, job->restarts, job->healings, job->max_restarts,
           job->generation, (double)job->age_ms / 1000, (double)job->state_age_ms / 1000);
}

static void print_json(const struct client_jobs *jobs)
{
    const char *comma = "";
    printf("[");
    for (size_t i = 0; i < jobs->n; i++) {
        if (jobs->job[i].trouble.code)
            continue;
        printf("%s\n  {", comma);
        control_put_job(&jobs->job[i]);
        printf("}");
        comma = ",";
    }
    printf("%s]\n", *comma ? "\n" : "");
}

int cmd_ps(int argc, char **argv)
{
    struct words words;
    struct client_jobs jobs;
    int exit_code = words_parse(&words, argc, argv, WORD_JSON);
    if (exit_code >= 0)
        return exit_code;
    client_list(&jobs);
    if (jobs.trouble.code)
        log_warn("%s", jobs.trouble.text);
    for (size_t i = 0; i < jobs.n; i++)
        if (jobs.job[i].trouble.code) {
            char id[WIRE_ID_BYTES];
            log_warn("job %s: %s", clean(id, sizeof id, jobs.job[i].job.run_id),
                     jobs.job[i].trouble.text);
        }
    if (words.given & WORD_JSON)
        print_json(&jobs);
    else
        print_table(&jobs);
    client_finish(&jobs);
    return EXIT_CODE_OK;
}
