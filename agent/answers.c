/* SPDX-License-Identifier: MIT */
#include "answers.h"

#include "../proto/clock.h"
#include "news.h"
#include "procstate.h"
#include "sysfile.h"

#include <stdio.h>
#include <string.h>

/* What does not fit is cut: it is for people. */
#define PUT(array, ...) (void)!snprintf(array, sizeof(array), __VA_ARGS__)

static uint64_t ms_since(uint64_t then_ns)
{
    return (clock_now_ns() - then_ns) / NS_PER_MS;
}

/* ---- the job ---- */

static void put_gpus(const struct gpu_set *set, char *text, size_t size)
{
    size_t used = 0;
    for (unsigned i = 0; i < set->n && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? "," : "", set->entry[i]);
}

static void describe(void *user, struct wire_job *ret)
{
    const struct job *job = user;
    const struct job_spec *spec = job->config->spec;
    ret->pid = getppid();
    ret->world_size = job->world_size;
    ret->alive = group_alive(&job->group);
    ret->restarts = job->restarts;
    ret->max_restarts = spec->max_restarts;
    ret->healings = job->after.healings;
    ret->generation = job->generation;
    ret->flags = (job->relay ? WIRE_JOB_PIPED : 0) |
                 (spec->detach && job->config->logs->dir ? WIRE_JOB_DETACHED : 0);
    ret->age_ms = ms_since(job->since_ns);
    ret->state_age_ms = ms_since(job->state_since_ns);
    PUT(ret->state, "%s", lifecycle_state_name(job->life.state));
    PUT(ret->run_id, "%s", spec->run_id);
    PUT(ret->name, "%s", spec->name ? spec->name : "");
    PUT(ret->program, "%s", spec->argv[0]);
    put_gpus(&job->config->plan->gpu_set, ret->gpus, sizeof ret->gpus);
    PUT(ret->log_dir, "%s", job->config->logs->dir ? job->config->logs->dir : "");
}

/* ---- a rank ---- */

/* Of the worker itself, not of what it started. */
static void read_usage(pid_t pid, struct wire_rank *ret)
{
    char text[1024];
    unsigned long long user_ticks, system_ticks;
    long long pages;
    if (sysfile_read(text, sizeof text, "", "/proc/%d/stat", (int)pid) <= 0)
        return;
    /* Fields 14, 15 and 24 of proc(5). */
    const char *at = procstate_fields(text);
    if (!at || sscanf(at,
                      " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d "
                      "%*d %*u %*u %lld",
                      &user_ticks, &system_ticks, &pages) != 3)
        return;
    ret->cpu_ms = (user_ticks + system_ticks) * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
    ret->rss_kb = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

/* The last line that is not empty; of a progress bar what it shows now. */
static void put_last_line(const char *text, size_t n, char *line, size_t size)
{
    while (n > 0 && strchr("\r\n", text[n - 1]))
        n--;
    size_t first = n;
    while (first > 0 && !strchr("\r\n", text[first - 1]))
        first--;
    size_t length = n - first < size ? n - first : size - 1;
    memcpy(line, text + first, length);
    line[length] = '\0';
}

static void put_output(const struct job *job, uint32_t index, struct wire_rank *ret)
{
    enum relay_stream_kind kind;
    uint64_t last_ms;
    size_t n;
    ret->output_age_ms = WIRE_NEVER;
    if (!job->relay || !relay_last(job->relay, index, &kind, &last_ms))
        return;
    ret->output_age_ms = uv_now(&job->loop) - last_ms;
    const char *text = relay_tail_of(job->relay, index, kind, &n);
    put_last_line(text, n, ret->line, sizeof ret->line);
}

static void put_process(const struct rank *rank, struct wire_rank *ret)
{
    ret->pid = rank->pid;
    if (!rank_alive(rank))
        return;
    ret->age_ms = ms_since(rank->started_ns);
    read_usage(rank->pid, ret);
}

/* i: its number. */
static void describe_standby(const struct job *job, uint32_t i, struct wire_rank *ret)
{
    const struct gpu_set *set = &job->config->plan->gpu_set;
    bool lives = rank_alive(&job->group.spares[i]) && job->attempt.board.board.head;
    put_process(&job->group.spares[i], ret);
    ret->standby = 1;
    ret->rank = i;
    ret->output_age_ms = WIRE_NEVER;
    ret->stage = lives && host_board_is_warm(&job->attempt.board, i) ? STAGE_JOINED : STAGE_NONE;
    if (set->n)
        PUT(ret->gpu, "%s",
            set->entry[environ_rank_of(&job->start.job, job->world_size + i) % set->n]);
}

static void describe_rank(void *user, uint32_t index, struct wire_rank *ret)
{
    const struct job *job = user;
    if (index >= job->world_size) {
        describe_standby(job, index - job->world_size, ret);
        return;
    }
    const struct rank *rank = &job->group.ranks[index];
    const struct gpu_set *set = &job->config->plan->gpu_set;
    put_process(rank, ret);
    if (job->heal.loss[index] == LOSS_FOR_GOOD) {
        PUT(ret->end, "lost; the job goes on without it (launch grow)");
    } else if (rank->ended) {
        char text[256];
        rank_describe_end(rank, text, sizeof text);
        PUT(ret->end, "%.63s", text);
    }
    if (job->attempt.board.board.head) {
        const struct progress progress = host_board_progress(&job->attempt.board, index);
        ret->stage = progress.stage;
        ret->step = progress.step;
        ret->entered = progress.entered;
        ret->finished = progress.finished;
    }
    if (set->n)
        PUT(ret->gpu, "%s", set->entry[index % set->n]);
    put_output(job, index, ret);
}

static void show_output(void *user, uint32_t index, unsigned stream, struct wire_output *ret)
{
    const struct job *job = user;
    size_t n = 0;
    const char *text = job->relay ? relay_tail_of(job->relay, index, stream - 1, &n) : "";
    ret->n = (uint32_t)(n < sizeof ret->text ? n : sizeof ret->text);
    memcpy(ret->text, text, ret->n);
}

static int act(void *user, const struct wire_request *request, pid_t who, struct err *err)
{
    return news_on_request(user, request, who, err);
}

struct control_source answers_of(struct job *job)
{
    return (struct control_source){.describe = describe,
                                   .describe_rank = describe_rank,
                                   .show_output = show_output,
                                   .act = act,
                                   .world_size = job->world_size,
                                   .standbys = job->group.spares_n,
                                   .user = job};
}
