/* SPDX-License-Identifier: MIT */
#include "check.h"

#include "../../proto/clock.h"
#include "../../proto/status.h"
#include "../gpu_users.h"
#include "../log.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define MEMORY_LIMIT_MS 10000 /* for the driver to take back what killed processes had */
#define MEMORY_PAUSE_MS 20
#define LINE_BYTES 128

const struct check_rung CHECK_RUNGS[CHECK_RUNGS_N] = {
    {.name = "none", .words = "as it is"},
    {.name = "nvls",
     .words = "without NVLS",
     .variable = "NCCL_NVLS_ENABLE",
     .value = "0",
     .meaning = "NVLink SHARP, by which the NVSwitches add up, does not work; all else does",
     .fix =
         "Fabric Manager is of another version than the driver, or was restarted without the GPUs: "
         "end all GPU jobs, then `nvidia-smi -r`, or reboot"},
    {.name = "p2p",
     .words = "without NVLS and P2P",
     .variable = "NCCL_P2P_DISABLE",
     .value = "1",
     .meaning = "the GPUs do not reach each other's memory, although the driver says that they do",
     .fix = "on PCIe: ACS off on the bridges (BIOS, or setpci) and iommu=pt on the kernel's "
            "command line; in "
            "a virtual machine the host must do so. On NVLink: `nvidia-smi nvlink -s` and -e, then "
            "a reset"},
    {.name = "shm",
     .words = "without NVLS, P2P and SHM",
     .variable = "NCCL_SHM_DISABLE",
     .value = "1",
     .meaning = "neither P2P nor memory that the processes share works; sockets do",
     .fix = "/dev/shm needs room (a container: --shm-size=1g or --ipc=host) and mode 1777; the "
            "processes must see "
            "one another (one pid and ipc namespace); cuMem on the host: NCCL_CUMEM_HOST_ENABLE=0"},
};

/* ---- sums ---- */

void check_take_line(struct check_sum *sums, unsigned ranks, const char *line, size_t n)
{
    char text[LINE_BYTES];
    unsigned rank, of;
    long long sum;
    int end = 0;
    if (n >= sizeof text || memchr(line, '\0', n))
        return;
    memcpy(text, line, n);
    text[n] = '\0';
    if (sscanf(text, "rank %9u of %9u: sum = %18lld%n", &rank, &of, &sum, &end) == 3 &&
        (size_t)end == n && of == ranks && rank < ranks)
        sums[rank] = (struct check_sum){true, sum};
}

long long check_right_sum(unsigned ranks)
{
    return (long long)ranks * (ranks - 1) / 2;
}

enum check_outcome check_outcome(const struct check_sum *sums, unsigned ranks, int exit_code,
                                 bool hung)
{
    unsigned told = 0;
    for (unsigned r = 0; r < ranks; r++) {
        if (sums[r].told && sums[r].sum != check_right_sum(ranks))
            return CHECK_WRONG;
        told += sums[r].told;
    }
    return hung ? CHECK_HANGS : exit_code == 0 && told == ranks ? CHECK_PASSES : CHECK_FAILS;
}

/* ---- one run ---- */

struct listener {
    struct check_sum *sums;
    unsigned ranks;
};

static void on_line(void *user, const char *line, size_t n)
{
    const struct listener *l = user;
    check_take_line(l->sums, l->ranks, line, n);
}

/* A process of the run has GPU memory. In a container NVML's pids may be others: then nobody is seen. */
static bool holds_memory(const struct check *check, const struct nccl_log *log)
{
    struct gpu_users users;
    if (gpu_users_read(&users, check->sysroot, &check->plan->gpus) < 0)
        return false;
    for (unsigned i = 0; i < users.n; i++)
        for (unsigned k = 0; k < log->processes_n; k++)
            if (users.user[i].pid == log->process[k].pid)
                return true;
    return false;
}

static void wait_for_memory(const struct check *check, const struct nccl_log *log)
{
    uint64_t deadline = clock_deadline_ns(MEMORY_LIMIT_MS);
    while (holds_memory(check, log)) {
        if (clock_now_ns() > deadline) {
            log_warn("check: GPU memory of ended processes is still in use after %d s",
                     MEMORY_LIMIT_MS / 1000);
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = MEMORY_PAUSE_MS * (long)NS_PER_MS}, NULL);
    }
}

static int run_rung(struct check *check, struct check_run *run, char *const *env)
{
    struct err err;
    unsigned ranks = check->plan->world_size;
    run->sums = calloc(ranks, sizeof *run->sums);
    if (!run->sums) {
        log_error("check: no memory");
        return EXIT_CODE_OURS;
    }
    struct listener listener = {run->sums, ranks};
    struct trial_request request = {.options = check->options,
                                    .job = check->job,
                                    .env = env,
                                    .limit_ms = check->limit_ms,
                                    .wait_ms = check->wait_ms,
                                    .on_line = on_line,
                                    .user = &listener};
    if (trial_run(&request, &run->trial, &err) < 0) {
        log_error("check: %s", err.text);
        return EXIT_CODE_OURS;
    }
    int exit_code = child_passed_on(&run->trial.end);
    if (exit_code >= 0)
        return exit_code;
    run->outcome = check_outcome(run->sums, ranks, run->trial.end.code, trial_hung(&run->trial));
    return -1;
}

/* ---- all of them ---- */

/* The user has taken that away already: the run would be the one before once more. */
static bool is_gone(const struct check_rung *rung)
{
    const char *value = rung->variable ? getenv(rung->variable) : NULL;
    return value && strcmp(value, rung->value) == 0;
}

int check_do(struct check *check, void (*on_run)(const struct check *check))
{
    static char text[CHECK_RUNGS_N][64];
    char *env[CHECK_RUNGS_N + 1] = {NULL};
    unsigned env_n = 0;
    unsigned rungs =
        check->host || check->shared || check->plan->world_size == 1 ? 1 : CHECK_RUNGS_N;
    check->verdict = CHECK_BROKEN;
    for (unsigned i = 0; i < rungs; i++) {
        const struct check_rung *rung = &CHECK_RUNGS[i];
        if (is_gone(rung))
            continue;
        if (rung->variable) {
            wait_for_memory(check, check->run[check->runs_n - 1].trial.log);
            snprintf(text[i], sizeof text[i], "%s=%s", rung->variable, rung->value);
            env[env_n++] = text[i];
        }
        struct check_run *run = &check->run[check->runs_n++];
        run->rung = rung;
        int exit_code = run_rung(check, run, env);
        if (exit_code >= 0)
            return exit_code;
        on_run(check);
        if (run->outcome == CHECK_PASSES) {
            check->verdict = i == 0 ? CHECK_HEALTHY : CHECK_DEGRADED;
            break;
        }
    }
    return -1;
}

void check_finish(struct check *check)
{
    for (unsigned i = 0; i < check->runs_n; i++) {
        free(check->run[i].sums);
        trial_finish(&check->run[i].trial);
    }
    check->runs_n = 0;
}

const char *check_outcome_name(enum check_outcome outcome)
{
    static const char *const names[] = {"passes", "hangs", "wrong", "fails"};
    return names[outcome];
}

const char *check_verdict_name(enum check_verdict verdict)
{
    static const char *const names[] = {"healthy", "degraded", "broken"};
    return names[verdict];
}

const struct check_rung *check_cure(const struct check *check)
{
    return check->verdict == CHECK_DEGRADED ? check->run[check->runs_n - 1].rung : NULL;
}
