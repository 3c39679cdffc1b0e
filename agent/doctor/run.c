/* SPDX-License-Identifier: MIT */
/* How a look at a running job is told. */
#include "run.h"

#include "../../proto/clock.h"
#include "../clean.h"
#include "../hang_report.h"
#include "../json.h"
#include "run_look.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#define RAW_LINES 20 /* of an answer that was not understood, or of another program */
#define LINE_BYTES 300
#define WHY_BYTES 300

/* The rank that holds up the others, and why; -1: none does, as far as can be seen. */
static int64_t find_culprit(const struct run_look *l, char why[WHY_BYTES])
{
    const struct ras_note *behind = run_look_behind(l);
    if (l->stuck && l->verdict.why != HANG_SILENT) {
        hang_describe_why(&l->hang, &l->verdict, why, WHY_BYTES);
        return l->verdict.rank;
    }
    if (!l->stuck || !behind)
        return -1;
    char text[WHY_BYTES - 20];
    ras_describe(behind, text, sizeof text);
    snprintf(why, WHY_BYTES, "has, in NCCL, %s", text);
    return run_look_rank(l, behind->pid);
}

/* ---- for people ---- */

/* Lines of somebody else's, a few of them. */
static void print_lines(FILE *out, const char *text)
{
    char line[LINE_BYTES];
    for (unsigned i = 0; *text && i < RAW_LINES; i++) {
        size_t n = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : sizeof line), text);
        fprintf(out, "  | %s\n", clean(line, sizeof line, line));
        text += n + (text[n] == '\n');
    }
    if (*text)
        fputs("  | ...\n", out);
}

static void print_job(FILE *out, const struct wire_job *job)
{
    char dir[LINE_BYTES], again[CLIENT_AGAIN_BYTES];
    fprintf(out, "%s%s%s%s: %s for %.0f s, %" PRIu32 " of %" PRIu32 " ranks alive, %s\n",
            job->run_id, job->name[0] ? " (" : "", job->name, job->name[0] ? ")" : "", job->state,
            (double)job->state_age_ms / 1000, job->alive, job->world_size,
            client_again(job, again));
    if (job->log_dir[0])
        fprintf(out, "log files: %s\n", clean(dir, sizeof dir, job->log_dir));
}

static void print_verdict(FILE *out, const struct run_look *l)
{
    char why[WHY_BYTES], list[100];
    double apart_s = (double)l->apart_ns / NS_PER_S;
    int64_t culprit = find_culprit(l, why);
    if (culprit >= 0)
        fprintf(out, "rank %" PRId64 " (pid %" PRId32 ") holds up the others: it %s\n", culprit,
                l->ranks[1].ranks[culprit].pid, why);
    else if (l->stuck)
        fprintf(out, "nothing tells which rank holds up the others: they are equally far by what "
                     "launch and NCCL count\n");
    hang_report_list(l->moved, l->n, list, sizeof list);
    if (memchr(l->moved, true, l->n))
        fprintf(out, "%s moved within %.1f s (a step, a collective or output)\n", list, apart_s);
    else if (l->stuck)
        fprintf(out, "no rank has moved for %.1f s (no step, no collective, no output)\n", apart_s);
}

static void print_ranks(FILE *out, const struct run_look *l)
{
    AUTO_FREE char *text =
        hang_report(&l->hang, &l->verdict, l->evidence.ranks, l->blind.text, NULL);
    fputs("what the ranks do:\n", out);
    for (const char *at = text ? text : ""; *at;) {
        size_t n = strcspn(at, "\n");
        fprintf(out, "  %.*s\n", (int)n, at);
        at += n + (at[n] == '\n');
    }
    if (l->python[0]) {
        fprintf(out, "Python of rank %" PRIu32 ", by py-spy:\n", l->verdict.rank);
        print_lines(out, l->python);
    }
}

static void print_note(FILE *out, const struct run_look *l, const struct ras_note *note)
{
    char text[200];
    int64_t rank = run_look_rank(l, note->pid);
    ras_describe(note, text, sizeof text);
    if (rank >= 0)
        fprintf(out, "  rank %" PRId64 ": %s\n", rank, text);
    else if (note->pid)
        fprintf(out, "  process %" PRId32 ", which is none of this job's: %s\n", note->pid, text);
    else if (note->ranks > 1)
        fprintf(out, "  %" PRIu32 " ranks: %s\n", note->ranks, text);
    else
        fprintf(out, "  a rank: %s\n", text);
}

static void print_nccl(FILE *out, const struct run_look *l)
{
    const struct ras *r = &l->ras[1];
    if (l->ras_trouble.code) {
        fprintf(out, "NCCL: could not look (%s)\n", l->ras_trouble.text);
        return;
    }
    if (!r->understood) {
        fprintf(out, "NCCL: what answers at %s is not understood:\n", l->address);
        print_lines(out, r->answer);
        return;
    }
    fprintf(out, "NCCL %s: %" PRIu32 " communicator%s; ", r->version, r->comms,
            r->comms == 1 ? "" : "s");
    if (l->ras[0].operations != r->operations)
        fputs("it launches operations\n", out);
    else if (r->notes_n)
        fputs("ranks differ\n", out);
    else
        fprintf(out, "all ranks answer and have launched the same operations%s\n",
                l->stuck && r->comms ? ": if they wait inside one, its transport is stuck" : "");
    for (uint32_t i = 0; i < r->notes_n; i++)
        print_note(out, l, &r->notes[i]);
}

static void print_text(FILE *out, const struct run_look *l)
{
    print_job(out, &l->job.job);
    print_verdict(out, l);
    print_ranks(out, l);
    print_nccl(out, l);
}

/* ---- for programs ---- */

static void put_evidence(struct json_members *m, const struct evidence_rank *e)
{
    unsigned parts = e ? atomic_load(&e->parts) : 0;
    char state[2] = {parts ? e->proc.state : '\0'};
    json_text(m, "process_state", state);
    json_text(m, "wait", parts ? e->proc.wait : NULL);
    json_text(m, "call", parts ? e->proc.call : NULL);
    json_text(m, "main_thread", parts > 1 && e->stacks.n ? e->stacks.stack[0].text : NULL);
    json_text(m, "no_stack", parts > 1 && !e->stacks.n ? e->stacks.why : NULL);
}

static void put_rank(FILE *out, const struct run_look *l, uint32_t i)
{
    const struct wire_rank *r = &l->ranks[1].ranks[i];
    struct json_members m = {.out = out, .before = i ? ",\n  {" : "\n  {", .between = ", "};
    json_number(&m, "rank", true, r->rank);
    json_number(&m, "pid", r->pid > 0, r->pid);
    json_text(&m, "stage", stage_name(r->stage));
    json_number(&m, "step", true, (long long)r->step);
    json_number(&m, "collectives_entered", true, (long long)r->entered);
    json_number(&m, "collectives_finished", true, (long long)r->finished);
    json_bool(&m, "moved", l->moved[i]);
    json_bool(&m, "stopped", l->stopped[i]);
    put_evidence(&m, l->evidence.ranks ? &l->evidence.ranks[i] : NULL);
    json_text(&m, "end", r->end);
    fputc('}', out);
}

static void put_nccl(FILE *out, const struct run_look *l)
{
    const struct ras *r = &l->ras[1];
    struct json_members m = {.out = out, .before = "{", .between = ", "};
    json_text(&m, "could_not_look", l->ras_trouble.code ? l->ras_trouble.text : NULL);
    json_bool(&m, "understood", l->ras_trouble.code ? -1 : r->understood);
    json_text(&m, "version", r->version);
    json_number(&m, "communicators", r->understood, r->comms);
    json_name(&m, "notes");
    fputc('[', out);
    for (uint32_t i = 0; i < r->notes_n; i++) {
        char text[200];
        int64_t rank = run_look_rank(l, r->notes[i].pid);
        struct json_members note = {.out = out, .before = i ? ", {" : "{", .between = ", "};
        ras_describe(&r->notes[i], text, sizeof text);
        json_number(&note, "rank", rank >= 0, rank);
        json_number(&note, "pid", r->notes[i].pid > 0, r->notes[i].pid);
        json_text(&note, "what", text);
        fputc('}', out);
    }
    fputs("]}", out);
}

static void print_json(FILE *out, const struct run_look *l)
{
    char why[WHY_BYTES];
    int64_t culprit = find_culprit(l, why);
    struct json_members m = {.out = out, .before = "{", .between = ", "};
    json_text(&m, "run_id", l->job.job.run_id);
    json_text(&m, "name", l->job.job.name);
    json_text(&m, "state", l->job.job.state);
    json_bool(&m, "stuck", l->stuck);
    json_number(&m, "culprit", culprit >= 0, culprit);
    json_text(&m, "why", culprit >= 0 ? why : NULL);
    json_text(&m, "could_not_look", l->blind.code ? l->blind.text : NULL);
    json_text(&m, "python", l->python);
    json_name(&m, "nccl");
    put_nccl(out, l);
    json_name(&m, "ranks");
    fputc('[', out);
    for (uint32_t i = 0; i < l->n; i++)
        put_rank(out, l, i);
    fputs("\n]}\n", out);
}

int doctor_run(FILE *out, const char *run, bool json, struct err *err)
{
    struct run_look l;
    int rc = run_look_take(&l, run, clock_deadline_ns(DOCTOR_RUN_MS), err);
    if (rc >= 0) {
        (json ? print_json : print_text)(out, &l);
        rc = l.stuck;
    }
    run_look_finish(&l);
    return rc;
}
