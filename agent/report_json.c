/* SPDX-License-Identifier: MIT */
/* The report for programs: one JSON object with the same facts. Members are always there; null: not known. */
#include "json.h"
#include "report.h"

#include <string.h>

static void put_others(struct json_members *m, const struct report *r)
{
    FILE *out = m->out;
    json_name(m, "consequences");
    fputc('[', out);
    for (uint32_t i = 0; i < r->others_n && i < REPORT_OTHERS; i++) {
        fprintf(out, "%s{\"rank\": %u, \"later_s\": %.6f, \"what\": ", i ? ", " : "",
                r->others[i].rank, r->others[i].later_s);
        json_put_string(out, r->others[i].what, strlen(r->others[i].what));
        fputc('}', out);
    }
    fputc(']', out);
    json_number(m, "consequences_total", true, r->others_n);
}

static void put_reason(struct json_members *m, const struct known_reason *reason)
{
    json_name(m, "known");
    if (!reason->known) {
        fputs("null", m->out);
        return;
    }
    struct json_members inner = {.out = m->out, .before = "{", .between = ", "};
    known_put_json(&inner, reason->known);
    json_bytes(&inner, "warning", reason->warning, reason->warning_n);
    fputc('}', m->out);
}

char *report_json(const struct report *r, size_t *ret_n)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_n);
    if (!out)
        return NULL;
    const struct failure *f = r->failure;
    const struct errorfile *said = r->said;
    struct json_members m = {.out = out, .before = "{\n  ", .between = ",\n  "};
    json_number(&m, "version", true, 1);
    json_text(&m, "program", r->program);
    json_text(&m, "run_id", r->run_id);
    json_number(&m, "world_size", true, r->world_size);
    json_number(&m, "attempt", true, r->attempt);
    json_number(&m, "healings", true, r->healings);
    json_number(&m, "rank", f->has_rank, f->rank);
    json_number(&m, "pid", f->has_rank, f->pid);
    json_text(&m, "reason", reason_name(f->reason));
    json_text(&m, "what", f->what);
    json_number(&m, "worker_exit_code", true, f->exit_code);
    json_number(&m, "signal", f->signal != 0, f->signal);
    json_bool(&m, "core_dumped", f->core);
    json_number(&m, "time", f->at != 0, (long long)f->at);
    json_name(&m, "after_s");
    if (f->has_rank)
        fprintf(out, "%.6f", f->after_s);
    else
        fputs("null", out);
    json_text(&m, "error", f->error[0] ? f->error : said ? said->message : NULL);
    json_text(&m, "traceback", said ? said->traceback : NULL);
    json_bytes(&m, "stderr_tail", r->tail, r->tail_n);
    json_text(&m, "evidence", f->evidence);
    json_number(&m, "stopped", true, r->stopped);
    put_others(&m, r);
    json_text(&m, "core", r->core);
    json_text(&m, "logs", r->logs);
    put_reason(&m, &r->reason);
    json_text(&m, "hint", r->hint);
    json_text(&m, "next", r->next);
    json_number(&m, "exit_code", r->exit_code >= 0, r->exit_code);
    fputs("\n}\n", out);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
