/* SPDX-License-Identifier: MIT */
/* launch stop, restart, grow, signal: what is asked of a running job. */
#include "../../proto/status.h"
#include "../log.h"
#include "control.h"
#include "words.h"

#include <poll.h>
#include <string.h>

/* Its end closes the socket. */
static void wait_for_end(const struct client_job *job)
{
    struct pollfd p = {.fd = job->fd, .events = POLLIN};
    while (poll(&p, 1, -1) < 0 && errno == EINTR)
        continue;
}

int cmd_stop(int argc, char **argv)
{
    struct words words;
    struct client_job job;
    int exit_code = words_open(&words, argc, argv, WORD_NOW, &job);
    if (exit_code >= 0)
        return exit_code;
    exit_code = words_ask(&job, words.given & WORD_NOW ? WIRE_KILL : WIRE_STOP, &words, NULL, NULL);
    if (exit_code == 0)
        wait_for_end(&job);
    client_close(&job);
    return exit_code;
}

static int ask_only(int argc, char **argv, unsigned takes, enum wire_verb verb)
{
    struct words words;
    struct client_job job;
    int exit_code = words_open(&words, argc, argv, takes, &job);
    if (exit_code >= 0)
        return exit_code;
    exit_code = words_ask(&job, verb, &words, NULL, NULL);
    client_close(&job);
    return exit_code;
}

int cmd_restart(int argc, char **argv)
{
    return ask_only(argc, argv, WORD_RANK, WIRE_RESTART);
}

int cmd_grow(int argc, char **argv)
{
    return ask_only(argc, argv, WORD_RANK, WIRE_GROW);
}

int cmd_signal(int argc, char **argv)
{
    return ask_only(argc, argv, WORD_RANK | WORD_SIGNAL, WIRE_SIGNAL);
}
