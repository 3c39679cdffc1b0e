/* SPDX-License-Identifier: MIT */
/* Owns the table of settings and most of its parsers (those of output.h are apart, and so is finding a
 * row by its name: names.c). Must never know who asks: no argv, no getenv, no file, nothing printed.
 * All text is untrusted. */
#include "fields.h"

#include "../proto/board.h"
#include "output.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MS_PER_S 1000
#define MS_PER_M (60 * MS_PER_S)
#define MS_PER_H (60 * MS_PER_M)
#define TIME_MAX_MS (1000ll * MS_PER_H) /* the board keeps milliseconds in 32 bits */
#define TEXT_MAX_BYTES 63               /* run id (BOARD_RUN_ID_BYTES with its NUL) and role */
#define HOST_MAX_BYTES 253              /* longest name that DNS knows */

static_assert(TEXT_MAX_BYTES == BOARD_RUN_ID_BYTES - 1, "a run id must fit the board");
static_assert(TIME_MAX_MS <= UINT32_MAX, "a timeout must fit the board");

/* ---- errors ---- */

const char *field_quote(const char *text, size_t n, char buf[FIELD_QUOTE_BYTES])
{
    static const char DOTS[] = "...", NAMED[] = "\n\r\t\\";
    const size_t limit = FIELD_QUOTE_BYTES - sizeof DOTS; /* 60 */
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        char piece[5];
        const char *named = c ? strchr(NAMED, c) : NULL;
        if (named)
            snprintf(piece, sizeof piece, "\\%c", "nrt\\"[named - NAMED]);
        else
            snprintf(piece, sizeof piece, c >= 0x20 && c < 0x7f ? "%c" : "\\x%02x", c);
        if (used + strlen(piece) > limit) {
            memcpy(buf + used, DOTS, sizeof DOTS);
            return buf;
        }
        size_t piece_n = strlen(piece);
        memcpy(buf + used, piece, piece_n);
        used += piece_n;
    }
    buf[used] = '\0';
    return buf;
}

/* "must be <what>, not '<text>'"; returns -EINVAL. */
PRINTF_LIKE(3, 4) static int refuse(struct err *err, const char *text, const char *what, ...)
{
    char right[200], shown[FIELD_QUOTE_BYTES];
    va_list ap;
    va_start(ap, what);
    vsnprintf(right, sizeof right, what, ap);
    va_end(ap);
    field_quote(text, strlen(text), shown);
    return err_set(err, -EINVAL, "must be %s, not '%s'", right, shown);
}

/* "'a', 'b' or 'c'" */
static const char *list_choices(const char *const *choices, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (size_t i = 0; choices[i] && used < size; i++) {
        const char *before = i == 0 ? "" : choices[i + 1] ? ", " : " or ";
        used += (size_t)snprintf(buf + used, size - used, "%s'%s'", before, choices[i]);
    }
    return buf;
}

/* ---- parsers ---- */

/* Nothing but decimal digits, at least one, the value at most max. Leading zeros are decimal. */
static bool parse_decimal(const char *text, size_t n, uint64_t max, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (digit > max || value > (max - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (n == 0)
        return false;
    *ret = value;
    return true;
}

static bool in_range(const struct field *field, const char *text, uint64_t *ret)
{
    uint64_t value;
    if (!parse_decimal(text, strlen(text), (uint64_t)field->max, &value) ||
        value < (uint64_t)field->min)
        return false;
    *ret = value;
    return true;
}

static int parse_number(const struct field *field, const char *text, uint64_t *ret, struct err *err)
{
    if (in_range(field, text, ret))
        return 0;
    if (field->min == field->max)
        return refuse(err, text, "%lld", (long long)field->min);
    return refuse(err, text, "a number from %lld to %lld", (long long)field->min,
                  (long long)field->max);
}

static int parse_u32(const struct field *field, const char *text, void *into, struct err *err)
{
    uint64_t value = 0;
    int r = parse_number(field, text, &value, err);
    if (r == 0)
        *(uint32_t *)into = (uint32_t)value;
    return r;
}

static int parse_u16(const struct field *field, const char *text, void *into, struct err *err)
{
    uint64_t value = 0;
    int r = parse_number(field, text, &value, err);
    if (r == 0)
        *(uint16_t *)into = (uint16_t)value;
    return r;
}

/* "1.5s": whole part, fraction of at most 9 digits, unit. Rounded up to whole milliseconds: a time
 * that is not 0 never becomes the 0 that stands for "none". */
static bool parse_ms(const char *text, uint64_t max, uint64_t *ret)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } UNITS[] = {{"", MS_PER_S}, {"ms", 1}, {"s", MS_PER_S}, {"m", MS_PER_M}, {"h", MS_PER_H}};

    size_t whole_n = strspn(text, "0123456789"), fraction_n = 0;
    const char *fraction = text + whole_n, *unit = fraction;
    if (*fraction == '.') {
        fraction++;
        fraction_n = strspn(fraction, "0123456789");
        unit = fraction + fraction_n;
        if (fraction_n == 0)
            return false;
    }
    uint64_t whole, parts = 0, scale = 1;
    if (!parse_decimal(text, whole_n, max, &whole) || fraction_n > 9)
        return false;
    for (size_t i = 0; i < fraction_n; i++) {
        parts = parts * 10 + (uint64_t)(fraction[i] - '0');
        scale *= 10;
    }
    for (size_t i = 0; i < ARRAY_LEN(UNITS); i++) {
        if (strcmp(unit, UNITS[i].name) != 0)
            continue;
        uint64_t ms = whole * UNITS[i].ms + (parts * UNITS[i].ms + scale - 1) / scale;
        if (ms > max)
            return false;
        *ret = ms;
        return true;
    }
    return false;
}

static int parse_duration(const struct field *field, const char *text, void *into, struct err *err)
{
    uint64_t ms;
    if (!parse_ms(text, (uint64_t)field->max, &ms) || ms < (uint64_t)field->min)
        return refuse(err, text, "a time%s of at most %lldh such as 30, 1.5s, 500ms or 10m",
                      field->min > 0 ? " above 0 and" : "", (long long)field->max / MS_PER_H);
    *(uint64_t *)into = ms;
    return 0;
}

static bool find_choice(const struct field *field, const char *text, unsigned *ret)
{
    for (unsigned i = 0; field->choices[i]; i++) {
        if (strcmp(text, field->choices[i]) == 0) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static int parse_choice(const struct field *field, const char *text, void *into, struct err *err)
{
    unsigned choice;
    char list[128];
    if (!find_choice(field, text, &choice))
        return refuse(err, text, "%s", list_choices(field->choices, list, sizeof list));
    *(unsigned *)into = choice;
    return 0;
}

static bool find_switch(const char *text, bool *ret)
{
    static const char *const WORDS[] = {"0", "1", "false", "true", "no", "yes"};
    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
        if (strcmp(text, WORDS[i]) == 0) {
            *ret = i % 2;
            return true;
        }
    }
    return false;
}

static int parse_switch(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field;
    bool on;
    if (!find_switch(text, &on))
        return refuse(err, text, "1, 0, true, false, yes or no");
    *(bool *)into = on;
    return 0;
}

/* torchrun's switch for what --gpu-visibility says with a word. */
static int parse_virtual_rank(const struct field *field, const char *text, void *into,
                              struct err *err)
{
    bool on = false;
    int r = parse_switch(field, text, &on, err);
    if (r == 0)
        *(enum gpu_visibility *)into = on ? GPU_VISIBILITY_RANK : GPU_VISIBILITY_JOB;
    return r;
}

/* into: nproc_mode; nproc is set along with it. The choices follow NPROC_NUMBER in nproc_mode. */
static int parse_nproc(const struct field *field, const char *text, void *into, struct err *err)
{
    struct job_spec *spec = CONTAINER_OF(into, struct job_spec, nproc_mode);
    uint64_t number = 0;
    unsigned choice;
    char list[64];
    if (in_range(field, text, &number))
        spec->nproc_mode = NPROC_NUMBER;
    else if (find_choice(field, text, &choice))
        spec->nproc_mode = (enum nproc_mode)(NPROC_GPU + choice);
    else
        return refuse(err, text, "a number from %lld to %lld, %s", (long long)field->min,
                      (long long)field->max, list_choices(field->choices, list, sizeof list));
    spec->nproc = (uint32_t)number;
    return 0;
}

static int parse_nnodes(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field, (void)into;
    if (strcmp(text, "1") == 0 || strcmp(text, "1:1") == 0)
        return 0;
    return refuse(err, text, "1 or 1:1, as a job runs on one server only so far");
}

static int parse_anything(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field, (void)text, (void)into, (void)err;
    return 0;
}

static int set_text(const char *text, void *into, struct err *err)
{
    char *copy = strdup(text);
    if (!copy)
        return err_set(err, -ENOMEM, "out of memory");
    free(*(char **)into);
    *(char **)into = copy;
    return 0;
}

/* Not isalnum(): that one asks the locale. */
static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* field->min: 1 when there must be at least one. */
static int parse_signals(const struct field *field, const char *text, void *into, struct err *err)
{
    struct siglist list;
    if (siglist_parse(&list, text) < 0 || list.n < field->min)
        return refuse(err, text,
                      "%ssignals such as SIGTERM,USR1 (KILL, STOP, CHLD, PIPE, TSTP and CONT can't "
                      "be had)",
                      field->min ? "" : "'none' or ");
    *(struct siglist *)into = list;
    return 0;
}

static int parse_codes(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field;
    if (codeset_parse(into, text) < 0)
        return refuse(err, text,
                      "'all', 'none' or a list of exit codes 1 to 255, signals, 'signal' and "
                      "'hang' such as 1,3-5,SIGSEGV");
    return 0;
}

static int parse_limits(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field;
    if (limits_parse(into, text) < 0)
        return refuse(
            err, text,
            "'none' or a list of startup:N, same:N, signal:N, hang:N, exit:N with N up to "
            "%u",
            LIMITS_MAX);
    return 0;
}

/* Becomes part of file names, so no slash, no blank, no leading dot or dash. */
static int parse_run_id(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field;
    size_t n = 0;
    while (text[n] && (is_alnum(text[n]) || (n > 0 && strchr("._-", text[n]))))
        n++;
    if (n == 0 || text[n] || n > TEXT_MAX_BYTES)
        return refuse(err, text, "1 to %d of A-Z a-z 0-9 . _ -, a letter or digit first",
                      TEXT_MAX_BYTES);
    return set_text(text, into, err);
}

static int parse_host(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field;
    size_t n = 0;
    while (text[n] && (is_alnum(text[n]) || strchr(n > 0 ? "._-:%[]" : ":[", text[n])))
        n++;
    if (n == 0 || text[n] || n > HOST_MAX_BYTES)
        return refuse(err, text, "a host name or an IP address");
    return set_text(text, into, err);
}

static int parse_role(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field;
    size_t n = 0;
    while (text[n] >= 0x20 && text[n] < 0x7f)
        n++;
    if (n == 0 || text[n] || n > TEXT_MAX_BYTES)
        return refuse(err, text, "1 to %d printable ASCII characters", TEXT_MAX_BYTES);
    return set_text(text, into, err);
}

/* ---- the table ---- */

static const char *const NPROC_WORDS[] = {"gpu", "auto", "cpu", NULL};
static const char *const VISIBILITY_WORDS[] = {"job", "rank", NULL};
static const char *const EXIT_WORDS[] = {"worker", "torchrun", NULL};
static const char *const MAP_WORDS[] = {"0", "1", "2", "3", NULL};
static const char *const STDIN_WORDS[] = {"none", "all", NULL};
static const char *const CGROUP_WORDS[] = {"auto", "off", NULL};
static const char *const FAILURE_WORDS[] = {"restart", "heal", "shrink", "stop", NULL};
static const char *const STANDBY_WORDS[] = {"none", "exec", NULL};
static const char *const BACKEND_WORDS[] = {"static", "c10d", NULL};
static const char *const START_WORDS[] = {"spawn", "fork", "forkserver", NULL};

static_assert(ARRAY_LEN(NPROC_WORDS) == NPROC_MODES_N, "a word for every mode but the number");
static_assert(ARRAY_LEN(VISIBILITY_WORDS) == GPU_VISIBILITIES_N + 1, "a word for every value");
static_assert(ARRAY_LEN(CGROUP_WORDS) == CGROUP_MODES_N + 1, "a word for every value");
static_assert(ARRAY_LEN(FAILURE_WORDS) == ON_FAILURES_N + 1, "a word for every value");
static_assert(ARRAY_LEN(STANDBY_WORDS) == STANDBIES_N + 1, "a word for every value");
static_assert(ARRAY_LEN(EXIT_WORDS) == EXIT_STYLES_N + 1, "a word for every value");

const char *const FIELD_GROUPS[GROUPS_N] = {
    [GROUP_WORKERS] = "Workers",
    [GROUP_GPUS] = "GPUs",
    [GROUP_RENDEZVOUS] = "Rendezvous",
    [GROUP_RESTARTS] = "Restarts",
    [GROUP_FAILURES] = "Failures and the end",
    [GROUP_OUTPUT] = "Output and log files",
    [GROUP_TORCHRUN] = "Accepted for torchrun's sake (checked, then without effect)",
};

#define AT(member) .offset = offsetof(struct job_spec, member)

/* clang-format off */
const struct field FIELDS[] = {
    {.name = "nproc-per-node", .aliases = "np", .letter = 'n', .pet = "PET_NPROC_PER_NODE",
     .arg = "N|gpu|auto|cpu", .def = "1", .group = GROUP_WORKERS, AT(nproc_mode),
     .parse = parse_nproc, .min = 1, .max = BOARD_MAX_RANKS, .choices = NPROC_WORDS,
     .help = "Workers to start: a number; gpu: one per GPU; cpu: one per CPU that the job may use; "
             "auto: one per GPU, without any GPU one per CPU."},
    {.name = "role", .pet = "PET_ROLE", .arg = "NAME", .def = "default", .group = GROUP_WORKERS,
     AT(role), .parse = parse_role,
     .help = "Name that the workers find in ROLE_NAME."},
    {.name = "run-id", .aliases = "rdzv-id", .pet = "PET_RDZV_ID", .arg = "ID",
     .group = GROUP_WORKERS, AT(run_id), .parse = parse_run_id,
     .help = "Name of this run; made up when it is not given."},

    {.name = "gpu-visibility", .arg = "job|rank", .def = "job", .group = GROUP_GPUS,
     AT(gpu_visibility), .parse = parse_choice, .choices = VISIBILITY_WORDS,
     .help = "job: every worker sees all GPUs of the job and takes the one of its LOCAL_RANK; "
             "rank: every worker sees its own GPU only, and its LOCAL_RANK is 0."},
    {.name = "virtual-local-rank", .pet = "PET_VIRTUAL_LOCAL_RANK", .group = GROUP_GPUS,
     AT(gpu_visibility), .parse = parse_virtual_rank,
     .help = "The same as --gpu-visibility=rank."},
    {.name = "share-gpus", .def = "0", .group = GROUP_GPUS, AT(share_gpus), .parse = parse_switch,
     .help = "Lets several workers share a GPU, to try a job of many GPUs on few. Implies "
             "--gpu-visibility=rank."},

    {.name = "rendezvous-timeout", .arg = "TIME", .def = "60s", .group = GROUP_RENDEZVOUS,
     AT(rendezvous_timeout_ms), .parse = parse_duration, .max = TIME_MAX_MS,
     .help = "How long workers that use liblaunch wait for one another; 0: for ever. A TIME is "
             "30 or 30s, 500ms, 1.5m, 2h."},
    {.name = "master-addr", .pet = "PET_MASTER_ADDR", .arg = "HOST", .def = "127.0.0.1",
     .group = GROUP_RENDEZVOUS, AT(master_addr), .parse = parse_host,
     .help = "MASTER_ADDR of the workers."},
    {.name = "master-port", .pet = "PET_MASTER_PORT", .arg = "PORT", .def = "0",
     .group = GROUP_RENDEZVOUS, AT(master_port), .parse = parse_u16, .max = UINT16_MAX,
     .help = "MASTER_PORT of the workers; 0: any free one, a fresh one for every attempt."},

    {.name = "max-restarts", .pet = "PET_MAX_RESTARTS", .arg = "N", .def = "0",
     .group = GROUP_RESTARTS, AT(max_restarts), .parse = parse_u32, .max = 1000000,
     .help = "How often the job is started again after a worker failed."},
    {.name = "on-failure", .arg = "restart|heal|shrink|stop", .def = "restart",
     .group = GROUP_RESTARTS, AT(on_failure), .parse = parse_choice, .choices = FAILURE_WORDS,
     .help = "restart: all workers are started again; heal: only the lost one, and the others keep their "
             "processes, if the job can (launch_meet); shrink: the same, and without it once no restart is "
             "left; stop: nothing is. Each loss counts as a restart."},
    {.name = "min-workers", .arg = "N", .def = "1", .group = GROUP_RESTARTS, AT(min_workers),
     .parse = parse_u32, .min = 1, .max = BOARD_MAX_RANKS,
     .help = "With --on-failure=shrink: with fewer workers the job does not go on."},
    {.name = "heal-timeout", .arg = "TIME", .def = "30s", .group = GROUP_RESTARTS,
     AT(heal_timeout_ms), .parse = parse_duration, .max = TIME_MAX_MS,
     .help = "How long a worker may take to meet the others again before it is replaced, too; 0: for "
             "ever."},
    {.name = "standby", .arg = "none|exec", .def = "none", .group = GROUP_RESTARTS, AT(standby),
     .parse = parse_choice, .choices = STANDBY_WORDS,
     .help = "exec: for --on-failure=heal, a process that has come as far as launch_join() waits for "
             "the place of a lost worker."},
    {.name = "standby-count", .arg = "N", .def = "1", .group = GROUP_RESTARTS, AT(standby_count),
     .parse = parse_u32, .min = 1, .max = BOARD_MAX_RANKS,
     .help = "How many standbys wait."},
    {.name = "restart-window", .arg = "TIME", .def = "0", .group = GROUP_RESTARTS,
     AT(restart_window_ms), .parse = parse_duration, .max = TIME_MAX_MS,
     .help = "Restarts longer ago than this no longer count; 0: all count for ever."},
    {.name = "restart-refill", .def = "0", .group = GROUP_RESTARTS, AT(restart_refill),
     .parse = parse_switch,
     .help = "A job that got further than ever before (launch_step) has all its restarts again."},
    {.name = "restart-limits", .arg = "CLASS:N,...", .def = "none", .group = GROUP_RESTARTS,
     AT(restart_limits), .parse = parse_limits,
     .help = "How many of the restarts each class of failure may use: startup, signal, hang, exit; "
             "same: how many the same failure in a row."},
    {.name = "restart-on", .arg = "CODES", .def = "all", .group = GROUP_RESTARTS, AT(restart_on),
     .parse = parse_codes,
     .help = "Ends of a worker after which the job is started again: exit codes, signals by name, "
             "signal (any), hang: 1,3-5,SIGSEGV."},
    {.name = "no-restart-on", .arg = "CODES", .def = "93,126,127", .group = GROUP_RESTARTS,
     AT(no_restart_on), .parse = parse_codes,
     .help = "Ends of a worker after which the job is not started again. By default, unless --restart-on "
             "is given, those are 93, by which a job asks for it, and 126 and 127, when a program or a "
             "library is missing."},

    {.name = "shutdown-timeout", .pet = "PET_SHUTDOWN_TIMEOUT", .arg = "TIME", .def = "30s",
     .group = GROUP_FAILURES, AT(shutdown_timeout_ms), .parse = parse_duration, .max = TIME_MAX_MS,
     .help = "How long workers may take to end after SIGTERM before SIGKILL; 0: SIGKILL at once."},
    {.name = "timeout", .arg = "TIME", .def = "0", .group = GROUP_FAILURES, AT(timeout_ms),
     .parse = parse_duration, .max = TIME_MAX_MS,
     .help = "How long the whole job may take, restarts included, before it is ended with exit code "
             "124; 0: for ever."},
    {.name = "signals-to-handle", .pet = "PET_SIGNALS_TO_HANDLE", .arg = "NAMES",
     .def = "SIGTERM,SIGINT,SIGHUP,SIGQUIT", .group = GROUP_FAILURES, AT(signals_to_handle),
     .parse = parse_signals, .min = 1, .max = SIGLIST_MAX,
     .help = "Signals that end the job; the workers get the same one, and a second one means now."},
    {.name = "forward-signals", .arg = "NAMES", .def = "USR1,USR2,WINCH", .group = GROUP_FAILURES,
     AT(forward_signals), .parse = parse_signals, .max = SIGLIST_MAX,
     .help = "Signals that are passed on to the workers, and the job goes on; none: no signal."},
    {.name = "hang-timeout", .arg = "TIME", .def = "0", .group = GROUP_FAILURES,
     AT(hang_timeout_ms), .parse = parse_duration, .max = TIME_MAX_MS,
     .help = "A worker that gives no sign of life for so long hangs: the job is ended, with exit code 123 "
             "and a report of what each worker does; 0: never. Signs are launch_step(), WATCHDOG=1 to $NOTIFY_SOCKET "
             "(sd_notify), or, for a worker that gives neither, its output."},
    {.name = "exit-code", .arg = "worker|torchrun", .def = "worker", .group = GROUP_FAILURES,
     AT(exit_code), .parse = parse_choice, .choices = EXIT_WORDS,
     .help = "worker: exit with the code of the first worker that failed; torchrun: with 1 "
             "whatever failed."},

    {.name = "log-dir", .pet = "PET_LOG_DIR", .arg = "DIR", .group = GROUP_OUTPUT, AT(log_dir),
     .parse = output_parse_text,
     .help = "Log files go to attempt_<n>/<rank>/stdout.log and stderr.log in a new directory "
             "DIR/<run-id>_<random>, and after a failure failure.json to that directory itself. "
             "/dev/null: no log files."},
    {.name = "redirects", .letter = 'r', .pet = "PET_REDIRECTS", .arg = "MAP", .def = "0",
     .group = GROUP_OUTPUT, AT(redirects), .parse = output_parse_map, .choices = MAP_WORDS,
     .help = "Streams that go to log files instead of the console: 1 stdout, 2 stderr, 3 both, for "
             "all ranks or, as 0:3,10:1, for some. Without --log-dir in a new directory below "
             "TMPDIR."},
    {.name = "tee", .letter = 't', .pet = "PET_TEE", .arg = "MAP", .def = "0",
     .group = GROUP_OUTPUT, AT(tee), .parse = output_parse_map, .choices = MAP_WORDS,
     .help = "Streams that go to log files and to the console, there with a prefix before each line: "
             "[default0]: or what TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE makes of ${role_name}, "
             "${local_rank} and ${rank}."},
    {.name = "local-ranks-filter", .pet = "PET_LOCAL_RANKS_FILTER", .arg = "RANKS",
     .group = GROUP_OUTPUT, AT(shown_ranks), .parse = output_parse_list,
     .help = "Ranks whose output the console shows, such as 0,2; all when it is not given."},
    {.name = "duplicate-stdout-filters", .pet = "PET_DUPLICATE_STDOUT_FILTERS", .arg = "TEXTS",
     .group = GROUP_OUTPUT, AT(stdout_filters), .parse = output_parse_text,
     .help = "Lines on stdout of ranks with --tee that hold one of these texts go to "
             "attempt_<n>/filtered_stdout.log as well. Commas part texts; two commas are one in a "
             "text."},
    {.name = "duplicate-stderr-filters", .pet = "PET_DUPLICATE_STDERR_FILTERS", .arg = "TEXTS",
     .group = GROUP_OUTPUT, AT(stderr_filters), .parse = output_parse_text,
     .help = "The same for stderr and filtered_stderr.log."},
    {.name = "log-rotate-size", .arg = "BYTES", .def = "0", .group = GROUP_OUTPUT,
     AT(rotate_bytes), .parse = output_parse_size,
     .help = "A log file that would become larger than this is renamed to stdout.log.1 and so on, "
             "and a new one begun; such as 64K, 10M or 2G. 0: never."},
    {.name = "log-rotate-keep", .arg = "N", .def = "5", .group = GROUP_OUTPUT, AT(rotate_keep),
     .parse = parse_u32, .min = 1, .max = 1000,
     .help = "How many renamed log files are kept of each."},
    {.name = "stdin", .arg = "none|RANK|all", .group = GROUP_OUTPUT, AT(stdin_mode),
     .parse = output_parse_stdin, .choices = STDIN_WORDS,
     .help = "Who gets the launcher's stdin: nobody, one rank, or all, who share it. By default a single "
             "worker gets it, and several do not."},
    {.name = "cgroup", .arg = "auto|off", .def = "auto", .group = GROUP_FAILURES, AT(cgroup),
     .parse = parse_choice, .choices = CGROUP_WORDS,
     .help = "auto: where this user may make one (cgroup v2, delegated), the workers live in a cgroup of their "
             "own, so that all of them can be killed at once; off: they stay in the launcher's."},

    {.name = "standalone", .pet = "PET_STANDALONE", .group = GROUP_TORCHRUN, .parse = parse_switch,
     .help = "Every job is one of its own."},
    {.name = "nnodes", .pet = "PET_NNODES", .arg = "1|1:1", .def = "1", .group = GROUP_TORCHRUN,
     .parse = parse_nnodes, .help = "More than one server is not there yet."},
    {.name = "node-rank", .pet = "PET_NODE_RANK", .arg = "0", .def = "0", .group = GROUP_TORCHRUN,
     .parse = parse_u32, .help = "This server is the only one."},
    {.name = "rdzv-backend", .pet = "PET_RDZV_BACKEND", .arg = "static|c10d",
     .group = GROUP_TORCHRUN, .parse = parse_choice, .choices = BACKEND_WORDS,
     .help = "Workers meet in shared memory."},
    {.name = "rdzv-endpoint", .pet = "PET_RDZV_ENDPOINT", .arg = "HOST:PORT",
     .group = GROUP_TORCHRUN, .parse = parse_anything,
     .help = "See --master-addr and --master-port."},
    {.name = "monitor-interval", .pet = "PET_MONITOR_INTERVAL", .arg = "TIME",
     .group = GROUP_TORCHRUN, .parse = parse_duration, .min = 1, .max = TIME_MAX_MS,
     .help = "The end of a worker is noticed at once."},
    {.name = "start-method", .pet = "PET_START_METHOD", .arg = "spawn|fork|forkserver",
     .group = GROUP_TORCHRUN, .parse = parse_choice, .choices = START_WORDS,
     .help = "Workers are always programs of their own."},
    {.name = "no-python", .pet = "PET_NO_PYTHON", .group = GROUP_TORCHRUN, .parse = parse_switch,
     .help = "The program is executed directly in any case."},
    {.name = "use-env", .pet = "PET_USE_ENV", .group = GROUP_TORCHRUN, .parse = parse_switch,
     .help = "The local rank is always handed over in LOCAL_RANK."},
};
/* clang-format on */

const size_t FIELDS_N = ARRAY_LEN(FIELDS);

static_assert(ARRAY_LEN(FIELDS) <= SPEC_FIELDS_MAX, "job_spec.given is too short");

const char *field_env(const struct field *field, char buf[FIELD_ENV_BYTES])
{
    snprintf(buf, FIELD_ENV_BYTES, "LAUNCH_%s", field->name);
    for (char *c = buf; *c; c++)
        *c = *c == '-' ? '_' : *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
    return buf;
}

bool field_given(const struct field *field, const struct job_spec *spec)
{
    for (size_t i = 0; i < FIELDS_N; i++) {
        bool same_place = FIELDS[i].offset == field->offset && FIELDS[i].group != GROUP_TORCHRUN &&
                          field->group != GROUP_TORCHRUN;
        if (spec->given[i] && (&FIELDS[i] == field || same_place))
            return true;
    }
    return false;
}

int field_set(const struct field *field, struct job_spec *spec, const char *text, const char *where,
              struct err *err)
{
    union {
        bool on;
        unsigned word;
        uint64_t number;
    } nowhere;
    void *into = field->group == GROUP_TORCHRUN ? (void *)&nowhere : (char *)spec + field->offset;
    int r = field->parse(field, text, into, err);
    if (r < 0)
        return err_wrap(err, r, "%s", where);
    spec->given[field - FIELDS] = true;
    return 0;
}
