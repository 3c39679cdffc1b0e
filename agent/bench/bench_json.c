/* SPDX-License-Identifier: MIT */
#include "bench_json.h"

#include "../json.h"
#include "text.h"

#include <fcntl.h>
#include <string.h>

#define FORMAT_VERSION 3 /* of nccl-tests */
#define FILES_MAX 10000

/* The environment of a job may hold secrets: only this of it is written. */
static const char *const telling[] = {"NCCL_", "RCCL_", "CUDA_",
                                      "HIP_",  "HSA_",  "LD_LIBRARY_PATH="};

static bool tells(const char *variable)
{
    for (size_t i = 0; i < ARRAY_LEN(telling); i++)
        if (strncmp(variable, telling[i], strlen(telling[i])) == 0)
            return true;
    return false;
}

static bool all(const char *word)
{
    (void)word;
    return true;
}

static void put_list(struct json_members *m, const char *name, char *const *words, size_t n,
                     bool (*wanted)(const char *word))
{
    const char *between = "";
    json_name(m, name);
    fputc('[', m->out);
    for (size_t i = 0; i < n; i++)
        if (wanted(words[i])) {
            fputs(between, m->out);
            json_put_string(m->out, words[i], strlen(words[i]));
            between = ", ";
        }
    fputc(']', m->out);
}

static size_t length(char *const *words)
{
    size_t n = 0;
    while (words && words[n])
        n++;
    return n;
}

static void put_time(struct json_members *m, const char *name, time_t at)
{
    char text[32] = "";
    struct tm tm;
    if (localtime_r(&at, &tm))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    json_text(m, name, text);
}

static void put_real(struct json_members *m, const char *name, double value)
{
    json_name(m, name);
    fprintf(m->out, "%.6f", value);
}

/* nccl-tests writes booleans so. */
static void put_yes(struct json_members *m, const char *name, bool yes)
{
    json_text(m, name, yes ? "true" : "false");
}

static void put_number(struct json_members *m, const char *name, uint64_t number)
{
    json_number(m, name, true, (long long)number);
}

static struct json_members begin(FILE *out, const char *before)
{
    return (struct json_members){.out = out, .before = before, .between = ", "};
}

static void put_devices(struct json_members *outer, const struct bench_run *run)
{
    json_name(outer, "devices");
    fputc('[', outer->out);
    for (unsigned i = 0; i < run->devices_n; i++) {
        const struct bench_device *d = &run->devices[i];
        struct json_members m = begin(outer->out, i ? ",\n    {" : "\n    {");
        json_number(&m, "rank", true, d->rank);
        json_number(&m, "group", true, 0);
        json_number(&m, "pid", true, d->pid);
        json_text(&m, "hostname", d->host);
        json_number(&m, "device", true, d->device);
        json_text(&m, "device_hex", d->bus);
        json_text(&m, "device_info", d->name);
        json_text(&m, "uuid", d->uuid);
        fputc('}', outer->out);
    }
    fputc(']', outer->out);
}

static void put_config(struct json_members *outer, const struct bench_run *run)
{
    json_name(outer, "config");
    struct json_members m = begin(outer->out, "{");
    put_number(&m, "nthreads", 1);
    put_number(&m, "ngpus", 1);
    put_number(&m, "minimum_bytes", run->min_bytes);
    put_number(&m, "maximum_bytes", run->max_bytes);
    if (run->step_factor > 1)
        put_number(&m, "step_factor", run->step_factor);
    else
        put_number(&m, "step_bytes", run->step_bytes);
    json_number(&m, "warmup_iters", true, run->warmup);
    json_number(&m, "iterations", true, run->iterations);
    put_number(&m, "aggregated_iterations", 1);
    json_number(&m, "validation", true, run->check);
    put_number(&m, "graph", 0);
    put_yes(&m, "blocking_collectives", false);
    put_yes(&m, "per_iter_timing", false);
    put_number(&m, "per_iter_skip", 0);
    put_yes(&m, "parallel_init", false);
    json_text(&m, "collective", bench_collective_name(run->collective));
    json_text(&m, "backend", run->host ? "host" : run->rccl ? "rccl" : "nccl");
    json_number(&m, "ranks", true, run->ranks);
    put_devices(&m, run);
    fputc('}', outer->out);
}

static void put_half(struct json_members *outer, const char *name, const struct bench_half *half)
{
    json_name(outer, name);
    struct json_members m = begin(outer->out, "{");
    put_real(&m, "time", half->time);
    put_real(&m, "alg_bw", half->alg_bw);
    put_real(&m, "bus_bw", half->bus_bw);
    json_number(&m, "nwrong", half->wrong >= 0, half->wrong);
    put_real(&m, "checked", half->checked);
    fputc('}', outer->out);
}

static void put_results(struct json_members *outer, const struct bench_run *run)
{
    json_name(outer, "results");
    fputc('[', outer->out);
    for (unsigned i = 0; i < run->results_n; i++) {
        const struct bench_result *r = &run->results[i];
        struct json_members m = begin(outer->out, i ? ",\n    {" : "\n    {");
        char root[16];
        snprintf(root, sizeof root, "%d", r->root);
        put_number(&m, "size", r->size);
        put_number(&m, "count", r->count);
        json_text(&m, "type", bench_type_name(r->type));
        json_text(&m, "redop", bench_op_name(r->op));
        json_text(&m, "root", root);
        put_half(&m, "out_of_place", &r->out_of_place);
        if (r->has_in_place)
            put_half(&m, "in_place", &r->in_place);
        else
            json_text(&m, "in_place", NULL);
        json_number(&m, "actual_iterations", true, run->iterations);
        json_text(&m, "experiment_name", bench_collective_name(run->collective));
        fputc('}', outer->out);
    }
    fputc(']', outer->out);
}

static void put_pairs(struct json_members *outer, const struct bench_run *run)
{
    json_name(outer, "pairs");
    fputc('[', outer->out);
    for (unsigned i = 0; i < run->pairs_n; i++) {
        const struct bench_pair *p = &run->pairs[i];
        struct json_members m = begin(outer->out, i ? ",\n    {" : "\n    {");
        json_number(&m, "from", true, p->from);
        json_number(&m, "to", true, p->to);
        put_number(&m, "size", p->size);
        put_real(&m, "time", p->time);
        put_real(&m, "alg_bw", p->alg_bw);
        put_real(&m, "both_bw", p->both_bw);
        json_number(&m, "nwrong", p->wrong >= 0, p->wrong);
        fputc('}', outer->out);
    }
    fputc(']', outer->out);
}

static void put_verdict(struct json_members *outer, const struct bench_run *run, double min_bw)
{
    json_name(outer, "out_of_bounds");
    struct json_members m = begin(outer->out, "{");
    json_number(&m, "count", true, bench_wrong(run));
    put_yes(&m, "okay", bench_wrong(run) == 0);
    fputc('}', outer->out);
    json_name(outer, "average_bus_bandwidth");
    m = begin(outer->out, "{");
    put_real(&m, "bandwidth", bench_average(run));
    if (min_bw < 0)
        json_text(&m, "okay", "unchecked");
    else
        put_yes(&m, "okay", bench_fast_enough(run, min_bw));
    fputc('}', outer->out);
}

void bench_json(FILE *out, const struct bench_run *run, const struct bench_context *context)
{
    char error[ERR_TEXT_BYTES];
    snprintf(error, sizeof error, "%s", context->error ? context->error : "");
    struct json_members m = {.out = out, .before = "{\n  ", .between = ",\n  "};
    json_number(&m, "version", true, FORMAT_VERSION);
    json_text(&m, "program", "launch bench " LAUNCH_RELEASE);
    put_time(&m, "start_time", context->start);
    put_list(&m, "args", context->argv, length(context->argv), all);
    put_list(&m, "env", context->env, length(context->env), tells);
    json_number(&m, "nccl_version", true, run->nccl_library);
    json_number(&m, "nccl_headers", true, run->nccl_headers);
    json_number(&m, "cuda_runtime", true, run->cuda_runtime);
    json_number(&m, "cuda_driver", true, run->cuda_driver);
    put_config(&m, run);
    put_results(&m, run);
    put_pairs(&m, run);
    put_verdict(&m, run, context->min_bw);
    put_list(&m, "notes", run->notes, run->notes_n, all);
    put_list(&m, "errors", (char *[]){error}, *error != 0, all);
    put_time(&m, "end_time", context->end);
    fputs("\n}\n", out);
}

void bench_csv(FILE *out, const struct bench_run *run)
{
    if (run->pairs_n) {
        fputs("from,to,size,time_us,algbw,bothbw,wrong\n", out);
        for (unsigned i = 0; i < run->pairs_n; i++) {
            const struct bench_pair *p = &run->pairs[i];
            fprintf(out, "%d,%d,%llu,%.6f,%.6f,%.6f,", p->from, p->to, (unsigned long long)p->size,
                    p->time, p->alg_bw, p->both_bw);
            fprintf(out, p->wrong < 0 ? "\n" : "%lld\n", (long long)p->wrong);
        }
        return;
    }
    fputs("size,count,type,redop,root,place,time_us,algbw,busbw,wrong,checked\n", out);
    for (unsigned i = 0; i < run->results_n; i++)
        for (int in_place = 0; in_place <= run->results[i].has_in_place; in_place++) {
            const struct bench_result *r = &run->results[i];
            const struct bench_half *h = in_place ? &r->in_place : &r->out_of_place;
            fprintf(out, "%llu,%llu,%s,%s,%d,%s,%.6f,%.6f,%.6f,", (unsigned long long)r->size,
                    (unsigned long long)r->count, bench_type_name(r->type), bench_op_name(r->op),
                    r->root, in_place ? "in" : "out", h->time, h->alg_bw, h->bus_bw);
            if (h->wrong < 0)
                fputs(",\n", out);
            else
                fprintf(out, "%lld,%g\n", (long long)h->wrong, h->checked);
        }
}

int bench_file_open(const char *path, FILE **ret, char **ret_name, struct err *err)
{
    for (int i = -1; i < FILES_MAX; i++) {
        AUTO_FREE char *name = NULL;
        if ((i < 0 ? asprintf(&name, "%s", path) : asprintf(&name, "%s.%d", path, i)) < 0) {
            name = NULL;
            return err_set_errno(err, -ENOMEM, "%s", path);
        }
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno == EEXIST)
            continue;
        if (fd < 0)
            return err_set_errno(err, -errno, "%s", name);
        *ret = fdopen(fd, "w");
        if (!*ret) {
            close_fd(&fd);
            return err_set_errno(err, -ENOMEM, "%s", name);
        }
        *ret_name = name;
        name = NULL;
        return 0;
    }
    return err_set(err, -EEXIST, "%s: there are %s.0 to %s.%d already", path, path, path,
                   FILES_MAX - 1);
}
