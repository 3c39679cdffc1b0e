/* SPDX-License-Identifier: MIT */
/* What a person reads of `launch check`. */
#include "check.h"

#include "../clean.h"
#include "../hang_report.h"
#include "../nccl_conf.h"
#include "../sysfile.h"

#include <string.h>
#include <sys/statvfs.h>

#define SAID_LINES 12
#define LIST_BYTES 160

static const char *library(const struct check *check)
{
    return gpu_collectives(check->plan->gpus.vendor);
}

/* ---- where it stands ---- */

/* Ranks that NCCL's log shows in that phase; false: none. */
static bool list_phase(const struct check *check, const struct nccl_log *log, enum nccl_phase phase,
                       char list[LIST_BYTES])
{
    bool flags[NCCL_LOG_RANKS_MAX] = {false}, any = false;
    unsigned ranks = check->plan->world_size;
    for (unsigned r = 0; r < ranks && r < NCCL_LOG_RANKS_MAX; r++)
        any |= flags[r] = nccl_log_phase(nccl_log_rank(log, (int)r)) == phase;
    hang_report_list(flags, ranks < NCCL_LOG_RANKS_MAX ? ranks : NCCL_LOG_RANKS_MAX, list,
                     LIST_BYTES);
    return any;
}

/* The phases in order: who is behind stands first, and the others wait for them. */
static void put_phases(FILE *out, const struct check *check, const struct nccl_log *log)
{
    char list[LIST_BYTES], behind[LIST_BYTES] = "";
    unsigned groups = 0;
    for (unsigned phase = 0; phase <= NCCL_PHASE_DATA; phase++) {
        if (!list_phase(check, log, (enum nccl_phase)phase, list))
            continue;
        fprintf(out, "  by %s's log, %s: %s\n", library(check), list,
                nccl_phase_words((enum nccl_phase)phase));
        if (groups++ == 0)
            snprintf(behind, sizeof behind, "%s", list);
    }
    if (groups > 1)
        fprintf(out, "  behind: %s; the others wait\n", behind);
}

static void put_warnings(FILE *out, const struct check *check, const struct nccl_log *log)
{
    for (unsigned i = 0; i < log->processes_n; i++) {
        const struct nccl_log_process *process = &log->process[i];
        unsigned k = 0;
        while (k < i && strcmp(log->process[k].warning, process->warning) != 0)
            k++;
        if (k == i && process->warning[0])
            fprintf(out, "  %s warns: %s\n", library(check), process->warning);
    }
}

/* The next line of what launch said; false: there is none. */
static bool next_line(const char **at, const char *end, char line[512])
{
    if (*at == end)
        return false;
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));
    size_t n = (size_t)((newline ? newline : end) - *at);
    char raw[512];
    snprintf(raw, sizeof raw, "%.*s", (int)n, *at);
    clean(line, 512, raw);
    *at = newline ? newline + 1 : end;
    return true;
}

/* Of a hang: what the ranks do, by launch's own report; else the last lines. */
static void put_said(FILE *out, const struct check_run *run)
{
    static const char prefix[] = "launch:   rank";
    size_t n;
    char line[512];
    const char *text = tail_text(&run->trial.end.said, &n), *at = text, *end = text + n;
    unsigned lines = 0, skip = 0;
    while (next_line(&at, end, line))
        lines++;
    skip = run->outcome != CHECK_HANGS && lines > SAID_LINES ? lines - SAID_LINES : 0;
    for (at = text; next_line(&at, end, line);)
        if (run->outcome != CHECK_HANGS) {
            if (skip ? (skip--, false) : *line)
                fprintf(out, "  | %s\n", line);
        } else if (strncmp(line, prefix, sizeof prefix - 1) == 0) {
            fprintf(out, "  %s\n", line + strlen("launch:   "));
        }
}

/* ---- a run ---- */

static void put_sums(FILE *out, const struct check *check, const struct check_run *run)
{
    unsigned ranks = check->plan->world_size;
    for (unsigned r = 0; r < ranks; r++) {
        const struct check_sum *sum = &run->sums[r];
        if (!sum->told)
            continue;
        fprintf(out, "rank %u of %u: sum = %lld", r, ranks, sum->sum);
        if (sum->sum != check_right_sum(ranks))
            fprintf(out, " is wrong, %lld is right", check_right_sum(ranks));
        fputc('\n', out);
    }
}

static void put_run_name(FILE *out, const struct check *check, const struct check_run *run)
{
    fprintf(out, "%s", run->rung->words);
    const char *before = " (";
    for (const struct check_run *r = check->run; r <= run; r++)
        if (r->rung->variable) {
            fprintf(out, "%s%s=%s", before, r->rung->variable, r->rung->value);
            before = " ";
        }
    fputs(*before == ' ' && before[1] == '\0' ? "): " : ": ", out);
}

void check_text_run(FILE *out, const struct check *check, const struct check_run *run)
{
    static const char *const words[] = {
        [CHECK_PASSES] = "every sum is right",
        [CHECK_HANGS] = "hangs",
        [CHECK_WRONG] = "a sum is wrong",
        [CHECK_FAILS] = "fails",
    };
    if (run->outcome != CHECK_PASSES || run != check->run) {
        put_run_name(out, check, run);
        fprintf(out, "%s", words[run->outcome]);
        if (run->outcome == CHECK_HANGS)
            fprintf(out, ", no sign of life for %g s", check->limit_ms / 1000.0);
        if (run->outcome == CHECK_FAILS && run->trial.end.code)
            fprintf(out, ", exit code %d", run->trial.end.code);
        fputc('\n', out);
    }
    put_sums(out, check, run);
    /* Of later runs one line is enough: they fail as the first did, or say what is new. */
    if (run->outcome != CHECK_PASSES && run == check->run) {
        if (run->outcome == CHECK_HANGS && !check->host)
            put_phases(out, check, run->trial.log);
        put_said(out, run);
        put_warnings(out, check, run->trial.log);
    }
    fflush(out);
}

/* ---- the verdict ---- */

/* What of this machine fits the cure. */
static void put_evidence(FILE *out, const struct check *check, const struct check_rung *cure)
{
    char type[32];
    struct statvfs shm;
    const struct gpu_list *gpus = &check->plan->gpus;
    if (strcmp(cure->name, "p2p") == 0)
        for (unsigned i = 0; i < gpus->n; i++)
            if (sysfile_read(type, sizeof type, check->sysroot,
                             "/sys/bus/pci/devices/%s/iommu_group/type", gpus->gpu[i].pci) > 0 &&
                strncmp(type, "DMA", 3) == 0) {
                fprintf(out, "  seen: the IOMMU translates what GPU %s sends\n", gpus->gpu[i].pci);
                return;
            }
    if (strcmp(cure->name, "shm") == 0 && statvfs("/dev/shm", &shm) == 0)
        fprintf(out, "  seen: /dev/shm has %llu MiB free\n",
                (unsigned long long)shm.f_bavail * shm.f_frsize >> 20);
}

/* Ways that the user's own settings take away: then they were not tried. */
static void put_untried(FILE *out, const struct check *check)
{
    struct nccl_conf conf;
    nccl_conf_read(&conf, check->sysroot, environ, NULL, check->plan->gpus.vendor == GPU_AMD);
    for (size_t i = 0; i < CHECK_RUNGS_N; i++) {
        const struct check_rung *rung = &CHECK_RUNGS[i];
        const struct nccl_setting *set =
            rung->variable ? nccl_conf_find(&conf, rung->variable) : NULL;
        if (set && strcmp(set->value, rung->value) == 0)
            fprintf(out, "  not tried: what %s=%s (%s) keeps %s from\n", set->name, set->value,
                    set->where, library(check));
    }
}

static void put_what_was_tried(FILE *out, const struct check *check)
{
    const struct nccl_log *log = check->run[check->runs_n - 1].trial.log;
    unsigned ranks = check->plan->world_size;
    fprintf(out, "%u rank%s ", ranks, ranks == 1 ? "" : "s");
    if (check->host)
        fprintf(out, "in host memory (no GPU that NCCL could use)");
    else
        fprintf(out, "over %s%s%s", library(check), log->version[0] ? " " : "", log->version);
    if (check->shared)
        fprintf(out, ", GPUs shared");
}

void check_text_verdict(FILE *out, const struct check *check)
{
    const struct check_rung *cure = check_cure(check);
    fprintf(out, "%s: ", check_verdict_name(check->verdict));
    if (check->verdict == CHECK_HEALTHY) {
        put_what_was_tried(out, check);
        fprintf(out, ", every sum is right, in %.1f s\n", check->run[0].trial.seconds);
    } else if (cure) {
        fprintf(out, "%s\n  to mend it: %s\n", cure->meaning, cure->fix);
        put_evidence(out, check, cure);
        fprintf(out, "  until then: ");
        for (unsigned i = 0; i < check->runs_n; i++)
            if (check->run[i].rung->variable)
                fprintf(out, "%s=%s ", check->run[i].rung->variable, check->run[i].rung->value);
        fprintf(out, "launch ... works, more slowly\n");
    } else {
        put_what_was_tried(out, check);
        if (check->runs_n > 1)
            fprintf(out, ": no way that %s has works, sockets neither", library(check));
        fputs("\n  to find out: launch doctor\n", out);
    }
    if (!check->host)
        put_untried(out, check);
}
