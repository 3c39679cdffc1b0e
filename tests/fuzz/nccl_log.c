/* SPDX-License-Identifier: MIT */
/* Any text as NCCL's log: what is made of it stays in its bounds. */
#include "../../agent/nccl_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct nccl_log log;
    memset(&log, 0, sizeof log);
    nccl_log_text(&log, (const char *)data, n);
    must(log.ranks <= NCCL_LOG_RANKS_MAX, "too many ranks");
    must(log.processes_n <= NCCL_LOG_RANKS_MAX, "too many processes");
    must(log.choices_n <= NCCL_LOG_LISTS_MAX && log.settings_n <= NCCL_LOG_LISTS_MAX, "lists");
    for (unsigned i = 0; i < log.processes_n; i++) {
        must(log.process[i].rank < NCCL_LOG_RANKS_MAX, "a rank beyond the table");
        must(strnlen(log.process[i].warning, sizeof log.process[i].warning) <
                 sizeof log.process[i].warning,
             "a warning without an end");
        must(*nccl_phase_words(nccl_log_phase(&log.process[i])) != '\0', "no such phase");
    }
    for (unsigned from = 0; from < NCCL_LOG_RANKS_MAX; from++)
        for (unsigned to = 0; to < NCCL_LOG_RANKS_MAX; to++) {
            char text[NCCL_VIA_BYTES];
            must((log.via[from][to] != 0) == (nccl_log_channels(&log, from, to) != 0),
                 "a way without a channel");
            must(strlen(nccl_log_cell(&log, from, to, text)) < NCCL_VIA_BYTES, "a long cell");
        }
    return 0;
}
