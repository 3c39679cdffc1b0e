/* SPDX-License-Identifier: MIT */
#include "../json.h"
#include "transports.h"

#include <inttypes.h>
#include <string.h>

#define PAIRS_NAMED 6

/* ---- for people ---- */

/* A square of texts, as wide as its widest. */
static void put_matrix(FILE *out, const struct transports *t,
                       void (*cell)(const struct transports *t, unsigned from, unsigned to,
                                    char *text, size_t size))
{
    char text[NCCL_VIA_BYTES + 16];
    int width = 4;
    unsigned n = t->log->ranks;
    for (unsigned from = 0; from < n; from++)
        for (unsigned to = 0; to < n; to++) {
            cell(t, from, to, text, sizeof text);
            width = (int)strlen(text) > width ? (int)strlen(text) : width;
        }
    fputs("     ", out);
    for (unsigned to = 0; to < n; to++)
        fprintf(out, "  %-*u", to + 1 < n ? width : 0, to);
    for (unsigned from = 0; from < n; from++) {
        fprintf(out, "\n%5u", from);
        for (unsigned to = 0; to < n; to++) {
            cell(t, from, to, text, sizeof text);
            fprintf(out, "  %-*s", to + 1 < n ? width : 0, text);
        }
    }
    fputc('\n', out);
}

static void chosen_cell(const struct transports *t, unsigned from, unsigned to, char *text,
                        size_t size)
{
    char via[NCCL_VIA_BYTES];
    struct transports_pair pair;
    unsigned channels = nccl_log_channels(t->log, from, to);
    transports_judge(t, from, to, &pair);
    nccl_log_cell(t->log, from, to, via);
    if (from == to)
        snprintf(text, size, "X");
    else if (!channels)
        snprintf(text, size, "-");
    else
        snprintf(text, size, "%s x%u%s", via, channels, pair.differs ? " !" : "");
}

static void expected_cell(const struct transports *t, unsigned from, unsigned to, char *text,
                          size_t size)
{
    struct transports_pair pair;
    transports_judge(t, from, to, &pair);
    if (from == to)
        snprintf(text, size, "X");
    else
        snprintf(text, size, "%s%s%s%s", transports_way_name(pair.expected), *pair.link ? " (" : "",
                 pair.link, *pair.link ? ")" : "");
}

/* All pairs that differ in the same way for the same reason: one line. seen: those that are told already. */
static void put_difference(FILE *out, const struct transports *t,
                           bool seen[NCCL_LOG_RANKS_MAX][NCCL_LOG_RANKS_MAX], unsigned from,
                           unsigned to)
{
    struct transports_pair first, pair;
    unsigned n = 0;
    transports_judge(t, from, to, &first);
    if (!first.differs || seen[from][to])
        return;
    fputs("  !", out);
    for (unsigned a = 0; a < t->log->ranks; a++)
        for (unsigned b = 0; b < t->log->ranks; b++) {
            transports_judge(t, a, b, &pair);
            if (a == b || !pair.differs || pair.chosen != first.chosen ||
                pair.expected != first.expected || strcmp(pair.why, first.why) != 0)
                continue;
            seen[a][b] = true;
            if (n++ < PAIRS_NAMED)
                fprintf(out, "%s%u to %u", n > 1 ? ", " : " ", a, b);
        }
    if (n > PAIRS_NAMED)
        fprintf(out, " and %u more", n - PAIRS_NAMED);
    fprintf(out, ": %s, not %s: %s\n", transports_way_name(first.chosen),
            transports_way_name(first.expected), first.why);
}

static void put_differences(FILE *out, const struct transports *t)
{
    static bool seen[NCCL_LOG_RANKS_MAX][NCCL_LOG_RANKS_MAX];
    unsigned n = t->log->ranks, connected = 0, differ = 0;
    struct transports_pair pair;
    memset(seen, 0, sizeof seen);
    for (unsigned from = 0; from < n; from++)
        for (unsigned to = 0; to < n; to++) {
            transports_judge(t, from, to, &pair);
            connected += from != to && pair.chosen != WAY_NONE;
            differ += from != to && pair.differs;
        }
    fprintf(out, "%u connections, %u not as expected%s\n", connected, differ, differ ? ":" : "");
    for (unsigned from = 0; from < n; from++)
        for (unsigned to = 0; to < n; to++)
            if (from != to)
                put_difference(out, t, seen, from, to);
}

void transports_text(FILE *out, const struct transports *t)
{
    const struct nccl_log *log = t->log;
    const char *library = gpu_collectives(t->topology->list.vendor);
    fprintf(out, "What %s %s chose, from row to column, and over how many channels:\n", library,
            log->version);
    put_matrix(out, t, chosen_cell);
    fprintf(out, "What the topology lets one expect:\n");
    put_matrix(out, t, expected_cell);
    put_differences(out, t);
    if (log->path[0])
        fprintf(out, "between the GPUs of a ring %s sees: %s\n", library, log->path);
    if (log->nvls)
        fprintf(out, "NVLS (NVLink SHARP): %s\n", log->nvls > 0 ? "used" : "can't be had");
    for (unsigned i = 0; i < log->choices_n; i++)
        fprintf(out, "%s of %" PRIu64 " bytes: %s, %s\n", log->choice[i].what, log->choice[i].bytes,
                log->choice[i].algorithm, log->choice[i].protocol);
}

/* ---- for programs ---- */

static void put_pair(FILE *out, const struct transports *t, unsigned from, unsigned to)
{
    struct transports_pair pair;
    char via[NCCL_VIA_BYTES];
    struct json_members m = {out, "\n    {", ", "};
    bool connected = nccl_log_channels(t->log, from, to) > 0;
    transports_judge(t, from, to, &pair);
    json_number(&m, "from", true, from);
    json_number(&m, "to", true, to);
    json_text(&m, "via", connected ? nccl_log_cell(t->log, from, to, via) : NULL);
    json_text(&m, "way", pair.chosen ? transports_way_name(pair.chosen) : NULL);
    json_number(&m, "channels", true, nccl_log_channels(t->log, from, to));
    json_bool(&m, "gpudirect_rdma", t->log->gdr[from][to]);
    json_text(&m, "link", pair.link);
    json_text(&m, "expected", pair.expected ? transports_way_name(pair.expected) : NULL);
    json_bool(&m, "differs", pair.differs);
    json_text(&m, "why", pair.why);
    fputc('}', out);
}

static void put_pairs(struct json_members *m, const struct transports *t)
{
    const char *before = "";
    json_name(m, "pairs");
    fputc('[', m->out);
    for (unsigned from = 0; from < t->log->ranks; from++)
        for (unsigned to = 0; to < t->log->ranks; to++)
            if (from != to) {
                fputs(before, m->out);
                put_pair(m->out, t, from, to);
                before = ",";
            }
    fputc(']', m->out);
}

static void put_ranks(struct json_members *m, const struct nccl_log *log)
{
    json_name(m, "ranks");
    fputc('[', m->out);
    for (unsigned r = 0; r < log->ranks; r++) {
        const struct nccl_log_process *process = nccl_log_rank(log, (int)r);
        struct json_members rank = {m->out, r ? ",\n    {" : "\n    {", ", "};
        json_number(&rank, "rank", true, r);
        json_number(&rank, "pid", process != NULL, process ? process->pid : 0);
        json_text(&rank, "gpu", process ? process->bus : NULL);
        fputc('}', m->out);
    }
    fputc(']', m->out);
}

static void put_choices(struct json_members *m, const struct nccl_log *log)
{
    json_name(m, "choices");
    fputc('[', m->out);
    for (unsigned i = 0; i < log->choices_n; i++) {
        struct json_members choice = {m->out, i ? ",\n    {" : "\n    {", ", "};
        json_text(&choice, "what", log->choice[i].what);
        json_number(&choice, "bytes", true, (long long)log->choice[i].bytes);
        json_text(&choice, "algorithm", log->choice[i].algorithm);
        json_text(&choice, "protocol", log->choice[i].protocol);
        fputc('}', m->out);
    }
    fputc(']', m->out);
}

static void put_settings(struct json_members *m, const struct nccl_conf *conf)
{
    json_name(m, "settings");
    fputc('[', m->out);
    for (unsigned i = 0; i < conf->n; i++) {
        struct json_members setting = {m->out, i ? ",\n    {" : "\n    {", ", "};
        json_text(&setting, "name", conf->setting[i].name);
        json_text(&setting, "value", conf->setting[i].value);
        json_text(&setting, "where", conf->setting[i].where);
        fputc('}', m->out);
    }
    fputc(']', m->out);
}

void transports_json(FILE *out, const struct transports *t)
{
    struct json_members m = {out, "{\n  ", ",\n  "};
    json_number(&m, "version", true, 1);
    json_text(&m, "nccl", t->log->version);
    json_bool(&m, "shared_gpus", t->shared);
    put_ranks(&m, t->log);
    put_pairs(&m, t);
    json_text(&m, "ring_path", t->log->path);
    json_bool(&m, "nvls", t->log->nvls ? t->log->nvls > 0 : -1);
    json_bool(&m, "collnet", t->log->collnet);
    put_choices(&m, t->log);
    put_settings(&m, t->conf);
    fputs("\n}\n", out);
}
