/* SPDX-License-Identifier: MIT */
/* What workers tell in the form of sd_notify(3): a datagram of "NAME=value" lines to the socket in NOTIFY_SOCKET.
 * Any language can do that without a library of ours. Understood: WATCHDOG=1, READY=1, STOPPING=1, STATUS=text.
 *
 * Each rank has a socket of its own, so the socket says who speaks. Its name is an abstract one: there is no file
 * that a SIGKILL could leave behind; it goes with its last descriptor. Anybody in the network namespace can send
 * to such a name, random or not (/proc/net/unix lists them), so the name protects nothing. What does is the kernel's word
 * for the sender (SO_PASSCRED): its user must be ours, and a sender that still exists must be below this process.
 * A short-lived one (a command in a shell script) may have ended before we look; its user then has to do. That
 * is enough: whoever has our user id can signal and trace the workers anyhow, and all that can be told here is
 * "alive" and a line of text, which is input like everything else. */
#ifndef LAUNCH_AGENT_NOTIFY_H
#define LAUNCH_AGENT_NOTIFY_H

#include "../proto/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct watch;

#define NOTIFY_ADDRESS_BYTES 48
#define NOTIFY_STATUS_BYTES 80

struct notify_rank {
    int fd;                             /* owned */
    struct watch *watch;                /* owned */
    char address[NOTIFY_ADDRESS_BYTES]; /* for NOTIFY_SOCKET: '@' stands for the NUL in front */
    uint64_t watchdogs;                 /* WATCHDOG=1 */
    uint64_t messages;                  /* others that were understood */
    uint64_t refused;                   /* of strangers */
    bool ready, stopping;
    char status[NOTIFY_STATUS_BYTES]; /* last STATUS=, printable ASCII */
};

struct notify {
    uint32_t n;
    struct notify_rank *ranks; /* owned; NULL: closed */
};

/* Opens a socket per rank. Errors: -ENOMEM, -EMFILE, ...; then *n is closed. */
MUST_CHECK int notify_open(struct notify *n, uv_loop_t *loop, uint32_t ranks, struct err *err);

/* Takes a zeroed or closed one too. */
void notify_close(struct notify *n);

/* Another process speaks for the rank now: what was told of the old one is no longer so. */
void notify_forget(struct notify_rank *r);

/* The value of NOTIFY_SOCKET for a rank. */
const char *notify_address(const struct notify *n, uint32_t rank);

/* Takes in the lines of one message. Apart for its test. */
void notify_parse(struct notify_rank *r, const char *text, size_t bytes);

#endif
