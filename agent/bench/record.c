/* SPDX-License-Identifier: MIT */
/* See record.h. All of it comes from a process that may be broken: numbers have ranges, texts lose their control
 * characters, lists have an end. */
#include "record.h"

#include "../../proto/board.h"
#include "../json.h"

#include <math.h>
#include <string.h>

#define RESULTS_MAX (1u << 17)
#define NOTES_MAX 256u
#define TEXT_BYTES 256 /* of a note */

/* ---- names ---- */

static const struct {
    const char *name;
    bool reduces, rooted;
} collectives[] = {
#define X(id, name, reduces, rooted, ...) {name, reduces, rooted},
    BENCH_COLLECTIVES(X)
#undef X
};
static const struct {
    const char *name;
    unsigned bytes;
} types[] = {
#define X(id, name, bytes) {name, bytes},
    BENCH_TYPES(X)
#undef X
};
static const char *const ops[] = {
#define X(id, name) name,
    BENCH_OPS(X)
#undef X
};

const char *bench_collective_name(enum bench_collective collective)
{
    return collectives[collective].name;
}

const char *bench_type_name(enum bench_type type)
{
    return types[type].name;
}

const char *bench_op_name(int op)
{
    return op < 0 ? "none" : ops[op];
}

unsigned bench_type_bytes(enum bench_type type)
{
    return types[type].bytes;
}

bool bench_reduces(enum bench_collective collective)
{
    return collectives[collective].reduces;
}

bool bench_has_root(enum bench_collective collective)
{
    return collectives[collective].rooted;
}

double bench_factor(enum bench_collective collective, int ranks)
{
    double n = ranks;
    switch (collective) {
#define X(id, name, reduces, rooted, each, factor)                                                 \
    case BENCH_##id:                                                                               \
        return factor;
        BENCH_COLLECTIVES(X)
#undef X
    default:
        return 0;
    }
}

int bench_collective_find(const char *name)
{
    for (int i = 0; i < BENCH_COLLECTIVES_N; i++)
        if (strcmp(collectives[i].name, name) == 0)
            return i;
    return -1;
}

int bench_type_find(const char *name)
{
    for (int i = 0; i < BENCH_TYPES_N; i++)
        if (strcmp(types[i].name, name) == 0)
            return i;
    return -1;
}

int bench_op_find(const char *name)
{
    for (int i = 0; i < BENCH_OPS_N; i++)
        if (strcmp(ops[i], name) == 0)
            return i;
    return -1;
}

/* ---- members of a record ---- */

/* One object; the first member that is missing or makes no sense is remembered, what it gives then is 0. */
struct reader {
    struct json_value object;
    const char *bad;
};

static bool member(struct reader *r, const char *name, enum json_type type, struct json_value *ret)
{
    if (json_member(&r->object, name, ret) && ret->type == type)
        return true;
    if (!r->bad)
        r->bad = name;
    return false;
}

static int64_t whole(struct reader *r, const char *name, int64_t min, int64_t max)
{
    struct json_value value;
    int64_t number = 0;
    if (member(r, name, JSON_NUMBER, &value) && !json_get_whole(&value, min, max, &number))
        r->bad = r->bad ? r->bad : name;
    return number;
}

/* 0 where there is none. */
static int64_t whole_or_none(struct reader *r, const char *name, int64_t max)
{
    struct json_value value;
    if (!json_member(&r->object, name, &value) || value.type == JSON_NULL)
        return 0;
    return whole(r, name, 0, max);
}

/* Not negative, and finite. */
static double real(struct reader *r, const char *name, double max)
{
    struct json_value value;
    double number;
    if (!member(r, name, JSON_NUMBER, &value))
        return 0;
    if (json_get_real(&value, &number) && number <= max)
        return number;
    r->bad = r->bad ? r->bad : name;
    return 0;
}

static void text(struct reader *r, const char *name, char *ret, size_t size)
{
    struct json_value value;
    ret[0] = '\0';
    if (member(r, name, JSON_STRING, &value))
        json_line(&value, ret, size);
}

/* The index of a name that find() knows. */
static int known(struct reader *r, const char *name, int (*find)(const char *name))
{
    char word[32];
    text(r, name, word, sizeof word);
    int found = find(word);
    if (found < 0 && !r->bad)
        r->bad = name;
    return found < 0 ? 0 : found;
}

static int find_op_or_none(const char *name)
{
    return strcmp(name, "none") == 0 ? BENCH_OPS_N : bench_op_find(name);
}

/* ---- records ---- */

struct record {
    struct bench_run *run;
    struct reader r;
    struct bench_result *at;
};

static int take_bench(struct record *rec, struct err *err)
{
    struct bench_run *run = rec->run;
    struct reader *r = &rec->r;
    int64_t version = whole(r, "version", 0, INT32_MAX);
    if (!r->bad && version != BENCH_RECORDS_VERSION)
        return err_set(err, -EINVAL, "it is of version %d, and %d is known", (int)version,
                       BENCH_RECORDS_VERSION);
    char backend[16];
    text(r, "backend", backend, sizeof backend);
    run->collective = (enum bench_collective)known(r, "collective", bench_collective_find);
    run->host = strcmp(backend, "host") == 0;
    run->rccl = strcmp(backend, "rccl") == 0;
    run->nccl_library = (int)whole_or_none(r, "library", INT32_MAX);
    run->nccl_headers = (int)whole_or_none(r, "headers", INT32_MAX);
    run->cuda_runtime = (int)whole_or_none(r, "runtime", INT32_MAX);
    run->cuda_driver = (int)whole_or_none(r, "driver", INT32_MAX);
    run->min_bytes = (uint64_t)whole(r, "min_bytes", 0, INT64_MAX);
    run->max_bytes = (uint64_t)whole(r, "max_bytes", 0, INT64_MAX);
    run->step_bytes = (uint64_t)whole_or_none(r, "step_bytes", INT64_MAX);
    run->step_factor = (uint64_t)whole_or_none(r, "step_factor", INT64_MAX);
    run->iterations = (int)whole(r, "iterations", 0, INT32_MAX);
    run->warmup = (int)whole(r, "warmup", 0, INT32_MAX);
    run->check = (int)whole(r, "check", 0, INT32_MAX);
    int ranks = (int)whole(r, "ranks", 1, BOARD_MAX_RANKS);
    if (!r->bad)
        run->ranks = ranks; /* from now on there is a run */
    return 0;
}

/* Room for one more behind n elements. */
static int grow(void *array, unsigned n, unsigned max, size_t size, struct err *err)
{
    void **at = array;
    if (n >= max)
        return err_set(err, -EINVAL, "more than %u of them", max);
    if (n & (n - 1))
        return 0; /* room is doubled at powers of two */
    void *more = realloc(*at, (n ? 2 * (size_t)n : 1) * size);
    if (!more)
        return err_set_errno(err, -ENOMEM, "records");
    *at = more;
    return 0;
}

static int take_device(struct record *rec, struct err *err)
{
    struct bench_run *run = rec->run;
    struct reader *r = &rec->r;
    struct bench_device d = {.rank = (int)whole(r, "rank", 0, run->ranks - 1),
                             .pid = (long)whole(r, "pid", 0, INT32_MAX),
                             .device = (int)whole(r, "device", -1, INT32_MAX)};
    text(r, "host", d.host, sizeof d.host);
    text(r, "bus", d.bus, sizeof d.bus);
    text(r, "name", d.name, sizeof d.name);
    text(r, "uuid", d.uuid, sizeof d.uuid);
    if (r->bad)
        return 0;
    int rc = grow(&run->devices, run->devices_n, (unsigned)run->ranks, sizeof d, err);
    if (rc == 0)
        run->devices[run->devices_n++] = d;
    return rc;
}

static int take_note(struct record *rec, struct err *err)
{
    struct bench_run *run = rec->run;
    char note[TEXT_BYTES];
    if (rec->r.object.type != JSON_STRING) {
        rec->r.bad = "note";
        return 0;
    }
    json_line(&rec->r.object, note, sizeof note);
    int rc = grow(&run->notes, run->notes_n, NOTES_MAX, sizeof *run->notes, err);
    if (rc == 0 && !(run->notes[run->notes_n] = strdup(note)))
        rc = err_set_errno(err, -ENOMEM, "records");
    run->notes_n += rc == 0;
    return rc;
}

static struct bench_result what(struct reader *r, int ranks)
{
    struct bench_result result = {.size = (uint64_t)whole(r, "size", 0, INT64_MAX),
                                  .type = (enum bench_type)known(r, "type", bench_type_find),
                                  .op = known(r, "redop", find_op_or_none),
                                  .root = (int)whole(r, "root", -1, ranks - 1)};
    if (result.op == BENCH_OPS_N)
        result.op = -1;
    return result;
}

static int take_at(struct record *rec, struct err *err)
{
    (void)err;
    struct bench_result at = what(&rec->r, rec->run->ranks);
    if (!rec->r.bad)
        *rec->at = at;
    return 0;
}

static int64_t wrong(struct reader *r)
{
    struct json_value value;
    return json_member(&r->object, "nwrong", &value) && value.type == JSON_NULL
               ? -1
               : whole(r, "nwrong", 0, INT64_MAX);
}

static struct bench_half half(struct reader *r, const char *name)
{
    struct reader inner = {.bad = r->bad};
    struct bench_half h = {0};
    if (member(r, name, JSON_OBJECT, &inner.object)) {
        h = (struct bench_half){.time = real(&inner, "time", HUGE_VAL),
                                .alg_bw = real(&inner, "alg_bw", HUGE_VAL),
                                .bus_bw = real(&inner, "bus_bw", HUGE_VAL),
                                .wrong = wrong(&inner),
                                .checked = real(&inner, "checked", 1)};
        r->bad = inner.bad;
    }
    return h;
}

static int take_result(struct record *rec, struct err *err)
{
    struct bench_run *run = rec->run;
    struct reader *r = &rec->r;
    struct json_value in_place;
    struct bench_result result = what(r, run->ranks);
    result.count = (uint64_t)whole(r, "count", 0, INT64_MAX);
    result.out_of_place = half(r, "out_of_place");
    result.has_in_place =
        json_member(&r->object, "in_place", &in_place) && in_place.type != JSON_NULL;
    if (result.has_in_place)
        result.in_place = half(r, "in_place");
    if (r->bad)
        return 0;
    int rc = grow(&run->results, run->results_n, RESULTS_MAX, sizeof result, err);
    if (rc == 0)
        run->results[run->results_n++] = result;
    return rc;
}

static int take_pair(struct record *rec, struct err *err)
{
    struct bench_run *run = rec->run;
    struct reader *r = &rec->r;
    struct bench_pair pair = {.from = (int)whole(r, "from", 0, run->ranks - 1),
                              .to = (int)whole(r, "to", 0, run->ranks - 1),
                              .size = (uint64_t)whole(r, "size", 0, INT64_MAX),
                              .time = real(r, "time", HUGE_VAL),
                              .alg_bw = real(r, "alg_bw", HUGE_VAL),
                              .both_bw = real(r, "both_bw", HUGE_VAL),
                              .wrong = wrong(r)};
    if (r->bad)
        return 0;
    int rc = grow(&run->pairs, run->pairs_n, RESULTS_MAX, sizeof pair, err);
    if (rc == 0)
        run->pairs[run->pairs_n++] = pair;
    return rc;
}

static int take_end(struct record *rec, struct err *err)
{
    (void)err;
    struct bench_run *run = rec->run;
    struct json_value timeout;
    run->wrong = (int)whole(&rec->r, "wrong", 0, INT32_MAX);
    run->timed_out = json_member(&rec->r.object, "timeout", &timeout) && timeout.type == JSON_TRUE;
    run->ended = !rec->r.bad;
    return 0;
}

static const struct {
    enum bench_record kind;
    const char *name;
    int (*take)(struct record *rec, struct err *err);
} kinds[] = {
    {BENCH_RECORD_BENCH, "bench", take_bench},    {BENCH_RECORD_DEVICE, "device", take_device},
    {BENCH_RECORD_NOTE, "note", take_note},       {BENCH_RECORD_AT, "at", take_at},
    {BENCH_RECORD_RESULT, "result", take_result}, {BENCH_RECORD_PAIR, "pair", take_pair},
    {BENCH_RECORD_END, "end", take_end},
};

/* Which record a line wants to be: {"name". ARRAY_LEN(kinds): none. */
static size_t kind_of(const char *line, size_t n)
{
    size_t i = 0;
    for (; i < ARRAY_LEN(kinds); i++) {
        size_t name_n = strlen(kinds[i].name);
        if (n > name_n + 3 && memcmp(line, "{\"", 2) == 0 &&
            memcmp(line + 2, kinds[i].name, name_n) == 0 && line[2 + name_n] == '"')
            break;
    }
    return i;
}

int bench_run_take(struct bench_run *run, const char *line, size_t n, struct bench_result *ret_at,
                   struct err *err)
{
    size_t i = kind_of(line, n);
    if (i == ARRAY_LEN(kinds))
        return BENCH_RECORD_NONE;
    const char *name = kinds[i].name;
    struct json_value root;
    struct record rec = {.run = run, .at = ret_at};
    if (json_parse(&root, line, n) < 0 || !json_member(&root, name, &rec.r.object))
        return err_set(err, -EINVAL, "the job's record '%s' is no JSON", name);
    if (run->ended || (run->ranks == 0) != (kinds[i].kind == BENCH_RECORD_BENCH))
        return err_set(err, -EINVAL, "the job's record '%s' is out of order", name);
    int rc = kinds[i].take(&rec, err);
    if (rc < 0)
        return err_wrap(err, rc, "the job's record '%s'", name);
    if (rec.r.bad)
        return err_set(err, -EINVAL, "the job's record '%s' makes no sense: look at its '%s'", name,
                       rec.r.bad);
    return (int)kinds[i].kind;
}

void bench_run_finish(struct bench_run *run)
{
    for (unsigned i = 0; i < run->notes_n; i++)
        free(run->notes[i]);
    free(run->notes);
    free(run->devices);
    free(run->results);
    free(run->pairs);
    *run = (struct bench_run){0};
}

/* ---- what follows from it ---- */

double bench_average(const struct bench_run *run)
{
    double sum = 0;
    unsigned n = 0;
    for (unsigned i = 0; i < run->results_n; i++) {
        const struct bench_result *r = &run->results[i];
        sum += r->out_of_place.bus_bw + (r->has_in_place ? r->in_place.bus_bw : 0);
        n += 1 + r->has_in_place;
    }
    return n ? sum / n : 0;
}

int bench_wrong(const struct bench_run *run)
{
    int n = 0;
    for (unsigned i = 0; i < run->results_n; i++) {
        const struct bench_result *r = &run->results[i];
        n += (r->out_of_place.wrong > 0) + (r->has_in_place && r->in_place.wrong > 0);
    }
    for (unsigned i = 0; i < run->pairs_n; i++)
        n += run->pairs[i].wrong > 0;
    return n > run->wrong ? n : run->wrong;
}

const struct bench_device *bench_device_of(const struct bench_run *run, int rank)
{
    for (unsigned i = 0; i < run->devices_n; i++)
        if (run->devices[i].rank == rank)
            return &run->devices[i];
    return NULL;
}
