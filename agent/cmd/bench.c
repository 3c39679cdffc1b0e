/* SPDX-License-Identifier: MIT */
/* `launch bench`: a job of launch whose records are shown while they come. Measures nothing itself. */
#include "bench.h"

#include "../../config/fields.h"
#include "../../proto/env.h"
#include "../../proto/status.h"
#include "../bench/ask.h"
#include "../bench/bench_json.h"
#include "../bench/child.h"
#include "../bench/pairs.h"
#include "../bench/text.h"
#include "../log.h"
#include "../opts.h"
#include "../plan.h"
#include "../sieve.h"
#include "../signals.h"
#include "transports.h"

#include <stdio.h>
#include <string.h>

#define EXIT_FAILED 1 /* wrong values, too slow, not complete */
#define NVML_LIMIT_MS 10000

struct bench {
    struct bench_ask ask;
    struct bench_run run;
    struct bench_run *runs; /* owned: of the whole sweep, runs_n of them before `run` */
    unsigned runs_n;
    struct verdict verdict;
    enum gpu_vendor gpus; /* that the ranks work on; GPU_NONE: host memory */
    unsigned ranks;
    char *job; /* owned: its path */
    FILE *json;
    char *json_name; /* owned, with the stream above; NULL: none */
    struct bench_context context;
    bool header, progress; /* shown; a line is on the terminal */
    unsigned notes;        /* that the header has */
    struct err trouble;    /* the first record that made no sense */
};

/* What is not shown: all runs of a sweep but the last one. */
static bool is_quiet(const struct bench *b)
{
    return b->runs_n + 1 < b->ask.runs;
}

static const char *sysroot(void)
{
    const char *root = getenv(ENV_SYSROOT);
    return root ? root : "";
}

/* ---- progress ---- */

/* A terminal has one line that says what is measured, and it is gone in the end. */
static void clear_progress(struct bench *b)
{
    if (b->progress)
        log_block("\033[K", 3);
    b->progress = false;
}

static void show_progress(struct bench *b, const struct bench_result *at)
{
    char text[160];
    if (!isatty(STDERR_FILENO))
        return;
    char of[32] = "";
    if (b->ask.runs > 1)
        snprintf(of, sizeof of, "run %u of %u: ", b->runs_n + 1, b->ask.runs);
    int n = snprintf(text, sizeof text, "\033[K%s%s of %llu bytes, %s, %s: %u measured\r", of,
                     bench_collective_name(b->run.collective), (unsigned long long)at->size,
                     bench_type_name(at->type), bench_op_name(at->op),
                     b->run.results_n + b->run.pairs_n);
    log_block(text, (size_t)n);
    b->progress = true;
}

/* ---- what the job says ---- */

static void show_header(struct bench *b)
{
    if (b->header || b->ask.format != ASK_TEXT || is_quiet(b))
        return;
    bench_text_header(stdout, &b->run);
    if (!b->ask.pairs)
        bench_text_columns(stdout);
    b->header = true;
    b->notes = b->run.notes_n;
}

static void show(struct bench *b, int kind, const char *line, size_t n)
{
    const struct bench_run *run = &b->run;
    bool text = b->ask.format == ASK_TEXT && !is_quiet(b);
    if (kind == BENCH_RECORD_RESULT || kind == BENCH_RECORD_END)
        show_header(b);
    if (kind == BENCH_RECORD_RESULT && text)
        bench_text_result(stdout, &run->results[run->results_n - 1]);
    if (kind == BENCH_RECORD_NONE) {    /* NCCL_DEBUG=INFO, for one */
        char whole[SIEVE_LINE_MAX + 1]; /* at once: the job writes to stderr, too */
        memcpy(whole, line, n);
        whole[n] = '\n';
        fwrite(whole, 1, n + 1, text ? stdout : stderr);
    }
    fflush(stdout);
}

static void on_line(void *user, const char *line, size_t n)
{
    struct bench *b = user;
    struct bench_result at;
    struct err err;
    int kind = bench_run_take(&b->run, line, n, &at, &err);
    clear_progress(b);
    if (kind == BENCH_RECORD_AT)
        show_progress(b, &at);
    else if (kind >= 0)
        show(b, kind, line, n);
    else if (!b->trouble.code)
        b->trouble = err;
}

/* ---- before it starts ---- */

/* All but -g, which is ours. */
static int read_options(const struct bench_ask *ask, struct job_spec *spec, struct err *err)
{
    char name[] = "launch", job[] = "launch-bench";
    enum opts_action action;
    char **argv = calloc(ask->words_n + 3, sizeof *argv);
    if (!argv)
        return err_set_errno(err, -ENOMEM, "options");
    argv[0] = name;
    for (unsigned i = 0; i < ask->words_n; i++)
        argv[i + 1] = ask->words[i];
    argv[ask->words_n + 1] = job;
    int rc = opts_parse(spec, (int)ask->words_n + 2, argv, &action, err);
    free(argv);
    return rc;
}

/* How many ranks, with GPUs or without: what launch itself will make of its options. */
static int look(struct bench *b, struct err *err)
{
    struct job_spec spec;
    struct plan plan;
    char number[16];
    const struct field *nproc = field_find("nproc-per-node", strlen("nproc-per-node"));
    if (spec_init(&spec) < 0)
        return err_set_errno(err, -ENOMEM, "options");
    int rc = read_options(&b->ask, &spec, err);
    snprintf(number, sizeof number, "%u", b->ask.ranks);
    if (rc == 0 && (b->ask.ranks || !field_given(nproc, &spec)))
        rc = field_set(nproc, &spec, b->ask.ranks ? number : "auto", "-g", err);
    if (rc == 0)
        rc = spec_check(&spec, err);
    if (rc == 0)
        rc = plan_make(&plan, &spec, err);
    if (rc == 0) {
        unsigned gpus = plan.gpus_wanted ? plan.gpus_wanted : plan.gpu_set.n;
        b->gpus = gpus ? plan.gpus.vendor : GPU_NONE;
        b->ranks = plan.world_size;
        if (gpus && b->ranks > gpus && !spec.share_gpus)
            rc = err_set(err, -EINVAL, "-g: %u ranks for %u GPU%s: ask for fewer, or --share-gpus",
                         b->ranks, gpus, gpus == 1 ? "" : "s");
    }
    spec_finish(&spec);
    return rc;
}

static int prepare(struct bench *b, struct err *err)
{
    int rc = look(b, err);
    if (rc == 0)
        rc = ask_settle(&b->ask, b->gpus, b->ranks, err);
    if (rc == 0)
        rc = child_find_job(b->gpus, &b->job, err);
    if (rc == 0 && !(b->runs = calloc(b->ask.runs, sizeof *b->runs)))
        rc = err_set_errno(err, -ENOMEM, "runs");
    if (rc == 0 && verdict_check(&b->ask.verdict, sysroot(), err) < 0)
        rc = -EINVAL; /* whatever it is, the words can't be followed */
    if (rc == 0 && b->ask.json_file) {
        rc = bench_file_open(b->ask.json_file, &b->json, &b->json_name, err);
        if (rc < 0)
            err_wrap(err, rc, "-J");
    }
    return rc;
}

static int run_job(struct bench *b, struct child_end *end, struct err *err)
{
    char text[ASK_TEXT_BYTES], *arguments[ASK_ARGUMENTS_MAX], nproc[32];
    char none[] = "--stdin=none", dashes[] = "--";
    AUTO_FREE char **words = calloc(b->ask.words_n + 5 + ASK_ARGUMENTS_MAX, sizeof *words);
    size_t n = 0;
    if (!words)
        return err_set_errno(err, -ENOMEM, "options");
    ask_job_arguments(&b->ask, arguments, text);
    snprintf(nproc, sizeof nproc, "--nproc-per-node=%u", b->ranks);
    for (unsigned i = 0; i < b->ask.words_n; i++)
        words[n++] = b->ask.words[i];
    words[n++] = nproc;
    words[n++] = none;
    words[n++] = dashes;
    words[n++] = b->job;
    for (size_t i = 0; arguments[i]; i++)
        words[n++] = arguments[i];
    const struct child_request request = {.words = words, .on_line = on_line, .user = b};
    return child_run(&request, end, err);
}

/* ---- after its end ---- */

static void show_pairs(const struct bench *b)
{
    struct topology *t = NULL;
    struct err err;
    if (!b->run.host && topology_read(&t, sysroot(), NVML_MATRIX, NVML_LIMIT_MS, &err) < 0)
        log_warn("%s: pairs are compared with all others", err.text);
    pairs_text(stdout, &b->run, t);
    topology_free(t);
}

static void show_end(struct bench *b)
{
    if (b->ask.format == ASK_JSON)
        bench_json(stdout, &b->run, &b->context);
    else if (b->ask.format == ASK_CSV)
        bench_csv(stdout, &b->run);
    else if (b->ask.format == ASK_SVG)
        return; /* a picture is of a whole run: show_verdict() */
    else if (b->run.pairs_n)
        show_pairs(b);
    else if (b->run.ended)
        bench_text_footer(stdout, &b->run, b->context.min_bw, b->notes);
    fflush(stdout);
}

static int write_json(struct bench *b)
{
    if (!b->json)
        return EXIT_CODE_OK;
    bench_json(b->json, &b->run, &b->context);
    bool failed = ferror(b->json);
    failed |= fclose(b->json) != 0;
    if (failed)
        log_error("-J: %s: %s", b->json_name, strerror(errno));
    else if (strcmp(b->json_name, b->ask.json_file) != 0)
        log_info("%s is there already: the results are in %s", b->ask.json_file, b->json_name);
    return failed ? EXIT_CODE_OURS : EXIT_CODE_OK;
}

/* Nothing was started. */
static void forget_json(struct bench *b)
{
    if (!b->json)
        return;
    fclose(b->json);
    unlink(b->json_name);
}

/* Launch's own verdicts are passed on; those of the job are all a failure. */
static int job_code(const struct bench *b, const struct child_end *end)
{
    if (end->code == EXIT_CODE_HANG || end->code == EXIT_CODE_DEADLINE)
        return end->code;
    int code = child_passed_on(end);
    bool wrong_words = code == EXIT_CODE_USAGE && b->run.ranks; /* the job's own code, later */
    return code < 0 || code != end->code || wrong_words ? EXIT_FAILED : code;
}

/* It was not started, or was ended before it said anything: launch has said why. */
static bool is_unborn(const struct bench *b, const struct child_end *end)
{
    return end->code && !b->run.ranks && !b->trouble.code && child_passed_on(end) >= 0;
}

/* Tells what is wrong, and leaves it in the context. */
static int judge(struct bench *b, const struct child_end *end)
{
    static char error[ERR_TEXT_BYTES];
    const struct bench_run *run = &b->run;
    b->context.error = error;
    if (run->timed_out)
        snprintf(error, sizeof error, "a wait took longer than -T %u s", b->ask.timeout_s);
    else if (b->trouble.code)
        snprintf(error, sizeof error, "%s", b->trouble.text);
    else if (!run->ended && !is_unborn(b, end))
        snprintf(error, sizeof error, "the job ended before all was measured");
    else
        b->context.error = NULL;
    if (b->context.error)
        log_error("bench: %s", error);
    if (run->timed_out)
        return EXIT_CODE_DEADLINE;
    if (end->code)
        return job_code(b, end);
    bool slow = !b->ask.pairs && !bench_fast_enough(run, b->context.min_bw);
    return b->context.error || bench_wrong(run) || slow ? EXIT_FAILED : EXIT_CODE_OK;
}

/* Lines for a person: behind the table, or, where stdout is for programs, on stderr. */
static void show_verdict(const struct bench *b, const char *kept, size_t kept_n)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = b->ask.format == ASK_TEXT ? stdout : open_memstream(&text, &n);
    if (b->ask.format == ASK_SVG)
        verdict_svg(stdout, &b->verdict);
    if (out) {
        verdict_text(out, &b->verdict);
        fwrite(kept, 1, kept_n, out);
    }
    fflush(stdout);
    if (out && out != stdout) {
        fclose(out);
        log_block(text, n);
        free(text);
    }
}

/* The run was good in itself. What it is beside others; returns the exit code. */
static int measure_up(struct bench *b)
{
    struct err err;
    const struct verdict_ask *ask = &b->ask.verdict;
    b->runs[b->runs_n] = b->run;
    int rc = verdict_find(&b->verdict, ask, b->runs, b->runs_n + 1, b->ask.format == ASK_SVG,
                          sysroot(), &err);
    if (rc < 0) {
        log_error("%s", err.text);
        return VERDICT_EXIT_NOT_COMPARABLE;
    }
    AUTO_FREE char *kept = NULL;
    size_t kept_n = 0;
    FILE *out = open_memstream(&kept, &kept_n);
    rc = verdict_keep(out, &b->verdict, ask, sysroot(), &err);
    if (out)
        fclose(out);
    show_verdict(b, kept ? kept : "", kept_n);
    if (rc < 0 && !ask->save)
        log_warn("%s: this run is not in its history", err.text);
    else if (rc < 0)
        log_error("%s", err.text);
    return rc < 0 && ask->save ? EXIT_CODE_OURS : verdict_exit_code(&b->verdict);
}

/* This run is the last one: what it came to is shown after all. */
static void show_failed(struct bench *b)
{
    b->ask.runs = b->runs_n + 1;
    if (!b->run.ranks)
        return;
    show_header(b);
    for (unsigned i = 0; b->header && i < b->run.results_n; i++)
        bench_text_result(stdout, &b->run.results[i]);
}

/* All runs of the sweep, one after the other, until one fails; *end: of the last one that was. */
static int run_jobs(struct bench *b, struct child_end *end, struct err *err)
{
    for (;;) {
        int rc = run_job(b, end, err);
        clear_progress(b);
        if (rc < 0 || !is_quiet(b))
            return rc;
        if (end->code || !b->run.ended || b->trouble.code || bench_wrong(&b->run)) {
            show_failed(b);
            return 0;
        }
        b->runs[b->runs_n++] = b->run;
        b->run = (struct bench_run){0};
    }
}

static int run_bench(struct bench *b, struct err *err)
{
    struct child_end end = {0};
    b->context.start = time(NULL);
    int rc = run_jobs(b, &end, err);
    if (rc < 0)
        return rc;
    b->context.end = time(NULL);
    int exit_code = judge(b, &end);
    if (b->run.ranks)
        show_end(b);
    if (exit_code == EXIT_CODE_OK && !b->ask.pairs)
        exit_code = measure_up(b);
    int written = EXIT_CODE_OK;
    if (is_unborn(b, &end))
        forget_json(b);
    else
        written = write_json(b);
    if (end.signal == SIGINT && exit_code == 128 + SIGINT)
        signals_die_of_interrupt();
    return exit_code ? exit_code : written;
}

static int min_bandwidth(double *ret, struct err *err)
{
    const char *text = getenv("NCCL_TESTS_MIN_BW");
    char *end;
    *ret = -1;
    if (!text || !*text)
        return 0;
    double value = strtod(text, &end);
    if (*end || !(value >= 0))
        return err_set(err, -EINVAL, "NCCL_TESTS_MIN_BW: must be a bandwidth in GB/s, not '%.60s'",
                       text);
    *ret = value;
    return 0;
}

int cmd_bench(int argc, char **argv)
{
    struct bench b = {.context = {.argv = argv, .env = environ}};
    struct err err;
    int exit_code = EXIT_CODE_OK;
    if (transports_asked(argc, argv))
        return cmd_transports(argc, argv);
    int rc = ask_parse(&b.ask, argc, argv, &err);
    if (rc == 0 && b.ask.help) {
        ask_print_help(stdout);
    } else if (rc == 0 && b.ask.history) {
        rc = verdict_history(stdout, sysroot(), &err);
    } else {
        if (rc == 0)
            rc = min_bandwidth(&b.context.min_bw, &err);
        if (rc == 0)
            rc = prepare(&b, &err);
        if (rc == 0)
            rc = exit_code = run_bench(&b, &err);
    }
    if (rc < 0) {
        log_error("%s", err.text);
        forget_json(&b);
        exit_code =
            rc == -EINVAL || rc == -EACCES || rc == -ENOENT ? EXIT_CODE_USAGE : EXIT_CODE_OURS;
    }
    free(b.job);
    free(b.json_name);
    verdict_finish(&b.verdict);
    bench_run_finish(&b.run);
    for (unsigned i = 0; i < b.runs_n; i++)
        bench_run_finish(&b.runs[i]);
    free(b.runs);
    ask_finish(&b.ask);
    return exit_code;
}
