/* SPDX-License-Identifier: MIT */
/* launch status: one job, rank by rank, and its standbys. */
#include "../../proto/clock.h"
#include "../../proto/status.h"
#include "../clean.h"
#include "../json.h"
#include "../log.h"
#include "control.h"
#include "standby.h"
#include "words.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define WATCH_MS 1000
#define CLEAR "\x1b[H\x1b[J"

/* Percent of a CPU: since the look before, if that saw the same process; else of its whole life. */
static double cpu_percent(const struct wire_rank *r, const struct client_look *before, uint32_t i)
{
    uint64_t cpu_ms = r->cpu_ms, age_ms = r->age_ms;
    const struct wire_rank *old = before && i < before->n ? &before->ranks[i] : NULL;
    if (old && old->rank == r->rank && old->pid == r->pid && old->age_ms < age_ms &&
        old->cpu_ms <= cpu_ms) {
        cpu_ms -= old->cpu_ms;
        age_ms -= old->age_ms;
    }
    return age_ms ? 100.0 * (double)cpu_ms / (double)age_ms : 0;
}

/* ---- for people ---- */

static void print_job(const struct wire_job *job)
{
    char age[WORDS_AGE_BYTES], since[WORDS_AGE_BYTES], again[CLIENT_AGAIN_BYTES], dir[256];
    printf("%s%s%s%s: %s for %s, %" PRIu32 " of %" PRIu32 " ranks alive, %s (of %" PRIu32
           " after failures), age %s\n",
           job->run_id, job->name[0] ? " (" : "", job->name, job->name[0] ? ")" : "", job->state,
           words_age(job->state_age_ms, since), job->alive, job->world_size,
           client_again(job, again), job->max_restarts, words_age(job->age_ms, age));
    if (job->log_dir[0])
        printf("log files: %s\n", clean(dir, sizeof dir, job->log_dir));
}

static void print_rank(const struct wire_rank *r, double percent)
{
    char gpu[sizeof r->gpu], line[sizeof r->line], end[sizeof r->end], age[WORDS_AGE_BYTES] = "-";
    char pid[16] = "-";
    if (r->pid)
        snprintf(pid, sizeof pid, "%" PRId32, r->pid);
    if (r->output_age_ms != WIRE_NEVER)
        words_age(r->output_age_ms, age);
    printf("%4" PRIu32 "  %7s  %-4.40s  %7.1fM  %5.0f%%  %10" PRIu64 "  %6s  %s\n", r->rank, pid,
           r->gpu[0] ? clean(gpu, sizeof gpu, r->gpu) : "-", (double)r->rss_kb / 1024, percent,
           r->step, age,
           r->end[0] ? clean(end, sizeof end, r->end) : clean(line, sizeof line, r->line));
}

static void print_table(const struct client_job *job, const struct client_look *look,
                        const struct client_look *before)
{
    print_job(&job->job);
    printf("%4s  %7s  %-4s  %8s  %6s  %10s  %6s  %s\n", "RANK", "PID", "GPU", "MEMORY", "CPU",
           "STEP", "OUTPUT", "LAST LINE");
    for (uint32_t i = 0; i < look->n; i++)
        print_rank(&look->ranks[i], cpu_percent(&look->ranks[i], before, i));
    standby_print(look->ranks + look->n, look->standbys);
    if (!(job->job.flags & WIRE_JOB_PIPED))
        printf("(the worker writes to launch's own stdout and stderr: no last line is known)\n");
}

/* ---- for programs ---- */

static void print_json(const struct client_job *job, const struct client_look *look,
                       const struct client_look *before)
{
    printf("{");
    control_put_job(job);
    printf(", \"rank\": [");
    for (uint32_t i = 0; i < look->n; i++) {
        const struct wire_rank *r = &look->ranks[i];
        printf("%s\n  {\"rank\": %" PRIu32 ", \"pid\": %" PRId32, i > 0 ? "," : "", r->rank,
               r->pid);
        json_put_member(stdout, "gpu", r->gpu);
        json_put_member(stdout, "stage", stage_name(r->stage));
        printf(", \"step\": %" PRIu64 ", \"rss_bytes\": %" PRIu64
               ", \"cpu_s\": %.2f, \"cpu_percent\": %.1f, \"age_s\": %.3f, \"output_age_s\": ",
               r->step, r->rss_kb * 1024, (double)r->cpu_ms / 1000, cpu_percent(r, before, i),
               (double)r->age_ms / 1000);
        if (r->output_age_ms == WIRE_NEVER)
            printf("null");
        else
            printf("%.3f", (double)r->output_age_ms / 1000);
        json_put_member(stdout, "last_line", r->line);
        json_put_member(stdout, "end", r->end);
        printf("}");
    }
    printf("\n]");
    standby_print_json(look->ranks + look->n, look->standbys);
    printf("}\n");
}

/* ---- once, or again and again ---- */

static int look_once(struct client_job *job, struct client_look *look, const struct words *words,
                     const struct client_look *before)
{
    struct err err;
    if (client_look(job, words->rank, look, &err) < 0)
        return words_tell(&err);
    if (words->given & WORD_JSON)
        print_json(job, look, before);
    else
        print_table(job, look, before);
    return fflush(stdout) == 0 ? EXIT_CODE_OK : EXIT_CODE_OURS;
}

/* Until the job ends: that closes the socket. */
static int watch(struct client_job *job, const struct words *words)
{
    struct client_look looks[2] = {0};
    struct pollfd p = {.fd = job->fd, .events = POLLIN};
    bool screen = isatty(STDOUT_FILENO) && !(words->given & WORD_JSON);
    int exit_code;
    for (unsigned i = 0;; i++) {
        fputs(screen ? CLEAR : "", stdout);
        exit_code = look_once(job, &looks[i % 2], words, i > 0 ? &looks[(i + 1) % 2] : NULL);
        if (exit_code || poll(&p, 1, WATCH_MS) > 0)
            break;
    }
    free(looks[0].ranks);
    free(looks[1].ranks);
    return exit_code;
}

int cmd_status(int argc, char **argv)
{
    struct words words;
    struct client_job job;
    int exit_code = words_open(&words, argc, argv, WORD_JSON | WORD_WATCH | WORD_RANK, &job);
    if (exit_code >= 0)
        return exit_code;
    struct client_look look = {0};
    if (words.given & WORD_WATCH)
        exit_code = watch(&job, &words);
    else
        exit_code = look_once(&job, &look, &words, NULL);
    free(look.ranks);
    client_close(&job);
    return exit_code;
}
