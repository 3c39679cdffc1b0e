/* SPDX-License-Identifier: MIT */
/* See ask.h. One table of options; help and parser walk it. */
#include "ask.h"

#include "../../config/parse.h"
#include "../../proto/board.h"

#include <string.h>

#define SIZE_MAX_BYTES (1ull << 50)
#define HELP_COLUMN 28

struct option {
    char letter;
    const char *name; /* nccl-tests' long one, or ours; '-' equals '_' */
    const char *arg;  /* NULL: a switch; "[=FILE]": may be left out */
    int (*take)(struct bench_ask *ask, const struct option *option, const char *text,
                struct err *err);
    size_t offset; /* in struct bench_ask */
    uint32_t min, max;
    const char *help; /* of one that is not there: what to do instead */
};

/* ---- values ---- */

static void *into(struct bench_ask *ask, const struct option *option)
{
    return (char *)ask + option->offset;
}

/* As nccl-tests has it: fractions, and K, M, G of 1024, in either case; also T, and a B or iB behind them. */
static int take_size(struct bench_ask *ask, const struct option *option, const char *text,
                     struct err *err)
{
    static const char units[] = "kmgt";
    char *end = NULL;
    double size =
        text[0] >= '0' && text[0] <= '9' && (text[1] | 0x20) != 'x' ? strtod(text, &end) : -1;
    const char *unit = end && *end ? strchr(units, *end | 0x20) : NULL;
    if (unit) {
        size *= (double)(1ull << (10 * (unit - units + 1)));
        end += 1 + (end[1] == 'i' && end[2] == 'B');
        end += *end == 'B';
    }
    if (!end || *end || !(size >= option->min) || size > (double)SIZE_MAX_BYTES)
        return parse_refuse(err, text, "a size from %u to 1024T such as 8, 64K, 1.5M or 1G",
                            option->min);
    *(uint64_t *)into(ask, option) = (uint64_t)size;
    return 0;
}

static int take_number(struct bench_ask *ask, const struct option *option, const char *text,
                       struct err *err)
{
    const struct field range = {.min = option->min, .max = option->max};
    return parse_u32(&range, text, into(ask, option), err);
}

static int take_text(struct bench_ask *ask, const struct option *option, const char *text,
                     struct err *err)
{
    if (!*text)
        return err_set(err, -EINVAL, "must be the name of a file, not ''");
    *(const char **)into(ask, option) = text;
    return 0;
}

static int take_switch(struct bench_ask *ask, const struct option *option, const char *text,
                       struct err *err)
{
    (void)text, (void)err;
    *(bool *)into(ask, option) = true;
    return 0;
}

static const char *collective_name(int i)
{
    return bench_collective_name((enum bench_collective)i);
}

static const char *type_name(int i)
{
    return bench_type_name((enum bench_type)i);
}

static const char *format_name(int i)
{
    static const char *const names[ASK_FORMATS_N] = {"text", "json", "csv", "svg"};
    return names[i];
}

/* Refuses a word that is no name of a list: says which was meant, or lists them all. */
static int refuse_name(struct err *err, const char *text, const char *(*name)(int i), int n,
                       const char *more)
{
    char all[200], shown[FIELD_QUOTE_BYTES];
    size_t used = 0, best = SIZE_MAX;
    const char *nearest = NULL;
    for (int i = 0; i < n; i++) {
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", name(i));
        if (field_is_nearer(text, strlen(text), name(i), &best))
            nearest = name(i);
    }
    field_quote(text, strlen(text), shown);
    if (nearest)
        return err_set(err, -EINVAL, "there is no '%s'; did you mean %s?", shown, nearest);
    return err_set(err, -EINVAL, "must be one of %s%s, not '%s'", all, more, shown);
}

static int take_name(int *ret, const char *text, int (*find)(const char *name),
                     const char *(*name)(int i), int n, struct err *err)
{
    int found = strcmp(text, "all") == 0 ? n : find(text);
    if (found < 0)
        return refuse_name(err, text, name, n, " or all");
    *ret = found;
    return 0;
}

static int take_type(struct bench_ask *ask, const struct option *option, const char *text,
                     struct err *err)
{
    (void)option;
    return take_name(&ask->type, text, bench_type_find, type_name, BENCH_TYPES_N, err);
}

static int take_op(struct bench_ask *ask, const struct option *option, const char *text,
                   struct err *err)
{
    (void)option;
    return take_name(&ask->op, text, bench_op_find, bench_op_name, BENCH_OPS_N, err);
}

static int take_root(struct bench_ask *ask, const struct option *option, const char *text,
                     struct err *err)
{
    uint32_t root = 0;
    const struct field range = {.min = option->min, .max = option->max};
    if (strcmp(text, "all") == 0)
        ask->root = -1;
    else if (parse_u32(&range, text, &root, NULL) < 0)
        return parse_refuse(err, text, "a rank, or all");
    else
        ask->root = (int)root;
    return 0;
}

static int take_format(struct bench_ask *ask, const struct option *option, const char *text,
                       struct err *err)
{
    (void)option;
    for (int i = 0; i < ASK_FORMATS_N; i++)
        if (strcmp(text, format_name(i)) == 0) {
            ask->format = (enum ask_format)i;
            return 0;
        }
    return refuse_name(err, text, format_name, ASK_FORMATS_N, "");
}

static int take_save(struct bench_ask *ask, const struct option *option, const char *text,
                     struct err *err)
{
    ask->verdict.save = true;
    return text ? take_text(ask, option, text, err) : 0;
}

static int take_compare(struct bench_ask *ask, const struct option *option, const char *text,
                        struct err *err)
{
    ask->verdict.compare = true;
    return text ? take_text(ask, option, text, err) : 0;
}

static int take_percent(struct bench_ask *ask, const struct option *option, const char *text,
                        struct err *err)
{
    char *end = NULL;
    double percent = text[0] >= '0' && text[0] <= '9' ? strtod(text, &end) : -1;
    if (end && *end == '%')
        end++;
    if (!end || *end || !(percent >= 0 && percent <= option->max))
        return parse_refuse(err, text, "a percentage from 0 to %u such as 5", option->max);
    *(double *)into(ask, option) = percent / 100;
    return 0;
}

/* nccl-tests' default is what we do: scripts that give it go on. */
static int take_absent(struct bench_ask *ask, const struct option *option, const char *text,
                       struct err *err)
{
    uint32_t number;
    const struct field range = {.max = UINT32_MAX};
    (void)ask;
    if (parse_u32(&range, text, &number, NULL) == 0 && number == option->min)
        return 0;
    return err_set(err, -EINVAL, "launch bench does not have this flag of nccl-tests: %s",
                   option->help);
}

#define AT(member) .offset = offsetof(struct bench_ask, member)
#define ABSENT(l, n, only, text)                                                                   \
    {                                                                                              \
        .letter = (l), .name = (n), .arg = "N", .take = take_absent, .min = (only), .help = (text) \
    }

/* clang-format off */
static const struct option OPTIONS[] = {
    {.letter = 'b', .name = "minbytes", .arg = "SIZE", .take = take_size, AT(min_bytes),
     .help = "first size; K, M, G and T are powers of 1024,\nfractions will do"},
    {.letter = 'e', .name = "maxbytes", .arg = "SIZE", .take = take_size, AT(max_bytes),
     .help = "last size"},
    {.letter = 'i', .name = "stepbytes", .arg = "SIZE", .take = take_size, AT(step_bytes), .min = 1,
     .help = "from one size to the next (1M)"},
    {.letter = 'f', .name = "stepfactor", .arg = "N", .take = take_number, AT(step_factor), .max = 1u << 20,
     .help = "each size is N times the last one; 0 or 1: -i counts"},
    {.letter = 'n', .name = "iters", .arg = "N", .take = take_number, AT(iterations), .min = 1, .max = 1000000000,
     .help = "timed operations of each size (20)"},
    {.letter = 'w', .name = "warmup_iters", .arg = "N", .take = take_number, AT(warmup), .max = 1000000000,
     .help = "operations before that (1)"},
    {.letter = 'c', .name = "check", .arg = "N", .take = take_number, AT(check), .max = 1000000,
     .help = "how often values are checked; 0: #wrong is N/A (1)"},
    {.letter = 'd', .name = "datatype", .arg = "TYPE|all", .take = take_type,
     .help = "int8 uint8 int32 uint32 int64 uint64 half float\ndouble bfloat16 f8e4m3 f8e5m2 (float)"},
    {.letter = 'o', .name = "op", .arg = "OP|all", .take = take_op,
     .help = "sum prod min max avg mulsum (sum)"},
    {.letter = 'r', .name = "root", .arg = "RANK|all", .take = take_root, .max = BOARD_MAX_RANKS - 1,
     .help = "of broadcast, reduce, gather and scatter (0)"},
    {.letter = 'g', .name = "ngpus", .arg = "N", .take = take_number, AT(ranks), .min = 1, .max = BOARD_MAX_RANKS,
     .help = "ranks, one process and one GPU each (all GPUs;\nwithout any, one for each CPU)"},
    {.letter = 'T', .name = "timeout", .arg = "SECONDS", .take = take_number, AT(timeout_s), .max = 1000000,
     .help = "gives up when one wait takes longer: exit code\n124 (never)"},
    {.letter = 'J', .name = "output_file", .arg = "FILE", .take = take_text, AT(json_file),
     .help = "JSON with nccl-tests' keys, beside what is shown;\nFILE.0, FILE.1, ... if FILE is there"},
    {.name = "format", .arg = "text|json|csv|svg", .take = take_format,
     .help = "what stdout gets; text is nccl-tests' (text)"},
    {.name = "pairs", .take = take_switch, AT(pairs),
     .help = "sendrecv between every two ranks as a matrix; slow\npairs are named"},
    {.name = "save", .arg = "[=FILE]", .take = take_save, AT(verdict.save_file),
     .help = "keeps the median of --runs sweeps and their spread\nas this machine's baseline, or in FILE"},
    {.name = "compare", .arg = "[=FILE]", .take = take_compare, AT(verdict.compare_file),
     .help = "with that baseline, size by size; exit code 1: it is\nslower, 2: not comparable"},
    {.name = "runs", .arg = "N", .take = take_number, AT(runs), .min = 1, .max = 100,
     .help = "whole sweeps for --save, --compare and svg, of which\nthe median counts (--save: 3, else 1)"},
    {.name = "tolerance", .arg = "PERCENT", .take = take_percent, AT(verdict.floor), .max = 1000,
     .help = "longer than that is slower, unless the spread is\nlarger (25 below 1M, 10 up to 64M, above it 5)"},
    {.name = "across-versions", .take = take_switch, AT(verdict.across_versions),
     .help = "compares also with another driver or NCCL"},
    {.name = "history", .take = take_switch, AT(history),
     .help = "lists the runs that --save and --compare kept"},
    {.letter = 'h', .name = "help", .take = take_switch, AT(help), .help = "this text"},

    ABSENT('t', "nthreads", 1, "there is one process for each GPU; -g says how many"),
    ABSENT('m', "agg_iters", 1, "each operation is launched by itself; -n says how many"),
    ABSENT('N', "run_cycles", 1, "run it again for another cycle"),
    ABSENT('p', "parallel_init", 0, "ranks are processes, and always start side by side"),
    ABSENT('z', "blocking", 0, "operations are queued, and waited for at the end"),
    ABSENT('y', "stream_null", 0, "operations are on a stream of their own"),
    ABSENT('G', "cudagraph", 0, "operations are launched without a graph"),
    ABSENT('C', "report_cputime", 0, "times are those of the GPU; leave it out"),
    ABSENT('S', "report_timestamps", 0, "-J has the time of start and end"),
    ABSENT('a', "average", 1, "times are the mean over the ranks"),
    ABSENT('R', "local_register", 0, "buffers are not registered"),
    ABSENT('x', "cta_policy", UINT32_MAX, "NCCL_CTA_POLICY in the environment says it to NCCL itself"),
    ABSENT('D', "device_implementation", 0, "NCCL's own kernels are measured"),
    ABSENT('V', "device_cta_count", 16, "NCCL's own kernels are measured"),
    ABSENT('M', "memory", 0, "nvidia-smi shows the memory while it runs"),
    ABSENT('u', "unalign", 0, "buffers are aligned"),
    ABSENT('I', "per_iter_timing", 0, "each size gives one mean"),
    ABSENT('K', "per_iter_skip", 0, "each size gives one mean"),
};
/* clang-format on */

/* Settings of launch's that the bench decides itself. */
static const char *const DECIDED[] = {
    "module",
    "run-path",
    "no-python",
    "detach",
    "max-restarts",
    "on-failure",
    "min-workers",
    "standby",
    "redirects",
    "tee",
    "local-ranks-filter",
    "duplicate-stdout-filters",
    "stdin",
    "exit-code",
    "config",
    "print-config",
    "example-config",
};

/* ---- words ---- */

/* One option word, taken apart. */
struct word {
    const char *name; /* without dashes, not terminated */
    size_t name_n;
    const char *value; /* in the same word; NULL: none is */
    bool letter;
};

static struct word split(const char *text)
{
    struct word word = {.letter = text[1] != '-'};
    word.name = text + (word.letter ? 1 : 2);
    word.name_n = word.letter ? 1 : strcspn(word.name, "=");
    const char *rest = word.name + word.name_n;
    if (*rest)
        word.value = rest + (*rest == '=');
    return word;
}

static bool same_name(const char *name, size_t n, const char *known)
{
    for (size_t i = 0; i < n; i++)
        if ((name[i] == '-' ? '_' : name[i]) != (known[i] == '-' ? '_' : known[i]))
            return false;
    return known[n] == '\0';
}

static const struct option *find(const struct word *word)
{
    for (size_t i = 0; i < ARRAY_LEN(OPTIONS); i++)
        if (word->letter ? OPTIONS[i].letter == *word->name
                         : same_name(word->name, word->name_n, OPTIONS[i].name))
            return &OPTIONS[i];
    return NULL;
}

static int refuse_unknown(const char *text, const struct word *word, struct err *err)
{
    const char *others[ARRAY_LEN(OPTIONS) + 1] = {NULL};
    char shown[FIELD_QUOTE_BYTES];
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(OPTIONS); i++)
        if (OPTIONS[i].take != take_absent)
            others[n++] = OPTIONS[i].name;
    const char *nearest = word->letter ? NULL : field_nearest_of(word->name, word->name_n, others);
    field_quote(text, word->letter ? 2 : word->name_n + 2, shown);
    return err_set(err, -EINVAL, "%s: unknown option%s%s%s", shown,
                   nearest ? "; did you mean --" : "; launch bench --help lists them all",
                   nearest ? nearest : "", nearest ? "?" : "");
}

/* Keeps an option for launch: "--name=value" or "--name". */
static int keep(struct bench_ask *ask, const struct field *field, const char *value,
                struct err *err)
{
    char **more = realloc(ask->words, (ask->words_n + 2) * sizeof *more);
    if (!more)
        return err_set_errno(err, -ENOMEM, "options");
    ask->words = more;
    if (asprintf(&more[ask->words_n], "--%s%s%s", field->name, value ? "=" : "",
                 value ? value : "") < 0) {
        more[ask->words_n] = NULL;
        return err_set_errno(err, -ENOMEM, "options");
    }
    more[++ask->words_n] = NULL;
    return 0;
}

/* The same setting by another name is the same. */
static bool is_decided(const struct field *field)
{
    for (size_t i = 0; i < ARRAY_LEN(DECIDED); i++)
        if (strcmp(field->name, DECIDED[i]) == 0)
            return true;
    return false;
}

/* A forgotten value must not swallow the next option. */
static bool is_value(const char *text)
{
    return text && (text[0] != '-' || (text[1] >= '0' && text[1] <= '9'));
}

/* Returns how many words were used, 1 or 2. words: NULL-terminated, the first one is an option. */
static int take_option(struct bench_ask *ask, char **words, struct err *err)
{
    struct word word = split(words[0]);
    const struct option *option = find(&word);
    const struct field *field = option || word.letter ? NULL : field_find(word.name, word.name_n);
    if (!option && !field)
        return refuse_unknown(words[0], &word, err);
    int where_n = (int)word.name_n + (word.letter ? 1 : 2);
    if (field && is_decided(field))
        return err_set(err, -EINVAL, "%.*s: launch bench decides this itself; leave it out",
                       where_n, words[0]);
    const char *arg = option ? option->arg : field->arg, *value = word.value;
    int used = 1;
    if (!arg && value && option)
        return err_set(err, -EINVAL, "%.*s: takes no value", where_n, words[0]);
    if (arg && arg[0] != '[' && !value) {
        if (!is_value(words[1]))
            return err_set(err, -EINVAL, "%s: needs a value: %s", words[0], arg);
        value = words[1];
        used = 2;
    }
    int rc = option ? option->take(ask, option, value, err) : keep(ask, field, value, err);
    return rc < 0 ? err_wrap(err, rc, "%.*s", where_n, words[0]) : used;
}

/* "all_reduce", or nccl-tests' "all_reduce_perf". */
static int take_collective(struct bench_ask *ask, const char *text, struct err *err)
{
    char name[32];
    size_t n = strlen(text), suffix = strlen("_perf");
    if (ask->collective_given)
        return err_set(err, -EINVAL, "'%.60s': one collective at a time, and %s is given", text,
                       bench_collective_name(ask->collective));
    if (n > suffix && strcmp(text + n - suffix, "_perf") == 0)
        n -= suffix;
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    for (char *c = name; *c; c++)
        *c = *c == '-' ? '_' : *c;
    int found = bench_collective_find(name);
    if (found < 0) {
        int rc = refuse_name(err, text, collective_name, BENCH_COLLECTIVES_N, "");
        return err_wrap(err, rc, "the collective");
    }
    ask->collective = (enum bench_collective)found;
    ask->collective_given = true;
    return 0;
}

static void clear_environment(void)
{
    char name[FIELD_ENV_BYTES];
    for (size_t i = 0; i < ARRAY_LEN(DECIDED); i++) {
        const struct field *field = field_find(DECIDED[i], strlen(DECIDED[i]));
        unsetenv(field_env(field, name));
        if (field->pet)
            unsetenv(field->pet);
    }
}

static int settle_verdict(struct bench_ask *ask, struct err *err)
{
    const struct verdict_ask *v = &ask->verdict;
    bool measured = v->save || v->compare || ask->format == ASK_SVG;
    if (ask->pairs && ask->type == BENCH_TYPES_N)
        return err_set(err, -EINVAL, "-d all: --pairs measures one type");
    if (ask->pairs && measured)
        return err_set(err, -EINVAL, "--pairs: --save, --compare and --format=svg are of sweeps");
    if (ask->runs && !measured)
        return err_set(err, -EINVAL, "--runs: goes with --save, --compare or --format=svg");
    if (!v->compare && (v->floor >= 0 || v->across_versions))
        return err_set(err, -EINVAL, "%s: goes with --compare",
                       v->floor >= 0 ? "--tolerance" : "--across-versions");
    if (!ask->runs)
        ask->runs = v->save ? 3 : 1;
    return 0;
}

int ask_parse(struct bench_ask *ask, int argc, char **argv, struct err *err)
{
    *ask = (struct bench_ask){.min_bytes = ASK_OPEN,
                              .max_bytes = ASK_OPEN,
                              .step_bytes = ASK_OPEN,
                              .iterations = 20,
                              .warmup = 1,
                              .check = 1,
                              .type = BENCH_TYPE_FLOAT,
                              .op = BENCH_OP_SUM,
                              .verdict = {.floor = -1}};
    clear_environment();
    for (int i = 1; i < argc && !ask->help;) {
        bool option = argv[i][0] == '-' && argv[i][1];
        int used = option ? take_option(ask, argv + i, err) : take_collective(ask, argv[i], err);
        if (used < 0)
            return used;
        i += option ? used : 1;
    }
    int rc = settle_verdict(ask, err);
    if (rc < 0)
        return rc;
    if (ask->pairs && !ask->collective_given)
        ask->collective = BENCH_SENDRECV;
    if (ask->pairs && ask->collective != BENCH_SENDRECV)
        return err_set(err, -EINVAL, "--pairs: measures sendrecv; leave %s out",
                       bench_collective_name(ask->collective));
    return 0;
}

/* ---- help ---- */

void ask_print_help(FILE *out)
{
    fputs("usage: launch bench [COLLECTIVE] [flags of nccl-tests] [options of launch]\n"
          "\n"
          "Measures a collective between all GPUs with NCCL, one process for each, and\n"
          "checks what comes out; on a machine without a GPU through host memory, and\n"
          "says so. Prints what nccl-tests prints. Collectives (default all_reduce):\n"
          "\n ",
          out);
    for (int i = 0; i < BENCH_COLLECTIVES_N; i++)
        fprintf(out, " %s%s", collective_name(i), i == 4 ? "\n " : "");
    fputs("\n\n", out);
    for (size_t i = 0; i < ARRAY_LEN(OPTIONS); i++) {
        const struct option *o = &OPTIONS[i];
        char flag[48];
        if (o->take == take_absent)
            continue;
        snprintf(flag, sizeof flag, "%c%c%s --%s%s%s", o->letter ? '-' : ' ',
                 o->letter ? o->letter : ' ', o->letter ? "," : " ", o->name,
                 o->arg && o->arg[0] != '[' ? "=" : "", o->arg ? o->arg : "");
        int column = fprintf(out, "  %s", flag);
        if (column >= HELP_COLUMN) {
            fputc('\n', out);
            column = 0;
        }
        for (const char *line = o->help; *line; column = 0) {
            int n = (int)strcspn(line, "\n");
            fprintf(out, "%*s%.*s\n", HELP_COLUMN - column, "", n, line);
            line += n + (line[n] == '\n');
        }
    }
    fputs("\n"
          "Baselines are in ~/.local/state/launch/baselines ($XDG_STATE_HOME; root's in\n"
          "/var/lib/launch), one for each machine and sweep, with the last 50 runs.\n"
          "launch bench --transports shows what NCCL uses between each two GPUs, and why.\n"
          "\n"
          "Without -b and -e sizes double from 8 bytes to 1 GiB (on the host to 64 MiB),\n"
          "from what latency rules to what bandwidth rules; nccl-tests would measure\n"
          "32 MiB alone. With one of them it is as there: steps of 1M unless -f says\n"
          "otherwise. What memory has no room for is left out, and that is said.\n"
          "\n"
          "Of launch's options any long one may be given (--gpus=4-7, --nproc-per-node=2,\n"
          "--share-gpus, --wait=10m, --affinity=none); launch --help lists them. But\n"
          "--timeout is nccl-tests' here, and -n and -m are its iterations.\n"
          "\n"
          "NCCL_TESTS_MIN_BW=GB/s: fails if the average is below nine tenths of it.\n"
          "LAUNCH_BENCH_JOB=FILE: another job that measures, say one with another NCCL.\n"
          "\n"
          "Exit code: 0; 1 wrong values, too slow, slower than the baseline, or the job\n"
          "failed; 2 wrong words, or not comparable; 75 others have the GPUs; 123, 124 it\n"
          "hung.\n",
          out);
}

void ask_finish(struct bench_ask *ask)
{
    for (unsigned i = 0; i < ask->words_n; i++)
        free(ask->words[i]);
    free(ask->words);
    *ask = (struct bench_ask){0};
}
