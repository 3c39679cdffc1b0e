/* SPDX-License-Identifier: MIT */
/* launch check: its words, and which exit code its verdict is. */
#include "check.h"

#include "../../proto/env.h"
#include "../../proto/status.h"
#include "../bench/check.h"
#include "../bench/options.h"
#include "../log.h"

#include <stdio.h>
#include <string.h>

#define TIMEOUT_MS 30000

static const char help[] =
    "usage: launch check [--timeout=TIME] [--json] [options of launch]\n"
    "\n"
    "Every GPU's worker adds up the ranks over NCCL, and the sums are looked at. If\n"
    "it hangs, fails or a sum is wrong, fresh processes try again without NVLS, then\n"
    "without P2P too, then without shared memory too: the first that passes tells\n"
    "what is broken.\n"
    "\n"
    "  --timeout=TIME  a worker without a sign of life for so long hangs (30s)\n"
    "  --json          one object, for programs\n"
    "\n"
    "All other options are launch's: --nproc-per-node (auto), --gpus, --share-gpus.\n"
    "Exit code: 0 healthy; 3 degraded, it works only without one of NCCL's ways;\n"
    "1 broken; 2 wrong words; 75, 125, 126, 127 nothing was started; 128 + N for\n"
    "signal N.\n";

void check_help(FILE *out)
{
    fputs(help, out);
}

static const int exit_codes[] = {[CHECK_HEALTHY] = 0, [CHECK_DEGRADED] = 3, [CHECK_BROKEN] = 1};

static void show_run(const struct check *check)
{
    check_text_run(stdout, check, &check->run[check->runs_n - 1]);
}

static void show_nothing(const struct check *check)
{
    (void)check;
}

/* What launch said is all there is. */
static int give_up(const struct check *check, int exit_code)
{
    size_t n;
    const char *said = tail_text(&check->run[check->runs_n - 1].trial.end.said, &n);
    log_block(said, n);
    return exit_code;
}

static int run(const struct bench_options *options, bool json)
{
    char *job[] = {options->job, (char *)"check", NULL};
    const char *sysroot = getenv(ENV_SYSROOT);
    struct check check = {.sysroot = sysroot ? sysroot : "",
                          .plan = &options->plan,
                          .options = options->words,
                          .job = job,
                          .limit_ms = options->spec.timeout_ms ? (unsigned)options->spec.timeout_ms
                                                               : TIMEOUT_MS,
                          .wait_ms = options->spec.wait_ms,
                          .host = !options->gpus,
                          .shared = options->spec.share_gpus};
    int exit_code = check_do(&check, json ? show_nothing : show_run);
    if (exit_code >= 0) {
        exit_code = give_up(&check, exit_code);
    } else {
        (json ? check_json : check_text_verdict)(stdout, &check);
        exit_code = exit_codes[check.verdict];
    }
    check_finish(&check);
    return fflush(stdout) == 0 ? exit_code : EXIT_CODE_OURS;
}

int cmd_check(int argc, char **argv)
{
    bool json = false;
    int kept = 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return fputs(help, stdout) < 0 ? EXIT_CODE_OURS : EXIT_CODE_OK;
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else
            argv[kept++] = argv[i];
    }
    argv[kept] = NULL;
    return bench_options_run("check", argv + 1, json, run);
}
