/* SPDX-License-Identifier: MIT */
/* What the machine makes of a command line: the sweep, what can't be, and the words for the job. */
#include "ask.h"

#include <stdarg.h>

#define SIZES_MAX 100000u /* measurements of one run */
#define MIB (1ull << 20)

uint64_t ask_sizes(const struct bench_ask *ask)
{
    if (!ask->step_factor)
        return (ask->max_bytes - ask->min_bytes) / ask->step_bytes + 1;
    uint64_t n = 1;
    for (uint64_t size = ask->min_bytes ? ask->min_bytes : 1;
         size <= ask->max_bytes / ask->step_factor; size *= ask->step_factor)
        n++;
    return n;
}

/* nccl-tests' own defaults make one size of 32 MiB, which says little of a machine: without -b and -e it is a sweep from
 * latency to bandwidth. On the host it ends where caches and the time of a run do. */
static void fill_sizes(struct bench_ask *ask, bool gpus)
{
    bool given = ask->min_bytes != ASK_OPEN || ask->max_bytes != ASK_OPEN;
    uint64_t most = ask->pairs ? 64 * MIB : gpus ? 1024 * MIB : 64 * MIB;
    if (!given && !ask->pairs && ask->step_bytes == ASK_OPEN && !ask->step_factor)
        ask->step_factor = 2;
    if (ask->max_bytes == ASK_OPEN)
        ask->max_bytes =
            ask->min_bytes != ASK_OPEN && ask->min_bytes > most ? ask->min_bytes : most;
    if (ask->min_bytes == ASK_OPEN)
        ask->min_bytes = ask->pairs || ask->max_bytes < 8 ? ask->max_bytes : 8;
    if (ask->step_bytes == ASK_OPEN)
        ask->step_bytes = MIB;
    if (ask->step_factor == 1) /* nccl-tests' own default, which scripts give */
        ask->step_factor = 0;
}

/* What liblaunch has between processes of a server, and worker/bench_host.c with it. */
#define HOST_COLLECTIVES (1u << BENCH_ALL_REDUCE | 1u << BENCH_ALL_GATHER | 1u << BENCH_BROADCAST)
#define HOST_TYPES                                                                                 \
    (1u << BENCH_TYPE_INT32 | 1u << BENCH_TYPE_INT64 | 1u << BENCH_TYPE_FLOAT |                    \
     1u << BENCH_TYPE_DOUBLE | 1u << BENCH_TYPES_N)
#define HOST_OPS                                                                                   \
    (1u << BENCH_OP_SUM | 1u << BENCH_OP_PROD | 1u << BENCH_OP_MIN | 1u << BENCH_OP_MAX |          \
     1u << BENCH_OPS_N)

static int check_host(const struct bench_ask *ask, struct err *err)
{
    if (ask->pairs)
        return err_set(err, -EINVAL, "--pairs: there is no GPU that this process may use");
    if (!(HOST_COLLECTIVES >> ask->collective & 1))
        return err_set(err, -EINVAL,
                       "%s: there is no GPU that this process may use, and through host memory "
                       "only all_reduce, all_gather and broadcast are measured",
                       bench_collective_name(ask->collective));
    if (!(HOST_TYPES >> ask->type & 1))
        return err_set(err, -EINVAL, "-d %s: without a GPU it is int32, int64, float or double",
                       bench_type_name((enum bench_type)ask->type));
    if (bench_reduces(ask->collective) && !(HOST_OPS >> ask->op & 1))
        return err_set(err, -EINVAL, "-o %s: without a GPU it is sum, prod, min or max",
                       bench_op_name(ask->op));
    return 0;
}

static uint64_t measurements(const struct bench_ask *ask, unsigned ranks)
{
    uint64_t n = ask_sizes(ask);
    if (ask->pairs)
        return n * ranks * (ranks - 1);
    n *= ask->type == BENCH_TYPES_N ? BENCH_TYPES_N : 1;
    if (bench_reduces(ask->collective))
        n *= ask->op == BENCH_OPS_N ? BENCH_OPS_N : 1;
    if (bench_has_root(ask->collective))
        n *= ask->root < 0 ? ranks : 1;
    return n;
}

int ask_settle(struct bench_ask *ask, bool gpus, unsigned ranks, struct err *err)
{
    fill_sizes(ask, gpus);
    if (ask->min_bytes > ask->max_bytes)
        return err_set(err, -EINVAL, "-b: %llu bytes are more than the %llu of -e",
                       (unsigned long long)ask->min_bytes, (unsigned long long)ask->max_bytes);
    if (ask->step_factor && !ask->min_bytes && ask->max_bytes)
        return err_set(err, -EINVAL, "-f: any multiple of -b 0 is 0; begin with -b 1 or more");
    if (measurements(ask, ranks) > SIZES_MAX)
        return err_set(
            err, -EINVAL,
            "-b %llu -e %llu: these are %llu measurements, and at most %u are made; -f 2 "
            "takes fewer sizes",
            (unsigned long long)ask->min_bytes, (unsigned long long)ask->max_bytes,
            (unsigned long long)measurements(ask, ranks), SIZES_MAX);
    if (ask->root >= 0 && (unsigned)ask->root >= ranks)
        return err_set(err, -EINVAL, "-r: there is no rank %d, the ranks are 0 to %u", ask->root,
                       ranks - 1);
    if (ask->pairs && ranks < 2)
        return err_set(err, -EINVAL, "--pairs: there is one rank; -g 2 makes a pair");
    return gpus ? 0 : check_host(ask, err);
}

/* ---- the job's words ---- */

struct arguments {
    char **to;
    char *text, *end;
};

static void PRINTF_LIKE(2, 3) add(struct arguments *a, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(a->text, (size_t)(a->end - a->text), format, ap);
    va_end(ap);
    *a->to++ = a->text;
    a->text += n + 1;
}

void ask_job_arguments(const struct bench_ask *ask, char *ret[ASK_ARGUMENTS_MAX],
                       char text[ASK_TEXT_BYTES])
{
    struct arguments a = {ret, text, text + ASK_TEXT_BYTES};
    const struct {
        const char *flag;
        uint64_t value;
    } numbers[] = {
        {"-b", ask->min_bytes},
        {"-e", ask->max_bytes},
        {ask->step_factor ? "-f" : "-i", ask->step_factor ? ask->step_factor : ask->step_bytes},
        {"-n", ask->iterations},
        {"-w", ask->warmup},
        {"-c", ask->check},
        {"-T", ask->timeout_s}};
    add(&a, "%s", bench_collective_name(ask->collective));
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        add(&a, "%s", numbers[i].flag);
        add(&a, "%llu", (unsigned long long)numbers[i].value);
    }
    add(&a, "-d");
    add(&a, "%s", ask->type == BENCH_TYPES_N ? "all" : bench_type_name((enum bench_type)ask->type));
    add(&a, "-o");
    add(&a, "%s", ask->op == BENCH_OPS_N ? "all" : bench_op_name(ask->op));
    add(&a, "-r");
    if (ask->root < 0)
        add(&a, "all");
    else
        add(&a, "%d", ask->root);
    if (ask->pairs)
        add(&a, "--pairs");
    *a.to = NULL;
}
