/* SPDX-License-Identifier: MIT */
/* `launch check --json`: one object. Members are always there; null: not known, or none. */
#include "check.h"

#include "../json.h"

#include <string.h>

static const char *const phases[] = {
    [NCCL_PHASE_SILENT] = "silent",   [NCCL_PHASE_BOOTSTRAP] = "bootstrap",
    [NCCL_PHASE_INIT] = "init",       [NCCL_PHASE_READY] = "ready",
    [NCCL_PHASE_CONNECT] = "connect", [NCCL_PHASE_DATA] = "data",
};

static void put_ranks(FILE *out, const struct check *check, const struct check_run *run)
{
    fputs("[", out);
    for (unsigned r = 0; r < check->plan->world_size; r++) {
        const struct nccl_log_process *process = nccl_log_rank(run->trial.log, (int)r);
        struct json_members m = {out, r ? ",\n      {" : "\n      {", ", "};
        json_number(&m, "rank", true, r);
        json_number(&m, "sum", run->sums[r].told, run->sums[r].sum);
        json_text(&m, "phase", check->host ? NULL : phases[nccl_log_phase(process)]);
        json_number(&m, "pid", process != NULL, process ? process->pid : 0);
        json_text(&m, "gpu", process ? process->bus : NULL);
        json_text(&m, "warning", process ? process->warning : NULL);
        fputc('}', out);
    }
    fputs("]", out);
}

static void put_run(FILE *out, const struct check *check, unsigned i)
{
    const struct check_run *run = &check->run[i];
    size_t n;
    const char *said = tail_text(&run->trial.end.said, &n), *before = "";
    struct json_members m = {out, i ? ",\n    {" : "\n    {", ", "};
    json_name(&m, "environment");
    fputc('{', out);
    for (unsigned k = 0; k <= i; k++)
        if (check->run[k].rung->variable) {
            fprintf(out, "%s\"%s\": \"%s\"", before, check->run[k].rung->variable,
                    check->run[k].rung->value);
            before = ", ";
        }
    fputc('}', out);
    json_text(&m, "outcome", check_outcome_name(run->outcome));
    json_number(&m, "exit_code", true, run->trial.end.code);
    json_name(&m, "seconds");
    fprintf(out, "%.3f", run->trial.seconds);
    json_name(&m, "ranks");
    put_ranks(out, check, run);
    json_bytes(&m, "said", said, n);
    fputc('}', out);
}

void check_json(FILE *out, const struct check *check)
{
    const struct check_rung *cure = check_cure(check);
    const struct nccl_log *log = check->run[0].trial.log;
    struct json_members m = {out, "{\n  ", ",\n  "};
    json_number(&m, "version", true, 1);
    json_text(&m, "verdict", check_verdict_name(check->verdict));
    json_text(&m, "backend",
              check->host                           ? "host"
              : check->plan->gpus.vendor == GPU_AMD ? "rccl"
                                                    : "nccl");
    json_text(&m, "nccl", log->version);
    json_number(&m, "ranks", true, check->plan->world_size);
    json_number(&m, "right_sum", true, check_right_sum(check->plan->world_size));
    json_bool(&m, "shared_gpus", check->shared);
    json_number(&m, "timeout_ms", true, check->limit_ms);
    json_text(&m, "without", cure ? cure->name : NULL);
    json_text(&m, "meaning", cure ? cure->meaning : NULL);
    json_text(&m, "fix", cure ? cure->fix : NULL);
    json_name(&m, "runs");
    fputc('[', out);
    for (unsigned i = 0; i < check->runs_n; i++)
        put_run(out, check, i);
    fputs("]\n}\n", out);
}
