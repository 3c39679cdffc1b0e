/* SPDX-License-Identifier: MIT */
/* -T: a wait that takes too long ends the process, wherever it waits: an alarm, for a call into CUDA or NCCL may be what
 * does not return. The others give rank 0 a second, so that it can write its last record before the launcher ends it. */
#include "bench.h"

#include "../proto/status.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define LATE_S 1

/* What the handler writes: it may not format. */
static char record[80], words[200];
static volatile sig_atomic_t record_n, words_n;

static void on_alarm(int sig)
{
    (void)sig;
    (void)!write(STDOUT_FILENO, record, (size_t)record_n);
    (void)!write(STDERR_FILENO, words, (size_t)words_n);
    _exit(EXIT_CODE_DEADLINE);
}

void bench_watch(const struct bench *b, const struct bench_plan *p)
{
    if (!b->o.timeout_s)
        return;
    if (b->rank == 0)
        record_n = snprintf(record, sizeof record,
                            "{\"end\": {\"wrong\": %d, \"timeout\": true}}\n", b->halves_wrong);
    words_n = snprintf(words, sizeof words,
                       "rank %d: %s of %zu bytes has not ended after %u s (-T)\n", b->rank,
                       bench_collective_text(p->collective), bench_plan_bytes(p), b->o.timeout_s);
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    alarm(b->o.timeout_s + (b->rank ? LATE_S : 0));
}

void bench_unwatch(const struct bench *b)
{
    if (b->o.timeout_s)
        alarm(0);
}
