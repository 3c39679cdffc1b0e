/* SPDX-License-Identifier: MIT */
/* The report for programs: one JSON object with the same facts. Members are always there; null: not known. */
#include "json.h"
#include "report.h"

#include <string.h>

static void put_name(FILE *out, const char *name)
{
    fprintf(out, ",\n  \"%s\": ", name);
}

static void put_text(FILE *out, const char *name, const char *text, size_t n)
{
    put_name(out, name);
    if (text && n)
        json_put_string(out, text, n);
    else
        fputs("null", out);
}

static void put_string(FILE *out, const char *name, const char *text)
{
    put_text(out, name, text, text ? strlen(text) : 0);
}

static void put_number(FILE *out, const char *name, bool known, long long number)
{
    put_name(out, name);
    if (known)
        fprintf(out, "%lld", number);
    else
        fputs("null", out);
}

static void put_others(FILE *out, const struct report *r)
{
    put_name(out, "consequences");
    fputc('[', out);
    for (uint32_t i = 0; i < r->others_n && i < REPORT_OTHERS; i++) {
        fprintf(out, "%s{\"rank\": %u, \"later_s\": %.6f, \"what\": ", i ? ", " : "",
                r->others[i].rank, r->others[i].later_s);
        json_put_string(out, r->others[i].what, strlen(r->others[i].what));
        fputc('}', out);
    }
    fputc(']', out);
    put_number(out, "consequences_total", true, r->others_n);
}

char *report_json(const struct report *r, size_t *ret_n)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_n);
    if (!out)
        return NULL;
    const struct failure *f = r->failure;
    const struct errorfile *said = r->said;
    fprintf(out, "{\n  \"version\": 1");
    put_string(out, "program", r->program);
    put_string(out, "run_id", r->run_id);
    put_number(out, "world_size", true, r->world_size);
    put_number(out, "attempt", true, r->attempt);
    put_number(out, "rank", f->has_rank, f->rank);
    put_number(out, "pid", f->has_rank, f->pid);
    put_string(out, "reason", reason_name(f->reason));
    put_string(out, "what", f->what);
    put_number(out, "worker_exit_code", true, f->exit_code);
    put_number(out, "signal", f->signal != 0, f->signal);
    put_name(out, "core_dumped");
    fputs(f->core ? "true" : "false", out);
    put_number(out, "time", f->at != 0, (long long)f->at);
    put_name(out, "after_s");
    if (f->has_rank)
        fprintf(out, "%.6f", f->after_s);
    else
        fputs("null", out);
    put_string(out, "error", f->error[0] ? f->error : said ? said->message : NULL);
    put_string(out, "traceback", said ? said->traceback : NULL);
    put_text(out, "stderr_tail", r->tail, r->tail_n);
    put_string(out, "evidence", f->evidence);
    put_number(out, "stopped", true, r->stopped);
    put_others(out, r);
    put_string(out, "core", r->core);
    put_string(out, "logs", r->logs);
    put_string(out, "hint", r->hint);
    put_string(out, "next", r->next);
    put_number(out, "exit_code", r->exit_code >= 0, r->exit_code);
    fputs("\n}\n", out);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
