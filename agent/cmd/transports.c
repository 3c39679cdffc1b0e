/* SPDX-License-Identifier: MIT */
#include "transports.h"

#include "../../proto/env.h"
#include "../../proto/status.h"
#include "../bench/options.h"
#include "../bench/transports.h"
#include "../bench/trial.h"
#include "../log.h"

#include <stdio.h>
#include <string.h>

#define TIMEOUT_MS 60000
#define NVML_LIMIT_MS 10000
#define EXIT_FAILED 1 /* NCCL did not come to its end: what it chose is not known, or not all */

static const char help[] =
    "usage: launch %s --transports [--format=text|json] [options of launch]\n"
    "\n"
    "Runs all-reduces of 8 B and 64 MiB and a send and receive between each two\n"
    "GPUs, reads from NCCL's log over what it connected each pair, and shows that\n"
    "beside what the topology lets one expect. Where the two differ, it says why.\n"
    "\n"
    "  --timeout=TIME  a worker without a sign of life for so long hangs (60s)\n"
    "\n"
    "All other options are launch's: --gpus, --share-gpus, --nproc-per-node, ...\n"
    "Exit code: 0; 1 NCCL hung or failed; 2 wrong words; 75, 125, 126, 127 nothing was\n"
    "started; 128 + N for signal N.\n";

/* Collectives connect some pairs, send and receive the others, each at first use. One untimed call would do: nothing is measured. */
#define JOB(collective, from, to)                                                                  \
    collective, "-b", from, "-e", to, "-f", "8388608", "-n", "1", "-w", "0", "-c", "0", "-d",      \
        "float", "-o", "sum", "-r", "0", "-T", "0"
static const char *const reduce_words[] = {JOB("all_reduce", "8", "67108864"), NULL};
static const char *const pair_words[] = {JOB("sendrecv", "65536", "65536"), "--pairs", NULL};

static void on_line(void *user, const char *line, size_t n)
{
    (void)user, (void)line, (void)n; /* what it measured is not what is asked */
}

/* Adds what NCCL's log tells to `log`. Returns -1 or an exit code, all has been said. */
static int try_job(const struct bench_options *options, const char *const *arguments,
                   struct nccl_log *log)
{
    char *job[ARRAY_LEN(reduce_words) + 2] = {options->job};
    struct trial trial;
    struct err err;
    for (size_t i = 0; arguments[i]; i++)
        job[i + 1] = (char *)arguments[i];
    struct trial_request request = {
        .options = options->words,
        .job = job,
        .limit_ms = options->spec.timeout_ms ? (unsigned)options->spec.timeout_ms : TIMEOUT_MS,
        .wait_ms = options->spec.wait_ms,
        .on_line = on_line};
    if (trial_run(&request, &trial, &err) < 0) {
        log_error("--transports: %s", err.text);
        return EXIT_CODE_OURS;
    }
    int exit_code = child_passed_on(&trial.end);
    if (exit_code >= 0 || trial.end.code) {
        size_t n;
        const char *said = tail_text(&trial.end.said, &n);
        log_block(said, n);
    }
    if (exit_code < 0 && trial.end.code) {
        log_error("--transports: %s %s; launch check finds out why",
                  gpu_collectives(options->plan.gpus.vendor),
                  trial_hung(&trial) ? "hangs" : "fails");
        exit_code = EXIT_FAILED;
    }
    if (!log->ranks)
        *log = *trial.log;
    else
        transports_merge(log, trial.log);
    trial_finish(&trial);
    return exit_code;
}

static int show(const struct bench_options *options, const struct nccl_log *log, bool json)
{
    static struct nccl_conf conf;
    const char *sysroot = getenv(ENV_SYSROOT);
    struct topology *topology = NULL;
    struct err err;
    unsigned want = NVML_MATRIX | NVML_P2P(P2P_READ) | NVML_P2P(P2P_WRITE);
    if (topology_read(&topology, sysroot ? sysroot : "", want, NVML_LIMIT_MS, &err) < 0) {
        log_error("%s", err.text);
        return EXIT_CODE_OURS;
    }
    nccl_conf_read(&conf, topology->sysroot, environ, NULL, topology->list.vendor == GPU_AMD);
    const struct transports t = {log, topology, &conf, options->spec.share_gpus};
    (json ? transports_json : transports_text)(stdout, &t);
    topology_free(topology);
    return fflush(stdout) == 0 ? EXIT_CODE_OK : EXIT_CODE_OURS;
}

static int run(const struct bench_options *options, bool json)
{
    if (!options->gpus || options->plan.world_size > NCCL_LOG_RANKS_MAX) {
        log_error("--transports: %s",
                  options->gpus ? "more ranks than this can show" : "no GPU that NCCL could use");
        return EXIT_CODE_USAGE;
    }
    AUTO_FREE struct nccl_log *log = calloc(1, sizeof *log);
    if (!log) {
        log_error("no memory");
        return EXIT_CODE_OURS;
    }
    int exit_code = try_job(options, reduce_words, log);
    if (exit_code < 0 && options->plan.world_size > 1)
        exit_code = try_job(options, pair_words, log);
    if (exit_code > EXIT_FAILED || !log->ranks)
        return exit_code < 0 ? EXIT_FAILED : exit_code;
    int shown = show(options, log, json);
    return shown ? shown : exit_code < 0 ? EXIT_CODE_OK : exit_code;
}

bool transports_asked(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--transports") == 0)
            return true;
    return false;
}

int cmd_transports(int argc, char **argv)
{
    bool json = false;
    int kept = 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return printf(help, argv[0]) < 0 ? EXIT_CODE_OURS : EXIT_CODE_OK;
        if (strcmp(argv[i], "--json") == 0 || strcmp(argv[i], "--format=json") == 0)
            json = true;
        else if (strcmp(argv[i], "--format=text") == 0)
            json = false;
        else if (strcmp(argv[i], "--transports") != 0)
            argv[kept++] = argv[i];
    }
    argv[kept] = NULL;
    return bench_options_run("--transports", argv + 1, json, run);
}
