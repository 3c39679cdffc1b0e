/* SPDX-License-Identifier: MIT */
/* A baseline as JSON. Members that nccl-tests' -J has as well are called and meant as there, so that what reads its files
 * reads these; what only a baseline has is in "launch" and "history". Read as input: anybody may have had the file. */
#include "baseline.h"

#include "../../proto/board.h"
#include "../json.h"

#include <string.h>

#define MAGIC "{\"program\": \"launch bench\""
#define NCCL_TESTS_VERSION 3 /* of its JSON */

/* ---- written ---- */

static void put_half(struct json_members *m, const char *name, const struct bench_half *half,
                     double spread)
{
    struct json_members inner = {.out = m->out, .before = "", .between = ", "};
    json_name(m, name);
    fputs("{", m->out);
    json_real(&inner, "time", half->time);
    json_real(&inner, "alg_bw", half->alg_bw);
    json_real(&inner, "bus_bw", half->bus_bw);
    json_number(&inner, "nwrong", half->wrong >= 0, half->wrong);
    json_real(&inner, "spread", spread);
    fputs("}", m->out);
}

static void put_point(FILE *out, const struct baseline_point *point)
{
    const struct bench_result *r = &point->result;
    struct json_members m = {.out = out, .before = "", .between = ", "};
    fputs("{", out);
    json_number(&m, "size", true, (long long)r->size);
    json_number(&m, "count", true, (long long)r->count);
    json_text(&m, "type", bench_type_name(r->type));
    json_text(&m, "redop", bench_op_name(r->op));
    json_number(&m, "root", true, r->root);
    put_half(&m, "out_of_place", &r->out_of_place, point->spread[BASELINE_OUT]);
    if (r->has_in_place)
        put_half(&m, "in_place", &r->in_place, point->spread[BASELINE_IN]);
    fputs("}", out);
}

static void put_device(FILE *out, const struct bench_device *device)
{
    struct json_members m = {.out = out, .before = "", .between = ", "};
    fputs("{", out);
    json_number(&m, "rank", true, device->rank);
    json_number(&m, "device", true, device->device);
    json_text(&m, "hostname", device->host);
    json_text(&m, "device_hex", device->bus);
    json_text(&m, "device_info", device->name);
    json_text(&m, "uuid", device->uuid);
    fputs("}", out);
}

static void put_event(FILE *out, const struct baseline_event *event)
{
    struct json_members m = {.out = out, .before = "", .between = ", "};
    fputs("{", out);
    json_text(&m, "date", event->date);
    json_number(&m, "runs", true, event->runs);
    json_real(&m, "peak", event->peak);
    json_real(&m, "average", event->average);
    json_text(&m, "driver", event->driver);
    json_text(&m, "nccl", event->nccl);
    json_text(&m, "verdict", baseline_verdict_name(event->verdict));
    json_number(&m, "sizes", true, event->sizes);
    fputs("}", out);
}

static void put_config(struct json_members *top, const struct baseline *b)
{
    FILE *out = top->out;
    struct json_members m = {.out = out, .before = "\n    ", .between = ",\n    "};
    json_name(top, "config");
    fputs("{", out);
    json_number(&m, "nthreads", true, 1);
    json_number(&m, "ngpus", true, 1);
    json_number(&m, "minimum_bytes", true, (long long)b->min_bytes);
    json_number(&m, "maximum_bytes", true, (long long)b->max_bytes);
    if (b->step_factor)
        json_number(&m, "step_factor", true, (long long)b->step_factor);
    else
        json_number(&m, "step_bytes", true, (long long)b->step_bytes);
    json_number(&m, "warmup_iters", true, b->warmup);
    json_number(&m, "iterations", true, b->iterations);
    json_number(&m, "aggregated_iterations", true, 1);
    json_name(&m, "devices");
    for (unsigned i = 0; i < b->devices_n; i++) {
        fputs(i ? ",\n      " : "[\n      ", out);
        put_device(out, &b->devices[i]);
    }
    fprintf(out, "%s]}", b->devices_n ? "" : "[");
}

/* Ours: what a baseline is compared by. */
static void put_launch(struct json_members *top, const struct baseline *b)
{
    struct json_members m = {.out = top->out, .before = "", .between = ",\n    "};
    json_name(top, "launch");
    fputs("{", top->out);
    json_number(&m, "format", true, BASELINE_FORMAT);
    json_text(&m, "release", LAUNCH_RELEASE);
    json_text(&m, "collective", bench_collective_name(b->collective));
    json_bool(&m, "host", b->host);
    json_bool(&m, "shared", b->shared);
    json_number(&m, "ranks", true, b->ranks);
    json_number(&m, "runs", true, b->runs);
    for (enum identity_part part = 0; part < IDENTITY_PARTS_N; part++)
        json_text(&m, identity_name(part), b->identity.part[part]);
    fputs("}", top->out);
}

void baseline_write(FILE *out, const struct baseline *b)
{
    struct json_members top = {.out = out, .before = ",\n  ", .between = ",\n  "};
    fputs(MAGIC, out);
    put_launch(&top, b);
    json_number(&top, "version", true, NCCL_TESTS_VERSION);
    json_text(&top, "start_time", b->date);
    json_number(&top, "nccl_version", true, b->nccl_library);
    put_config(&top, b);
    json_name(&top, "results");
    for (unsigned i = 0; i < b->points_n; i++) {
        fputs(i ? ",\n    " : "[\n    ", out);
        put_point(out, &b->points[i]);
    }
    fprintf(out, "],\n  \"out_of_bounds\": {\"count\": 0, \"okay\": \"true\"}");
    fprintf(out, ",\n  \"average_bus_bandwidth\": {\"bandwidth\": %.9g, \"okay\": \"unchecked\"}",
            baseline_average(b));
    json_name(&top, "history");
    for (unsigned i = 0; i < b->history_n; i++) {
        fputs(i ? ",\n    " : "[\n    ", out);
        put_event(out, &b->history[i]);
    }
    fprintf(out, "%s]\n}\n", b->history_n ? "" : "[");
}

/* ---- read ---- */

/* One object of the file; the first member that is missing or makes no sense is remembered, what it gives is 0 then. */
struct reader {
    struct json_value object;
    const char *bad;
};

static void bad(struct reader *r, const char *name)
{
    if (!r->bad)
        r->bad = name;
}

static int64_t whole(struct reader *r, const char *name, int64_t min, int64_t max)
{
    struct json_value value;
    int64_t number = 0;
    if (!json_member(&r->object, name, &value) || !json_get_whole(&value, min, max, &number))
        bad(r, name);
    return number;
}

static int64_t whole_or(struct reader *r, const char *name, int64_t max, int64_t none)
{
    struct json_value value;
    return json_member(&r->object, name, &value) && value.type != JSON_NULL ? whole(r, name, 0, max)
                                                                            : none;
}

static double real(struct reader *r, const char *name)
{
    struct json_value value;
    double number = 0;
    if (!json_member(&r->object, name, &value) || !json_get_real(&value, &number) ||
        number > BASELINE_REAL_MAX)
        bad(r, name);
    return number;
}

/* null is "". */
static void text(struct reader *r, const char *name, char *ret, size_t size)
{
    struct json_value value = {.type = JSON_NULL};
    ret[0] = '\0';
    if (!json_member(&r->object, name, &value) ||
        (value.type != JSON_STRING && value.type != JSON_NULL))
        bad(r, name);
    else if (value.type == JSON_STRING)
        json_line(&value, ret, size);
}

static bool flag(struct reader *r, const char *name)
{
    struct json_value value = {.type = JSON_NULL};
    json_member(&r->object, name, &value);
    if (value.type != JSON_TRUE && value.type != JSON_FALSE)
        bad(r, name);
    return value.type == JSON_TRUE;
}

static int known(struct reader *r, const char *name, int (*find)(const char *name))
{
    char word[32];
    text(r, name, word, sizeof word);
    int found = find(word);
    if (found < 0)
        bad(r, name);
    return found < 0 ? 0 : found;
}

static int find_op_or_none(const char *name)
{
    return strcmp(name, "none") == 0 ? BENCH_OPS_N : bench_op_find(name);
}

static int find_verdict(const char *name)
{
    int verdict = BASELINE_VERDICTS_N - 1;
    while (verdict >= 0 && strcmp(baseline_verdict_name((enum baseline_verdict)verdict), name) != 0)
        verdict--;
    return verdict;
}

static struct reader inside(struct reader *r, const char *name, enum json_type type)
{
    struct reader inner = {.object = {.type = JSON_NULL}};
    if (!json_member(&r->object, name, &inner.object) || inner.object.type != type) {
        bad(r, name);
        inner.object.type = JSON_NULL; /* no member is found in it */
    }
    return inner;
}

static struct bench_half take_half(struct reader *r, const char *name, double *ret_spread)
{
    struct reader inner = inside(r, name, JSON_OBJECT);
    struct bench_half half = {.time = real(&inner, "time"),
                              .alg_bw = real(&inner, "alg_bw"),
                              .bus_bw = real(&inner, "bus_bw"),
                              .wrong = whole_or(&inner, "nwrong", INT64_MAX, -1)};
    *ret_spread = real(&inner, "spread");
    if (inner.bad)
        bad(r, inner.bad);
    return half;
}

static void take_point(struct reader *r, struct baseline *b)
{
    struct baseline_point *point = &b->points[b->points_n++];
    struct json_value value;
    point->result = (struct bench_result){
        .size = (uint64_t)whole(r, "size", 0, INT64_MAX),
        .count = (uint64_t)whole(r, "count", 0, INT64_MAX),
        .type = (enum bench_type)known(r, "type", bench_type_find),
        .op = known(r, "redop", find_op_or_none),
        .root = (int)whole(r, "root", -1, BOARD_MAX_RANKS - 1),
        .out_of_place = take_half(r, "out_of_place", &point->spread[BASELINE_OUT]),
        .has_in_place = json_member(&r->object, "in_place", &value) && value.type != JSON_NULL};
    if (point->result.op == BENCH_OPS_N)
        point->result.op = -1;
    if (point->result.has_in_place)
        point->result.in_place = take_half(r, "in_place", &point->spread[BASELINE_IN]);
}

static void take_device(struct reader *r, struct baseline *b)
{
    struct bench_device *device = &b->devices[b->devices_n++];
    device->rank = (int)whole(r, "rank", 0, BOARD_MAX_RANKS - 1);
    device->device = (int)whole(r, "device", -1, INT32_MAX);
    text(r, "hostname", device->host, sizeof device->host);
    text(r, "device_hex", device->bus, sizeof device->bus);
    text(r, "device_info", device->name, sizeof device->name);
    text(r, "uuid", device->uuid, sizeof device->uuid);
}

static void take_event(struct reader *r, struct baseline *b)
{
    struct baseline_event *event = &b->history[b->history_n++];
    text(r, "date", event->date, sizeof event->date);
    event->runs = (int)whole(r, "runs", 1, INT32_MAX);
    event->peak = real(r, "peak");
    event->average = real(r, "average");
    text(r, "driver", event->driver, sizeof event->driver);
    text(r, "nccl", event->nccl, sizeof event->nccl);
    event->verdict = (enum baseline_verdict)known(r, "verdict", find_verdict);
    event->sizes = (int)whole(r, "sizes", 0, INT32_MAX);
}

static unsigned count(const struct json_value *array)
{
    struct json_value at = {0};
    unsigned n = 0;
    while (json_next(array, &at))
        n++;
    return n;
}

/* Each element of an array, of which there is room for `most`. */
static void take_each(struct reader *r, const char *name, unsigned most, struct baseline *b,
                      void (*take)(struct reader *r, struct baseline *b))
{
    struct reader array = inside(r, name, JSON_ARRAY), element = {0};
    unsigned n = 0;
    while (!r->bad && json_next(&array.object, &element.object)) {
        if (n++ == most) {
            bad(r, name);
            return;
        }
        take(&element, b);
        if (element.bad)
            bad(r, element.bad);
    }
}

static void take_launch(struct reader *top, struct baseline *b)
{
    struct reader r = inside(top, "launch", JSON_OBJECT);
    b->collective = (enum bench_collective)known(&r, "collective", bench_collective_find);
    b->host = flag(&r, "host");
    b->shared = flag(&r, "shared");
    b->ranks = (int)whole(&r, "ranks", 1, BOARD_MAX_RANKS);
    b->runs = (int)whole(&r, "runs", 1, INT32_MAX);
    for (enum identity_part part = 0; part < IDENTITY_PARTS_N; part++)
        text(&r, identity_name(part), b->identity.part[part], IDENTITY_BYTES);
    if (r.bad)
        bad(top, r.bad);
}

static int take_config(struct reader *top, struct baseline *b)
{
    struct reader r = inside(top, "config", JSON_OBJECT);
    struct json_value devices;
    b->min_bytes = (uint64_t)whole(&r, "minimum_bytes", 0, INT64_MAX);
    b->max_bytes = (uint64_t)whole(&r, "maximum_bytes", 0, INT64_MAX);
    b->step_bytes = (uint64_t)whole_or(&r, "step_bytes", INT64_MAX, 0);
    b->step_factor = (uint64_t)whole_or(&r, "step_factor", INT64_MAX, 0);
    b->warmup = (int)whole(&r, "warmup_iters", 0, INT32_MAX);
    b->iterations = (int)whole(&r, "iterations", 0, INT32_MAX);
    unsigned n = !r.bad && json_member(&r.object, "devices", &devices) ? count(&devices) : 0;
    n = n < BOARD_MAX_RANKS ? n : BOARD_MAX_RANKS;
    b->devices = calloc(n ? n : 1, sizeof *b->devices);
    if (!b->devices)
        return -ENOMEM;
    take_each(&r, "devices", n, b, take_device);
    if (r.bad)
        bad(top, r.bad);
    return 0;
}

static int take_results(struct reader *top, struct baseline *b)
{
    struct reader r = inside(top, "results", JSON_ARRAY);
    unsigned n = count(&r.object);
    if (!n || n > BASELINE_POINTS_MAX) {
        bad(top, "results");
        return 0;
    }
    b->points = calloc(n, sizeof *b->points);
    if (!b->points)
        return -ENOMEM;
    take_each(top, "results", n, b, take_point);
    return 0;
}

bool baseline_is_ours(const char *text, size_t n)
{
    return n >= strlen(MAGIC) && memcmp(text, MAGIC, strlen(MAGIC)) == 0;
}

/* Whether it is one whole baseline of our format, before its members are looked at. */
static int check_format(struct reader *top, const char *data, size_t n, struct err *err)
{
    struct json_value launch, program;
    if (json_parse(&top->object, data, n) < 0)
        return baseline_is_ours(data, n)
                   ? err_set(err, -EINVAL, "the file is damaged, perhaps cut short")
                   : err_set(err, -EINVAL, "no baseline of launch bench, and no JSON either");
    if (!json_member(&top->object, "launch", &launch) ||
        !json_member(&top->object, "program", &program))
        return err_set(err, -EINVAL,
                       "no baseline of launch bench: it does not say what machine it is of");
    struct reader r = {.object = launch};
    int64_t format = whole(&r, "format", 0, INT32_MAX);
    if (r.bad || format != BASELINE_FORMAT) {
        char release[32];
        text(&r, "release", release, sizeof release);
        return err_set(
            err, -EINVAL,
            "format %lld, written by launch %s; this is launch %s, which knows format %d: "
            "save it anew",
            (long long)format, release[0] ? release : "?", LAUNCH_RELEASE, BASELINE_FORMAT);
    }
    return 0;
}

int baseline_parse(struct baseline *ret, const char *data, size_t n, struct err *err)
{
    struct reader top = {0};
    int rc = check_format(&top, data, n, err);
    if (rc < 0)
        return rc;
    AUTO_FREE struct baseline *b = calloc(1, sizeof *b);
    if (!b)
        return err_set_errno(err, -ENOMEM, "baseline");
    take_launch(&top, b);
    text(&top, "start_time", b->date, sizeof b->date);
    b->nccl_library = (int)whole(&top, "nccl_version", 0, INT32_MAX);
    rc = take_config(&top, b);
    if (rc == 0)
        rc = take_results(&top, b);
    take_each(&top, "history", BASELINE_HISTORY_MAX, b, take_event);
    if (rc < 0)
        rc = err_set_errno(err, rc, "baseline");
    else if (top.bad)
        rc = err_set(err, -EINVAL, "the file is damaged: its \"%s\" makes no sense", top.bad);
    if (rc < 0)
        baseline_finish(b);
    else
        *ret = *b;
    return rc;
}
