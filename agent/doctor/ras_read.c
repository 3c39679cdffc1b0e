/* SPDX-License-Identifier: MIT */
/* What RAS answers: JSON, or text for people whose form has changed a little with every release. */
#include "../clean.h"
#include "../json.h"
#include "ras.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define IN_PROGRESS 7 /* ncclInProgress */

static struct ras_note *add(struct ras *r, enum ras_kind kind, const char *comm)
{
    static struct ras_note beyond;
    struct ras_note *note = r->notes_n < RAS_NOTES_MAX ? &r->notes[r->notes_n++] : &beyond;
    *note = (struct ras_note){.kind = kind, .ranks = 1, .rank = UINT32_MAX};
    snprintf(note->comm, sizeof note->comm, "%s", comm);
    return note;
}

/* ---- JSON ---- */

static const char *const OPERATIONS[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast",
                                         "Reduce",    "AlltoAll",  "Gather",        "Scatter",
                                         "SendRecv",  "Send",      "Recv"};

static int64_t number_of(const struct json_value *object, const char *name, int64_t max)
{
    struct json_value value;
    int64_t number = -1;
    if (json_member(object, name, &value))
        (void)!json_get_whole(&value, 0, max, &number);
    return number;
}

static bool is_true(const struct json_value *object, const char *name)
{
    struct json_value value;
    return json_member(object, name, &value) && value.type == JSON_TRUE;
}

static void name_rank(struct ras_note *note, const struct json_value *rank)
{
    int64_t number = number_of(rank, "rank", UINT32_MAX), pid = number_of(rank, "pid", INT32_MAX);
    note->rank = number < 0 ? UINT32_MAX : (uint32_t)number;
    note->pid = pid < 0 ? 0 : (int32_t)pid;
}

/* Who has launched fewer of an operation than others. */
static void compare(struct ras *r, const char *comm, const struct json_value *ranks,
                    const char *operation)
{
    int64_t most = 0;
    for (int pass = 0; pass < 2; pass++)
        for (struct json_value rank = {0}; json_next(ranks, &rank);) {
            struct json_value counts;
            if (!json_member(&rank, "collective_counts", &counts))
                continue;
            int64_t count = number_of(&counts, operation, INT64_MAX);
            if (count < 0)
                continue;
            if (pass == 0) {
                r->operations += (uint64_t)count;
                most = count > most ? count : most;
            } else if (count < most) {
                struct ras_note *note = add(r, RAS_BEHIND, comm);
                name_rank(note, &rank);
                snprintf(note->operation, sizeof note->operation, "%s", operation);
                note->count = (uint64_t)count;
                note->most = (uint64_t)most;
            }
        }
}

static void read_states(struct ras *r, const char *comm, const struct json_value *ranks)
{
    for (struct json_value rank = {0}; json_next(ranks, &rank);) {
        struct json_value status;
        if (!json_member(&rank, "status", &status))
            continue;
        int64_t init = number_of(&status, "init_state", INT32_MAX);
        int64_t error = number_of(&status, "async_error", INT32_MAX);
        if (init == IN_PROGRESS) {
            name_rank(add(r, RAS_STARTING, comm), &rank);
        } else if (init > 0 || (error > 0 && error != IN_PROGRESS)) {
            struct ras_note *note = add(r, RAS_ERROR, comm);
            name_rank(note, &rank);
            note->count = (uint64_t)(init > 0 ? init : error);
        }
    }
}

/* Processes that answer but have left the communicator are no trouble of their own. */
static void read_missing(struct ras *r, const char *comm, const struct json_value *missing)
{
    for (struct json_value rank = {0}; json_next(missing, &rank);) {
        struct json_value status;
        if (!json_member(&rank, "status", &status))
            continue;
        if (is_true(&status, "considered_dead"))
            name_rank(add(r, RAS_DEAD, comm), &rank);
        else if (is_true(&status, "unresponsive"))
            name_rank(add(r, RAS_SILENT, comm), &rank);
    }
}

static bool read_json(struct ras *r, const char *text, size_t n)
{
    struct json_value root, comms, value, ranks;
    if (json_parse(&root, text, n) < 0 || !json_member(&root, "communicators", &comms))
        return false;
    if (json_member(&root, "nccl_version", &value))
        json_string(&value, r->version, sizeof r->version);
    for (struct json_value comm = {0}; json_next(&comms, &comm); r->comms++) {
        char name[24] = "";
        if (json_member(&comm, "hash", &value))
            json_string(&value, name, sizeof name);
        clean(name, sizeof name, name);
        if (json_member(&comm, "missing_ranks", &ranks))
            read_missing(r, name, &ranks);
        if (!json_member(&comm, "ranks", &ranks))
            continue;
        read_states(r, name, &ranks);
        for (size_t i = 0; i < ARRAY_LEN(OPERATIONS); i++)
            compare(r, name, &ranks, OPERATIONS[i]);
    }
    return true;
}

/* ---- text ---- */

enum part { PART_NONE, PART_COUNTS, PART_SILENT, PART_DEAD };

struct reading {
    struct ras *ras;
    enum part part;
    char comm[24], operation[24];
    uint32_t first;         /* note of this part */
    struct ras_note *group; /* ranks that are told as a number; their list may follow */
};

static struct ras_note *add_count(struct reading *t, uint32_t ranks, uint64_t count)
{
    struct ras_note *note = add(t->ras, RAS_BEHIND, t->comm);
    memcpy(note->operation, t->operation, sizeof note->operation);
    note->ranks = ranks;
    note->count = count;
    t->ras->operations += count * ranks;
    return note;
}

/* Only now is it known who is behind. Groups whose members were listed stay as these only. */
static void end_part(struct reading *t)
{
    struct ras *r = t->ras;
    uint64_t most = 0;
    uint32_t kept = t->first;
    if (t->part != PART_COUNTS) {
        t->part = PART_NONE;
        return;
    }
    for (uint32_t i = t->first; i < r->notes_n; i++)
        most = r->notes[i].count > most ? r->notes[i].count : most;
    for (uint32_t i = t->first; i < r->notes_n; i++) {
        r->notes[i].most = most;
        if (r->notes[i].count < most && r->notes[i].ranks)
            r->notes[kept++] = r->notes[i];
    }
    r->notes_n = kept;
    t->part = PART_NONE;
}

static void begin_part(struct reading *t, enum part part)
{
    end_part(t);
    t->part = part;
    t->first = t->ras->notes_n;
    t->group = NULL;
}

static int32_t process_in(const char *line)
{
    int pid = 0;
    const char *at = strstr(line, "rocess ");
    return at && sscanf(at, "rocess %9d", &pid) == 1 && pid > 0 ? pid : 0;
}

/* "6 ranks have launched up to operation 6649", whose members may follow. */
static void read_group(struct reading *t, const char *line)
{
    unsigned ranks;
    uint64_t count = 0;
    if (sscanf(line, " %9u ranks have launched up to operation %19" SCNu64, &ranks, &count) != 2 &&
        !(sscanf(line, " %9u ranks have", &ranks) == 1 && strstr(line, "not launched any")))
        return;
    t->group = add_count(t, ranks, count);
}

/* "Rank 3 -- GPU 3 managed by process 9", of the group above; or "Rank 3 has launched up to operation 5 -- ...". */
static void read_rank(struct reading *t, const char *line)
{
    unsigned rank;
    uint64_t count;
    if (sscanf(line, " Rank %9u", &rank) != 1)
        return;
    bool alone = strstr(line, " has ") != NULL;
    if (!alone && t->group) {
        count = t->group->count;
        t->group->ranks = 0;
    } else if (strstr(line, "not launched any")) {
        count = 0;
    } else if (sscanf(line, " Rank %*u has launched up to operation %19" SCNu64, &count) != 1) {
        return;
    }
    struct ras_note *note = add_count(t, 1, count);
    note->rank = rank;
    note->pid = process_in(line);
}

static void read_counts_line(struct reading *t, const char *line)
{
    if (strncmp(line, "  Rank ", 7) == 0)
        read_rank(t, line);
    else
        read_group(t, line);
}

static void read_line(struct reading *t, const char *line)
{
    static const char differ[] = "  Communicator ranks have different ";
    if (line[0] == '#') {
        begin_part(t, PART_NONE);
        const char *open = strchr(line, '(');
        snprintf(t->comm, sizeof t->comm, "%.*s", open ? (int)strcspn(open + 1, ")") : 0,
                 open ? open + 1 : "");
    } else if (strncmp(line, differ, sizeof differ - 1) == 0) {
        const char *operation = line + sizeof differ - 1;
        begin_part(t, strstr(operation, "operation counts") ? PART_COUNTS : PART_NONE);
        snprintf(t->operation, sizeof t->operation, "%.*s", (int)strcspn(operation, " "),
                 operation);
    } else if (strncmp(line, "INCOMPLETE", 10) == 0 || strncmp(line, "DEAD", 4) == 0) {
        begin_part(t, line[0] == 'D' ? PART_DEAD : PART_SILENT);
    } else if (line[0] == '\0') {
        end_part(t);
    } else if (t->part == PART_COUNTS) {
        read_counts_line(t, line);
    } else if (t->part != PART_NONE && strncmp(line, "  Process ", 10) == 0) {
        add(t->ras, t->part == PART_DEAD ? RAS_DEAD : RAS_SILENT, "")->pid = process_in(line);
    }
}

/* A row of the table of communicators, "    0         1         4         8        32        32   RUNNING  MISMATCH". */
static bool is_group_row(const char *line)
{
    unsigned group, comms;
    return line[0] == ' ' && sscanf(line, "%9u %9u %*u %*[0-9-] %*u %*u", &group, &comms) == 2;
}

static bool read_text(struct ras *r, const char *text)
{
    struct reading t = {.ras = r};
    char line[1024];
    bool table = false;
    for (; *text; text += text[0] != '\0') {
        size_t n = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : sizeof line), text);
        clean(line, sizeof line, line);
        text += n;
        if (strncmp(line, "NCCL version ", 13) == 0)
            snprintf(r->version, sizeof r->version, "%.*s", (int)strcspn(line + 13, " "),
                     line + 13);
        table |= strncmp(line, "Group     Comms", 15) == 0 ||
                 strncmp(line, "No communicator data", 20) == 0;
        if (table && t.part == PART_NONE)
            r->comms += is_group_row(line);
        read_line(&t, line);
    }
    end_part(&t);
    return table;
}

/* ---- both ---- */

void ras_read(struct ras *ret, char *answer, size_t n)
{
    *ret = (struct ras){.answer = answer, .answer_n = n};
    const char *brace = answer[0] == '{' ? answer : strstr(answer, "\n{");
    if (brace)
        ret->understood = read_json(ret, brace, n - (size_t)(brace - answer));
    else
        ret->understood = read_text(ret, answer);
    clean(ret->version, sizeof ret->version, ret->version);
}
